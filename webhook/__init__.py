"""Admission webhook for Kubeflow MPIJobs."""

from typing import Final

__version__ = "0.1.0"

PROGRAM: Final = "mpijob-webhook"
"""The name of the command, of an installation's namespace, Service and ServiceAccount, and the stem of other names."""
