"""What an update gets back of what was injected.

`kubectl apply` replaces whole lists of a custom resource, server-side apply takes out what the same file once brought
with our additions, and `kubectl replace` everything that the file has not. An update restores what the record of the
stored job names, as far as the stored job still has it as it was injected, and nothing else: a toleration of the user's
own stays away once it is taken out, and nothing that a later version or policy would add comes to an old job.

Where the job as it is wanted now would get another value in such a place, by an annotation that the update changed, the
other value goes there, and the record says so; where it would get none, nothing does (see `wishes`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from webhook.admission import record
from webhook.admission.places import APPENDED, Lists, RecordedPlace, networks
from webhook.admission.wishes import Inject, Told, Value, Wishes
from webhook.api.annotations import INJECTED
from webhook.api.networks import NETWORKS, NetworksError, extended
from webhook.kit.patch import PatchBuilder, Path

# What the API server has filled in already where a file drops these fields (the CRD's schema).
CREATION_POLICY: Final = "/spec/launcherCreationPolicy"
DEFAULTS: Final[Mapping[str, object]] = {CREATION_POLICY: "AtStartup", "/spec/runPolicy/suspend": False}
_OTHER_HALF: Final = {"requests": "limits", "limits": "requests"}


@dataclass(slots=True)
class Restored:
    """What of an update its user is to be told."""

    changed: list[str] = field(default_factory=list)
    """The injections that gave the job another value than before."""
    told: dict[str, list[str]] = field(default_factory=dict)
    """What they say, and what others could not do of what the update asks for."""


class _Lost(msgspec.Struct, frozen=True):
    """A recorded place, and what is to be there now."""

    place: RecordedPlace
    now: list[Value]

    @property
    def changed(self) -> bool:
        return any(place != self.place for place, _ in self.now)


def restore(stored: Any, builder: PatchBuilder, inject: Inject, *, skipped: frozenset[str]) -> Restored:
    """Restore what the record of the `stored` job names and the new one lacks, and the record itself."""
    recorded = record.read(stored)
    lists, restored = Lists(), Restored()
    there = [(place, value) for place in recorded if (value := lists.value(stored, place)) is not None]
    gone = [
        (place, value)
        for place, value in there
        if place.author not in skipped and lists.value(builder.document, place) is None
    ]
    replaced = bool(recorded) and builder.get(record.PATH) is None
    rewritten: dict[RecordedPlace, list[RecordedPlace]] = {}
    if gone:
        wishes = Wishes(stored, builder.document, [place for place, _ in there], inject)
        lost = [_Lost(place, wishes.now(place, value)) for place, value in gone]
        rewritten = _add(_in_pairs(lost, stored, builder, lists), stored, builder, replaced=replaced)
        restored = _news(lost, rewritten, wishes)
    if rewritten:
        record.rewrite(builder, [place for each in recorded for place in rewritten.get(each, [each])])
    elif replaced:
        builder.write_own(record.PATH, stored["metadata"]["annotations"][INJECTED])
    return restored


def _news(lost: list[_Lost], rewritten: Mapping[RecordedPlace, list[RecordedPlace]], wishes: Wishes) -> Restored:
    changed = list(dict.fromkeys(place.author for place in rewritten))
    told: Told = {
        author: wishes.notes(author) if author in changed else wishes.cautions(author)
        for author in dict.fromkeys(each.place.author for each in lost)
    }
    return Restored(changed, {author: notes for author, notes in told.items() if notes})


def _add(
    lost: list[_Lost], stored: Any, builder: PatchBuilder, *, replaced: bool
) -> dict[RecordedPlace, list[RecordedPlace]]:
    """Put into the job what is to be there; the recorded places that have something else now, and that."""
    lists = Lists()
    back: set[str] = set()
    rewritten: dict[RecordedPlace, list[RecordedPlace]] = {}
    for each in lost:
        for place, value in each.now:
            # A default of the schema is taken for a loss only beside another loss: users start a job by `suspend`. For
            # what nobody changes by itself the loss of the record will do.
            beside = place.author in back or (replaced and place.pointer == CREATION_POLICY)
            over = DEFAULTS.get(place.pointer) if beside else None
            if _put(place, value, lists, stored, builder, over=over):
                back.add(place.author)
                if each.changed:
                    rewritten.setdefault(each.place, []).append(place)
    return rewritten


def _put(place: RecordedPlace, value: Any, lists: Lists, stored: Any, builder: PatchBuilder, *, over: object) -> bool:
    *above, last = place.tokens
    where, parent = lists.counterpart(stored, builder.document, above)
    if where is None:
        return False
    builder.author = place.author
    if isinstance(parent, str):
        return _attach(builder, where, value)
    if not isinstance(parent, list):
        return builder.add((*where, last), value, over=over)
    if last == APPENDED:
        return builder.append(where, value, key=None)
    key, equals, _ = last.partition("=")
    return bool(key and equals) and builder.append(where, value, key=key)


def _attach(builder: PatchBuilder, where: Path, network: str) -> bool:
    text = builder.get(where)
    if where[-1] != NETWORKS or (text is not None and not isinstance(text, str)):
        return False
    try:
        there, wanted = networks(text or ""), networks(network)
    except NetworksError:
        return False
    if wanted[0] in there:
        return False
    return builder.extend_text(where, extended(text or "", wanted), (network,))


def _in_pairs(lost: list[_Lost], stored: Any, builder: PatchBuilder, lists: Lists) -> list[_Lost]:
    """Those without the request or limit of a container that the stored job has with another limit or request.

    The API server refuses a request above its limit, and one of a device that is not equal to it.
    """
    together = {each.place.pointer for each in lost if each.now}
    return [each for each in lost if _pair_holds(each, together, stored, builder.document, lists)]


def _pair_holds(each: _Lost, together: set[str], stored: Any, new: Any, lists: Lists) -> bool:
    tokens = each.place.tokens
    if len(tokens) < 3 or tokens[-3] != "resources" or tokens[-2] not in _OTHER_HALF:
        return True
    other = [*tokens[:-2], _OTHER_HALF[tokens[-2]], tokens[-1]]
    before, now = lists.at(stored, other), lists.at(new, other)
    pointer = "/".join([*each.place.pointer.split("/")[:-2], other[-2], each.place.pointer.rpartition("/")[2]])
    if now is None and pointer in together:
        return True
    # What is asked for now was chosen beside the other half that is there now.
    return now is not None if each.changed else str(before) == str(now)
