"""Admission webhook for Kubeflow MPIJobs."""

__version__ = "0.1.0"
