"""The commands `policy ...`, by which administrators write, test and compare policies.

Each command has a file, and `commands` is their group. `documents` reads policies in files, and `inputs` reads the
policies of a cluster.
"""
