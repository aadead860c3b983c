"""A job and its pod templates as they stand in the JSON, out of one decode.

Who compares a template with what is known, or reads fields of it that `webhook.api.pod` leaves out, wants its JSON.
Looking for that in the whole document costs as much as decoding the job.
"""

from typing import Any, Final

import msgspec
from msgspec import structs

from webhook.api import mpijob
from webhook.api.mpijob import Int32, MPIJob, MPIJobSpec, ReplicaSpec
from webhook.api.pod import PodTemplate

Templates = dict[str, bytes]
"""JSON by the key of the replica spec."""


class _Replica(msgspec.Struct, rename="camel", gc=False):
    replicas: Int32 | None = None
    restart_policy: str | None = None
    template: msgspec.Raw = msgspec.Raw()


class _Spec(msgspec.Struct, rename="camel", gc=False):
    mpi_replica_specs: dict[str, _Replica | None] | None = None


class _Job(msgspec.Struct, gc=False):
    spec: _Spec | None = None


def _changed(kind: type[msgspec.Struct], name: str, other: object, default: object = None) -> Any:
    """`kind` with `other` as the type of its field `name`."""
    field: Any = msgspec.field
    fields = [
        (each.name, other, field(default=default, name=each.encode_name))
        if each.name == name
        else (
            each.name,
            each.type,
            field(default=each.default, default_factory=each.default_factory, name=each.encode_name),
        )
        for each in structs.fields(kind)
    ]
    return msgspec.defstruct(kind.__name__, fields, gc=False)


_decoder: Final = msgspec.json.Decoder(_changed(MPIJob, "spec", msgspec.Raw, default=msgspec.Raw(b"{}")))
_spec: Final = msgspec.json.Decoder(_changed(MPIJobSpec, "mpi_replica_specs", dict[str, _Replica | None] | None))
_template: Final = msgspec.json.Decoder(PodTemplate)
_templates: Final = msgspec.json.Decoder(_Job)


# Bytes of memory, about: of one text that was read before, and of all of them.
_MOST_OF_ONE: Final = 128 * 1024
_MOST_IN_ALL: Final = 12 * 1024 * 1024
# What a spec takes beside its text and its templates.
_OF_A_SPEC: Final = 4 * 1024


class _Known:
    """Specs and templates that were read, by their JSON: the same comes again with updates of a job, and often with the
    next job of its author. Nobody may change them, but for the operator's defaults.
    """

    def __init__(self) -> None:
        self._specs: dict[bytes, tuple[MPIJobSpec, Templates]] = {}
        self._templates: dict[bytes, PodTemplate] = {}
        self._size = 0

    def spec(self, text: bytes) -> tuple[MPIJobSpec, Templates]:
        """The spec in `text`, and its templates."""
        found = self._specs.get(text)
        if found is None:
            found = _read_spec(text)
            # With templates that are too large it is so too.
            if self._templates.keys() >= {*found[1].values()} and self._has_room(2 * len(text) + _OF_A_SPEC):
                self._specs[text] = found
        return found

    def read(self, text: bytes) -> PodTemplate:
        """The template in `text`."""
        template = self._templates.get(text)
        if template is None:
            template = _template.decode(text)
            # The text and what is in it; and what mappings, lists and texts take besides, with what is worked out of
            # them.
            if self._has_room(2 * len(text) + 128 * (text.count(b"{") + text.count(b"[")) + 32 * text.count(b'"')):
                self._templates[text] = template
        return template

    def _has_room(self, size: int) -> bool:
        if size > _MOST_OF_ONE:
            return False
        if self._size + size > _MOST_IN_ALL:
            self.clear()
        self._size += size
        return True

    def clear(self) -> None:
        """Forget them."""
        self._specs.clear()
        self._templates.clear()
        self._size = 0


known: Final = _Known()


def decode(data: bytes | msgspec.Raw) -> tuple[MPIJob, Templates]:
    """The job in JSON `data`, and its templates; ShapeError with the path of the first field of a wrong type."""
    try:
        job = _decoder.decode(data)
        job.spec, written = known.spec(bytes(job.spec))
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return mpijob.decode(data), templates(data)  # the first of which knows where the fault is
    return MPIJob(*structs.astuple(job)), written


def _read_spec(text: bytes) -> tuple[MPIJobSpec, Templates]:
    written: Templates = {}
    spec = _spec.decode(text)
    replicas: dict[str, _Replica | None] = spec.mpi_replica_specs or {}
    made: dict[str, ReplicaSpec | None] = {}
    for key, replica in replicas.items():
        made[key] = None if replica is None else _replica(key, replica, written)
    spec.mpi_replica_specs = spec.mpi_replica_specs and made
    return MPIJobSpec(*structs.astuple(spec)), written


def _replica(key: str, replica: _Replica, written: Templates) -> ReplicaSpec:
    if not replica.template:
        return ReplicaSpec(replica.replicas, replica.restart_policy)
    text = written[key] = bytes(replica.template)
    return ReplicaSpec(replica.replicas, replica.restart_policy, known.read(text))


def templates(document: bytes | msgspec.Raw) -> Templates:
    """The templates of the job in JSON `document`, which has been decoded before."""
    spec = _templates.decode(document).spec
    replicas = (spec and spec.mpi_replica_specs) or {}
    return {key: bytes(replica.template) for key, replica in replicas.items() if replica and replica.template}
