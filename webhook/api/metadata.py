"""Metadata that Kubernetes writes: owners, and fields that the API server clears."""

from typing import Final

import msgspec

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
"""kubectl's copy of the applied object."""

SET_BY_SERVER: Final = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip
"""Cleared by the API server when an object is created (apiserver `pkg/registry/rest/create.go`)."""


class OwnerReference(msgspec.Struct, rename="camel", gc=False):
    """An owner; `controller` is true for at most one of an object's owners."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None

    @property
    def group(self) -> str:
        """The owner's API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]
