"""What others than its user write into the metadata of an object."""

from typing import Final

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of what was applied."""

SET_BY_SERVER: Final = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip
"""Cleared by the API server when an object is created (apiserver `pkg/registry/rest/create.go`)."""
