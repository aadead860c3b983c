"""The commands `policy ...`, by which administrators write, test and compare policies.

Each command has a module, and the module `commands` has the group `policy`. `documents` reads policies in files, and
`inputs` reads the policies of a cluster.
"""
