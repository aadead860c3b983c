"""A job and its pod templates as they stand in the JSON, out of one decode.

Who compares a template with what is known, or reads fields of it that `webhook.api.pod` leaves out, wants its JSON.
Looking for that in the whole document costs as much as decoding the job.
"""

from typing import Any, Final

import msgspec
from msgspec import structs

from webhook.api import mpijob, mpirun
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
# What a mapping or a list takes, a text, and a word behind a call of mpirun, which `mpirun` takes apart. A byte is
# kept, and read: of a text with other characters than Latin-1's as four bytes, and as UTF-8 when it is written.
_OF_A_LIST: Final = 128
_OF_A_TEXT: Final = 32
_OF_A_WORD: Final = 128
_OF_A_BYTE: Final = 2
_OF_A_WIDE_BYTE: Final = 6
_ESCAPED: Final = rb"\u00"
_IN_CALLS: Final = (*(name.encode() for name in mpirun.NAMES), _ESCAPED)
_BETWEEN_WORDS: Final = (b" ", rb"\t", rb"\\", _ESCAPED)


class _Known:
    """Specs and templates that were read, by their JSON: the same comes again with updates of a job, and often with the
    next job of its author. Nobody may change them, but for the operator's defaults.
    """

    def __init__(self) -> None:
        self._specs: dict[bytes, tuple[MPIJobSpec, Templates]] = {}
        self._templates: dict[bytes, PodTemplate] = {}
        self.size = 0
        """Bytes, about."""

    def spec(self, text: bytes) -> tuple[MPIJobSpec, Templates]:
        """The spec in `text`, and its templates."""
        found = self._specs.get(text)
        if found is None:
            found = _read_spec(text)
            # With templates that are too large it is so too.
            templates = found[1].values()
            if self._templates.keys() >= {*templates}:
                size = _size(text) - sum(_size(template) - len(template) for template in templates)
                if self._has_room(size + _OF_A_SPEC):
                    self._specs[text] = found
        return found

    def read(self, text: bytes) -> PodTemplate:
        """The template in `text`."""
        template = self._templates.get(text)
        if template is None:
            template = _template.decode(text)
            if self._has_room(_size(text), _of_calls(text)):
                self._templates[text] = template
        return template

    def _has_room(self, size: int, of_calls: int = 0) -> bool:
        if size > _MOST_OF_ONE:
            return False
        size += of_calls
        if self.size + size > _MOST_IN_ALL:
            self.clear()
        self.size += size
        return True

    def clear(self) -> None:
        """Forget them."""
        self._specs.clear()
        self._templates.clear()
        self.size = 0


def _size(text: bytes) -> int:
    """Bytes of memory, about: of the text, of what is read of it, and of what is worked out of that."""
    # Other escapes than these are of other characters than Latin-1's.
    narrow = text.isascii() and text.count(rb"\u") == text.count(_ESCAPED)
    of_a_byte = _OF_A_BYTE if narrow else _OF_A_WIDE_BYTE
    lists = text.count(b"{") + text.count(b"[")
    return of_a_byte * len(text) + _OF_A_LIST * lists + _OF_A_TEXT * text.count(b'"')


def _of_calls(text: bytes) -> int:
    """What the calls of mpirun and its like take besides, in a template with a script."""
    if not any(part in text for part in _IN_CALLS):
        return 0
    words = sum(text.count(between) for between in _BETWEEN_WORDS)
    return _OF_A_WORD * min(words, mpirun.MAX_CALLS * mpirun.MAX_WORDS)


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
