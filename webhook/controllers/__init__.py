"""Controllers for objects that belong to jobs: SSH keys, reservations, and the base class of other controllers.

`ssh` and `reservations` also work during reviews. Most other controllers are in optional parts. Controllers may call
the API server.
"""
