"""What an update gets back of what was injected.

`kubectl apply` replaces whole lists of a custom resource, server-side apply takes out what the same file once brought
with our additions, and `kubectl replace` everything that the file has not. An update restores what the record of the
stored job names, as far as the stored job still has it as it was injected, and nothing else: a toleration of the user's
own stays away once it is taken out, and nothing that a later version or policy would add comes to an old job.

Nor does what the job as it is wanted now would not get. The injections are run on both jobs without what is recorded:
a place that the stored one would get today and the new one would not, or not with this value, is not restored. What the
stored one would not get today says nothing, for policy and cluster change: that is restored as it is recorded.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import msgspec

from webhook.admission import places, record
from webhook.admission.places import APPENDED, Lists, RecordedPlace
from webhook.api.annotations import INJECTED
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.networks import NETWORKS, NetworksError, extended, parse
from webhook.api.shape import ShapeError
from webhook.kit.patch import PatchBuilder, PatchConflict, Path

# What the API server has filled in already where a file drops these fields (the CRD's schema).
CREATION_POLICY: Final = "/spec/launcherCreationPolicy"
DEFAULTS: Final[Mapping[str, object]] = {CREATION_POLICY: "AtStartup", "/spec/runPolicy/suspend": False}
_OTHER_HALF: Final = {"requests": "limits", "limits": "requests"}

Inject = Callable[[PatchBuilder], object]
"""Runs the injections on a job as at its creation."""
Found = list[tuple[RecordedPlace, Any]]
"""What is recorded and still there, with its value."""


def restore(
    stored: Any, builder: PatchBuilder, inject: Inject, *, skipped: frozenset[str], required: frozenset[str]
) -> None:
    """Restore what the record of the `stored` job names and the new one lacks, and the record itself.

    Of the `required` injections a value comes back also where the new job would get another one.
    """
    recorded = record.read(stored)
    lists = Lists()
    there = [(place, value) for place in recorded if (value := lists.value(stored, place)) is not None]
    found = [(place, value) for place, value in there if place.author not in skipped]
    replaced = bool(recorded) and builder.get(record.PATH) is None
    if any(lists.value(builder.document, place) is None for place, _ in found):
        everything = [place for place, _ in there]
        found = _still_wanted(found, stored, builder.document, inject, everything=everything, required=required)
        _add(_in_pairs(found, stored, builder, lists), stored, builder, replaced=replaced)
    if replaced:
        builder.write_own(record.PATH, stored["metadata"]["annotations"][INJECTED])


def _add(found: Found, stored: Any, builder: PatchBuilder, *, replaced: bool) -> None:
    lists = Lists()
    lost: set[str] = set()
    for place, value in found:
        *above, last = place.tokens
        where, parent = lists.counterpart(stored, builder.document, above)
        if where is None:
            continue
        builder.author = place.author
        if isinstance(parent, str):
            restored = _attach(builder, where, value)
        elif not isinstance(parent, list):
            # A default of the schema is taken for a loss only beside another loss: users start a job by `suspend`.
            # For what nobody changes by itself the loss of the record will do.
            beside = place.author in lost or (replaced and place.pointer == CREATION_POLICY)
            over = DEFAULTS.get(place.pointer) if beside else None
            restored = builder.add((*where, last), value, over=over)
        elif last == APPENDED:
            restored = builder.append(where, value, key=None)
        else:
            key, equals, _ = last.partition("=")
            restored = bool(key and equals) and builder.append(where, value, key=key)
        if restored:
            lost.add(place.author)


def _attach(builder: PatchBuilder, where: Path, network: str) -> bool:
    text = builder.get(where)
    try:
        there = parse(text) if isinstance(text, str) else []
        wanted = parse(network)
    except NetworksError:
        return False
    if where[-1] != NETWORKS or (text is not None and not isinstance(text, str)) or wanted[0] in there:
        return False
    return builder.extend_text(where, extended(text or "", wanted), (network,))


def _still_wanted(
    found: Found, stored: Any, new: Any, inject: Inject, *, everything: list[RecordedPlace], required: frozenset[str]
) -> Found:
    """Those that the new job would get too, and those that today's settings say nothing of."""
    before = _additions(_without(stored, everything), inject)
    after = _additions(_alike(_without(new, everything), stored), inject)

    def wanted(place: RecordedPlace) -> bool:
        key = _key(place)
        if key not in before:
            return True
        return key in after and (after[key] == before[key] or place.author in required)

    return [(place, value) for place, value in found if wanted(place)]


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


def _additions(document: Any, inject: Inject) -> dict[tuple[str, str], str]:
    """What the injections would add to `document`: places with the checksum of the value."""
    builder = PatchBuilder(document)
    try:
        inject(builder)
    except (ShapeError, PatchConflict):
        return {}
    return {_key(place): place.checksum for place in places.of(builder.additions, builder.document)}


def _key(place: RecordedPlace) -> tuple[str, str]:
    appended = place.tokens[-1] == APPENDED
    return place.author, f"{place.pointer} {place.checksum}" if appended else place.pointer


def _without(document: Any, everything: Iterable[RecordedPlace]) -> Any:
    """A copy of `document` without what is in these places, and without the parents that are empty then."""
    document = msgspec.json.decode(msgspec.json.encode(document))
    lists = Lists()
    paths = {path for place in everything if (path := lists.path(document, place)) is not None}
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


def _in_pairs(found: Found, stored: Any, builder: PatchBuilder, lists: Lists) -> Found:
    """Those without the request or limit of a container that the stored job has with another limit or request.

    The API server refuses a request above its limit, and one of a device that is not equal to it.
    """
    recorded = {place.pointer for place, _ in found}
    return [each for each in found if _pair_holds(each[0], recorded, stored, builder.document, lists)]


def _pair_holds(place: RecordedPlace, recorded: set[str], stored: Any, new: Any, lists: Lists) -> bool:
    tokens = place.tokens
    if len(tokens) < 3 or tokens[-3] != "resources" or tokens[-2] not in _OTHER_HALF:
        return True
    other = [*tokens[:-2], _OTHER_HALF[tokens[-2]], tokens[-1]]
    before, now = lists.at(stored, other), lists.at(new, other)
    pointer = "/".join([*place.pointer.split("/")[:-2], other[-2], place.pointer.rpartition("/")[2]])
    return str(before) == str(now) or (now is None and pointer in recorded)
