"""What a fix tells the user to write, read from its sentence; docs/development.md lists the forms that are read.

Of a sentence that offers several ways the first is read that can be. Sentences that state no value are left alone.
"""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from tests.support.mender import places
from tests.support.mender.places import Path


class Verb(Enum):
    """What is done to a field."""

    SET = "set"
    AT_MOST = "at most"
    AT_LEAST = "at least"
    REMOVE = "remove"
    RENAME = "rename"
    SHORTEN = "shorten"
    ASK = "ask"
    """A pod for so much of a resource; `value` is the bound, the amount and the resource, empty for accelerators."""
    RANKS = "ranks"
    """mpirun for so many."""
    OPTIONS = "options"
    """mpirun with these, besides."""
    ADD = "add"
    """To a list."""
    TAKE = "take"
    """Out of a list."""
    RESOURCE = "resource"
    """A resource by another name: (as it was, as it is to be)."""


@dataclass(frozen=True, slots=True)
class Edit:
    """One change of the job."""

    verb: Verb
    path: Path
    value: Any = None


_BESIDES: Final = {
    "slotsPerWorker": places.parse("spec.slotsPerWorker"),
    "minAvailable": places.parse("spec.runPolicy.schedulingPolicy.minAvailable"),
    "runLauncherAsWorker": places.parse("spec.runLauncherAsWorker"),
}
REPLICAS: Final = places.parse("spec.mpiReplicaSpecs[Worker].replicas")
LAUNCHER_CONTAINER: Final = places.parse("spec.mpiReplicaSpecs[Launcher].template.spec.containers[0]")

_VALUE: Final = r'(?P<value>"[^"]*"|\[[^\]]*\]|[^\s",;]+)'
_NAMES: Final = r'"[^"]*"(?:, "[^"]*")*|[A-Z_]+(?:, [A-Z_]+)*'
_BOUND: Final = r"(?: or (?P<bound>more|fewer|less)\b)?"
_FIELD: Final = r"(?P<field>[^\s:,;]+)"
_RESOURCE: Final = r"(?: (?P<resource>CPUs|GPUs?|[^\s/]+/[^\s:,;]+|cpu|memory|ephemeral-storage|hugepages-\w+))?"
_NO_VALUE: Final = frozenset(("a", "an", "the", "one", "what", "its", "both"))
_BOUNDS: Final = {"more": Verb.AT_LEAST, "fewer": Verb.AT_MOST, "less": Verb.AT_MOST, None: Verb.SET}
# The end of a sentence: not the dot in a name or a number.
_SENTENCE: Final = re.compile(r"\.(?:\s+(?=[A-Z])|\s*$)|\n(?:\d+\. )?")
_WAY: Final = re.compile(r", or |; | or (?=-np)")
_EXAMPLE: Final = re.compile(rf"(?:Set|Name|Write)\b.*?(?:,? as|, such as| like) (?!the |an? ){_VALUE}")
_AND_REMOVE: Final = re.compile(rf" and remove {_FIELD}")
_SET: Final = re.compile(rf"(?:[Ss]et|and) {_FIELD}(?: to |: ){_VALUE}{_BOUND}")


def read(path: str, fix: str) -> list[Edit]:
    """What is to be done about the field at `path`; nothing where no value is stated."""
    at = places.parse(path)
    return [edit for sentence in _SENTENCE.split(fix) for edit in _sentence(at, sentence)]


def _sentence(at: Path, sentence: str) -> list[Edit]:
    if example := _EXAMPLE.match(sentence):
        return [Edit(Verb.SET, at, _value(example["value"].rstrip(".:")))]
    return next((edits for way in _WAY.split(sentence) if (edits := _way(at, way))), [])


def _way(at: Path, way: str) -> list[Edit]:
    """What one way says; nothing where it begins with none of the forms, or how to share it out is left open."""
    if " in all" in way:
        return []
    found = ((made, match) for form, made in _FORMS if (match := form.match(way)))
    return next((edits for made, match in found if (edits := [*made(at, match)])), [])


def _set(at: Path, found: re.Match[str]) -> Iterator[Edit]:
    for each in _SET.finditer(found.string):
        if each["field"] in {"-np", "-n", "-c"}:
            yield from _ranks(at, each)
        elif each["value"] not in _NO_VALUE:
            beside = found.string.endswith(" beside it")
            where, value = _field(at, each["field"], beside=beside), _value(each["value"])
            yield Edit(_BOUNDS[each["bound"]], where, value)
            if found.string.endswith(", in requests too"):
                yield Edit(_BOUNDS[each["bound"]], _field(where, f"requests[{where[-1]}]"), value)

    if besides := _AND_REMOVE.search(found.string):
        yield Edit(Verb.REMOVE, _field(at, besides["field"]))


def _size(at: Path, found: re.Match[str]) -> Iterator[Edit]:
    """The size of the whole job, in the words that only this has: what is smaller fits as well."""
    if spread := re.match(r"Use (\d+) workers with (\d+)(, slots too)?", found.string):
        yield Edit(_BOUNDS["more"], REPLICAS, int(spread[1]))
        yield Edit(Verb.ASK, REPLICAS[:-1], (Verb.AT_MOST, spread[2], "GPUs"))
        if spread[3]:
            yield Edit(Verb.SET, _BESIDES["slotsPerWorker"], int(spread[2]))
        return
    for count in re.finditer(r"(?:worker count|replicas) to (\d+)(?: or (more|fewer))?|(\d+) workers?\b", found.string):
        yield Edit(_BOUNDS[count[2] or "fewer"], REPLICAS, int(count[1] or count[3]))
    for count in re.finditer(r"GPUs per worker to (\d+)|(\d+) GPUs?(?: or fewer)? in each", found.string):
        yield Edit(Verb.ASK, REPLICAS[:-1], (Verb.AT_MOST, count[1] or count[2], "GPUs"))
    for field, number in re.findall(r"(slotsPerWorker|minAvailable) to (\d+)", found.string):
        yield Edit(Verb.SET, _BESIDES[field], int(number))
    for ranks in re.finditer(r"-np to (?P<value>\d+)", found.string):
        yield from _ranks(at, ranks)


def _use(at: Path, found: re.Match[str]) -> Iterator[Edit]:
    if found["value"] in _NO_VALUE:
        return
    value = _value(found["value"])
    if found["other"]:
        yield Edit(Verb.RESOURCE, at, (found["other"], value))
    else:
        yield Edit(_BOUNDS[found["bound"]], at, value)


def _remove(at: Path, found: re.Match[str]) -> Iterator[Edit]:
    if found["field"] not in _NO_VALUE:
        yield Edit(Verb.REMOVE, _field(at, found["field"] or "it", beside=True))


def _ask(at: Path, found: re.Match[str]) -> Iterator[Edit]:
    yield Edit(Verb.ASK, at, (_BOUNDS[found["bound"]], found["value"] or "0", found["resource"] or ""))


def _names(verb: Verb) -> Callable[[Path, re.Match[str]], Iterator[Edit]]:
    def edits(at: Path, found: re.Match[str]) -> Iterator[Edit]:
        yield Edit(verb, _field(at, found["field"]), [_value(name) for name in found["names"].split(", ")])

    return edits


def _ranks(at: Path, found: re.Match[str]) -> Iterator[Edit]:
    yield Edit(Verb.RANKS, LAUNCHER_CONTAINER, int(found["value"]))


def _simple(verb: Verb, where: Path | None = None) -> Callable[[Path, re.Match[str]], Iterator[Edit]]:
    def edits(at: Path, found: re.Match[str]) -> Iterator[Edit]:
        yield Edit(verb, where or at, _value(found["value"]))

    return edits


# The forms that a way begins with, tried in turn.
_FORMS: Final = [
    (re.compile(form), made)
    for form, made in (
        (r"Use an? \w+ of at most (?P<value>\d+) characters", _simple(Verb.SHORTEN)),
        (rf"Rename it to {_VALUE}", _simple(Verb.RENAME)),
        (r"Reduce |Use \d+ (?:workers?|GPUs?)\b|.* in each$", _size),
        (rf"Ask for (?:none|no|(?P<value>\d\S*)){_RESOURCE}{_BOUND}", _ask),
        (r"Add (?P<value>-.*) to mpirun", _simple(Verb.OPTIONS, LAUNCHER_CONTAINER)),
        (rf"Add (?P<names>{_NAMES}) to {_FIELD}", _names(Verb.ADD)),
        (rf"Remove (?P<names>{_NAMES}) from {_FIELD}", _names(Verb.TAKE)),
        (rf"[Rr]emove (?:one of the two|{_FIELD})", _remove),
        (r"-np to (?P<value>\d+)", _ranks),
        (_SET.pattern, _set),
        (
            r'(?:Use|Write(?= "| [A-Z]\w+$)) (?:one of |queue |storage class )?'
            rf"{_VALUE}{_BOUND}(?: instead of (?P<other>\S+))?",
            _use,
        ),
    )
]


def _field(at: Path, name: str, *, beside: bool = False) -> Path:
    """The field that is meant: `it`, a whole path, one of the path's own, beside it, or in it."""
    if name == "it":
        return at
    first, *inner = places.parse(name)
    if first in {"spec", "metadata"} and inner:
        return (first, *inner)
    if first in {"limits", "requests"} and "resources" in at:
        return (*at[: at.index("resources") + 1], first, *inner)
    if first in at:
        return (*at[: len(at) - at[::-1].index(first)], *inner)
    if name in _BESIDES:
        return _BESIDES[name]
    return (*(at[:-1] if beside else at), first, *inner)


def _value(text: str) -> Any:
    if re.fullmatch("0[0-7]+", text):
        return int(text, 8)  # as kubectl reads it
    try:
        return json.loads(text)
    except ValueError:
        return text.strip('"')
