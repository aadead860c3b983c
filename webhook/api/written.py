"""The pod templates of a job as unparsed JSON."""

from typing import Final

import msgspec

Templates = dict[str, bytes]
"""Unparsed JSON, by the key in `mpiReplicaSpecs`."""


class _Replica(msgspec.Struct, gc=False):
    template: msgspec.Raw = msgspec.Raw()


class _Spec(msgspec.Struct, rename="camel", gc=False):
    mpi_replica_specs: dict[str, _Replica | None] | None = None


class _Job(msgspec.Struct, gc=False):
    spec: _Spec | None = None


_decoder: Final = msgspec.json.Decoder(_Job)


def templates(document: bytes | msgspec.Raw) -> Templates:
    """The templates of the valid job in `document`."""
    spec = _decoder.decode(document).spec
    replicas = (spec and spec.mpi_replica_specs) or {}
    return {key: bytes(replica.template) for key, replica in replicas.items() if replica and replica.template}
