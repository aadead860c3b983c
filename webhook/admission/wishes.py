"""What an update asks of the injections: what each would add to the stored job, and to the new one, if it came today.

Both jobs are taken without what is recorded. Policy and cluster are today's for both, so where the outcomes differ, the
update has changed what its user wants.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from webhook.admission import places
from webhook.admission.places import APPENDED, Lists, RecordedPlace
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.networks import extended, parse
from webhook.api.shape import ShapeError
from webhook.injections import Caution
from webhook.kit.patch import PatchBuilder, PatchConflict, Path

Told = Mapping[str, list[str]]
"""What each injection says."""
Inject = Callable[[PatchBuilder], Told]
"""Runs the injections on a job as at its creation."""
Value = tuple[RecordedPlace, Any]
"""A place, and what is to be there."""
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Outcome:
    added: dict[_Key, Value] = field(default_factory=dict)
    told: Told = field(default_factory=dict)


class Wishes:
    """The outcomes for both jobs, compared."""

    def __init__(self, stored: Any, new: Any, recorded: list[RecordedPlace], inject: Inject) -> None:
        self._before = _outcome(without(stored, recorded), inject)
        self._after = _outcome(_alike(without(new, recorded), stored), inject)
        self._spare: dict[_Key, list[Value]] = {}
        known, lists = {_key(place) for place in recorded}, Lists()
        for key, (place, value) in self._after.added.items():
            # What the stored job has without a record is its user's, who may take it out.
            if key not in self._before.added and key not in known and lists.at(stored, _item(place)) is None:
                self._spare.setdefault(_parent(place), []).append((place, value))

    def now(self, place: RecordedPlace, value: Any) -> list[Value]:
        """What is to be at a recorded place that the new job has lost.

        What neither job would get today is as it was: policy and cluster change. What is no longer wanted gives way to
        all that the same injection would now put into the same list or map.
        """
        key = _key(place)
        before, after = self._before.added.get(key), self._after.added.get(key)
        if after is not None:
            return [(place, value) if before is not None and before[0] == after[0] else after]
        return [(place, value)] if before is None else self._spare.pop(_parent(place), [])

    def cautions(self, author: str) -> list[str]:
        """What could not be done of what this update, and not the stored job, asks for."""
        known = self._before.told.get(author, ())
        return [note for note in self._after.told.get(author, ()) if isinstance(note, Caution) and note not in known]

    def notes(self, author: str) -> list[str]:
        """All that the injection says of the new job."""
        return list(self._after.told.get(author, ()))


def _outcome(document: Any, inject: Inject) -> _Outcome:
    builder = PatchBuilder(document)
    try:
        told = inject(builder)
    except (ShapeError, PatchConflict):
        return _Outcome()
    lists = Lists()
    added = list(places.of(builder.additions, builder.document))
    return _Outcome({_key(place): (place, lists.at(builder.document, _item(place))) for place in added}, told)


def _key(place: RecordedPlace) -> _Key:
    appended = place.tokens[-1] == APPENDED
    return place.author, f"{place.pointer} {place.checksum}" if appended else place.pointer


def _item(place: RecordedPlace) -> list[str]:
    """The tokens that lead to the value, in a list by its checksum where it has no key."""
    *above, last = place.tokens
    return [*above, place.checksum if last == APPENDED else last]


def _parent(place: RecordedPlace) -> _Key:
    return place.author, place.pointer.rpartition("/")[0]


def _alike(new: Any, stored: Any) -> Any:
    """`new` with the name, and the order of containers, that `stored` has: no wish of anybody's."""
    for key in ("name", "generateName"):
        if value := stored["metadata"].get(key):
            new["metadata"][key] = value
    lists = Lists()
    for role in (LAUNCHER, WORKER):
        path = ("spec", "mpiReplicaSpecs", role, "template", "spec", "containers")
        ours, theirs = lists.at(new, path), lists.at(stored, path)
        if isinstance(ours, list) and isinstance(theirs, list):
            order = {str(item.get("name")): place for place, item in enumerate(theirs) if isinstance(item, dict)}
            ours.sort(key=lambda item: order.get(str(item.get("name")), len(order)) if isinstance(item, dict) else 0)
    return new


def without(document: Any, recorded: Iterable[RecordedPlace]) -> Any:
    """A copy of `document` without what is in these places, and without the parents that are empty then."""
    document = msgspec.json.decode(msgspec.json.encode(document))
    lists = Lists()
    paths = {path for place in recorded if (path := lists.path(document, place)) is not None}
    # From the end, so that no position in a list changes before it is used.
    for path in sorted(paths, reverse=True):
        _remove(document, path)
    return document


def _remove(document: Any, path: Path) -> None:
    parents: list[Any] = [document]
    for token in path[:-1]:
        parents.append(parents[-1][token])
    text = parents[-1]
    if isinstance(text, str):
        parents.pop()
        left = [network for network in parse(text) if str(network) != path[-1]]
        path = path[:-1]
        if left:
            annotations = parents[-1]
            annotations[path[-1]] = extended("", left)
            return
    for parent, token in zip(reversed(parents), reversed(path), strict=True):
        del parent[token]
        if parent or not isinstance(parent, dict | list):
            return
