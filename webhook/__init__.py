"""Admission webhook for Kubeflow MPIJobs."""

import os
from typing import Final

# Without this variable, pydantic searches all installed packages for plugins and loads them.
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")

__version__ = "0.1.0"

PROGRAM: Final = "mpijob-webhook"
"""The name of the command, the namespace, the Service and the ServiceAccount, and the prefix of other names."""
