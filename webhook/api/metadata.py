"""Metadata that Kubernetes writes."""

from typing import Final

import msgspec

LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"

SET_BY_SERVER: Final = (
    "creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields",
    "resourceVersion", "selfLink", "uid",
)  # fmt: skip
"""The API server ignores a client's values of these fields in a new object (`pkg/registry/rest/create.go`)."""


class OwnerReference(msgspec.Struct, rename="camel", gc=False):
    """An owner. `controller` is true for at most one owner of an object."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None

    @property
    def group(self) -> str:
        return self.api_version.rpartition("/")[0]
