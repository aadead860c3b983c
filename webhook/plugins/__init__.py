"""Rules and injections from other packages, discovered by entry points.

A plug-in imports `api`, and its tests import `testing`; both are stable. `loading` loads the plug-ins that an
administrator names, and `guard` handles failures of a plug-in. Violations of plug-ins are handled like those of
built-in rules.
"""
