"""The head of a TrainJob or a runtime that is too large to be merged, without reading all of it."""

from collections.abc import Mapping
from typing import Final

import msgspec

from webhook.api.review import AdmissionRequest

# Fields of a TrainJob's spec that change no pod.
_BESIDE_PODS: Final = frozenset(("activeDeadlineSeconds", "managedBy", "suspend"))


class _Policy(msgspec.Struct):
    mpi: msgspec.Raw = msgspec.Raw(b"null")


class Head(msgspec.Struct, rename="camel"):
    """The parts of a spec that show whether it is for MPI."""

    runtime: Mapping[str, str | None] = msgspec.field(default_factory=dict, name="runtimeRef")
    """The one that a TrainJob names."""
    ml_policy: _Policy | None = None

    @property
    def has_mpi_policy(self) -> bool:
        """Whether a runtime is for MPI."""
        return self.ml_policy is not None and bytes(self.ml_policy.mpi)[:1] == b"{"


class _Headed(msgspec.Struct):
    spec: Head


class _Spec(msgspec.Struct):
    spec: dict[str, msgspec.Raw]


_FAULTS: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def head(written: msgspec.Raw) -> Head:
    """The head, as far as it can be read."""
    try:
        return msgspec.json.decode(written, type=_Headed).spec
    except _FAULTS:
        return Head()


def same_pods(request: AdmissionRequest) -> bool:
    """Whether an update leaves everything that pods depend on, byte by byte: the API server writes both in the same
    way.

    msgspec.DecodeError, UnicodeDecodeError or RecursionError if it cannot be read.
    """
    new, old = (_of_pods(raw) for raw in (request.object, request.old_object))
    return new == old


def _of_pods(written: msgspec.Raw) -> dict[str, bytes]:
    spec = msgspec.json.decode(written, type=_Spec).spec
    return {name: bytes(value) for name, value in spec.items() if name not in _BESIDE_PODS}
