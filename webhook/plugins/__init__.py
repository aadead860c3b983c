"""Rules and injections from other packages, discovered by entry points.

A plug-in imports `api`, and its tests import `testing`. Both modules are stable.
"""
