"""Admission webhook for Kubeflow MPIJobs."""

import os
from typing import Final

# pydantic would look through every package that is installed for plugins of its own, and let them take part.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

__version__ = "0.1.0"

PROGRAM: Final = "mpijob-webhook"
"""The name of the command, of an installation's namespace, Service and ServiceAccount, and the stem of other names."""
