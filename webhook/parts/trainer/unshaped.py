"""Reads a few fields of a TrainJob or runtime that is too large to be decoded."""

from collections.abc import Mapping
from typing import Final

import msgspec

from webhook.api.review import AdmissionRequest

# Fields of a TrainJob's spec that do not change its pods.
_WITHOUT_EFFECT_ON_PODS: Final = frozenset(("activeDeadlineSeconds", "managedBy", "suspend"))


class _Policy(msgspec.Struct):
    mpi: msgspec.Raw = msgspec.Raw(b"null")


class Head(msgspec.Struct, rename="camel"):
    """The fields that show whether the object is for MPI."""

    runtime: Mapping[str, str | None] = msgspec.field(default_factory=dict, name="runtimeRef")
    """A TrainJob's reference to its runtime."""
    ml_policy: _Policy | None = None

    @property
    def has_mpi_policy(self) -> bool:
        return self.ml_policy is not None and bytes(self.ml_policy.mpi)[:1] == b"{"


class _Headed(msgspec.Struct):
    spec: Head


class _Spec(msgspec.Struct):
    spec: dict[str, msgspec.Raw]


_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def head(encoded: msgspec.Raw) -> Head:
    try:
        return msgspec.json.decode(encoded, type=_Headed).spec
    except _FAULTS:
        return Head()


def same_pods(request: AdmissionRequest) -> bool:
    """Whether an update changes only fields that have no effect on pods. Raises decoding errors.

    The API server encodes both objects in the same way, so their bytes can be compared.
    """
    new, old = (_pod_fields(raw) for raw in (request.object, request.old_object))
    return new == old


def _pod_fields(encoded: msgspec.Raw) -> dict[str, bytes]:
    spec = msgspec.json.decode(encoded, type=_Spec).spec
    return {name: bytes(value) for name, value in spec.items() if name not in _WITHOUT_EFFECT_ON_PODS}
