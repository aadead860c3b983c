"""Rules and injections of other packages, discovered by their entry points.

`api` is what such a package imports, and `testing` what its tests import: their names are stable. `loading` loads the
plug-ins that an administrator names, and `guard` contains the failures of a broken one. Findings of plug-ins are
handled like those of built-in rules: nothing here decides about a job.
"""
