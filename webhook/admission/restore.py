"""What an update gets back of what injections put into the stored job.

`kubectl apply` replaces whole lists of a custom resource and so drops injected items; Kueue stops a running job whose
containers change. An update gets back what the stored job has, the new one lacks, and an injection can write (`Form`).
The author of the job can write any annotation, so none is trusted: what is not in a form never comes back.

The injections also run on both jobs as they are without those values. Where the outcome differs, the update changes
what an injection reads, such as `training.openshift.io/timeout`, and today's outcome replaces the stored values.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from webhook import injections
from webhook.api.networks import NetworksError, extends, parse
from webhook.api.shape import ShapeError
from webhook.api.untyped import at, mapping
from webhook.injections import Caution
from webhook.kit.forms import ITEM, ComesBack, Form
from webhook.kit.patch import Addition, PatchBuilder, PatchConflict, Path

Told = dict[str, list[str]]
"""What each injection says."""
Inject = Callable[[PatchBuilder, frozenset[str] | None], Told]
"""Runs the injections of these ids, None for all, as at creation."""

_WRITTEN_PARTS: Final = (("metadata", "labels"), ("metadata", "annotations"), ("spec",))
"""The parts of a job that injections write to."""
KUBECTL_APPLY: Final = "kubectl-client-side-apply"
"""The field manager of `kubectl apply` without `--server-side`."""
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_KEYS: Final[Mapping[str, str]] = {
    "containers": "name",
    "initContainers": "name",
    "env": "name",
    "volumes": "name",
    "imagePullSecrets": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
    "matchExpressions": "key",
}
"""By which field the items of a list are told apart; items of other lists are compared as a whole."""
_GONE: Final = object()


@dataclass(slots=True)
class Restored:
    """What the user of an update is told."""

    changed: list[str] = field(default_factory=list)
    """Injections that gave the job another value than before."""
    told: Told = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A value that the stored job has and the new one lacks."""

    injection: str
    form: Form
    path: Path
    """In the new job: of the value, or of the list where an item is missing."""
    value: Any
    """What the stored job has."""
    left: Any
    """What the new job has there."""
    item: bool
    comes_back: bool
    """Else it is only a reason to ask whether the injection would write something else now."""


def restore(
    stored: Any, builder: PatchBuilder, inject: Inject, *, skipped: frozenset[str], manager: str = ""
) -> Restored:
    """Put back into the new job in `builder` what it lost of the `stored` one, but for the `skipped` injections.

    `manager` is the field manager of the client.
    """
    outcome = Restored()
    if all(_part(stored, *path) == _part(builder.document, *path) for path in _WRITTEN_PARTS):
        return outcome
    after = _Run(inject, builder.document)
    before_it, now = (_part(each, "metadata", "annotations", LAST_APPLIED) for each in (stored, builder.document))
    applied = manager == KUBECTL_APPLY
    same_file = applied and isinstance(now, str) and before_it == now
    walk = _Walk(skipped, after.builder, same_file=same_file, other_client=not applied)
    bare = walk.rest(stored, builder.document, (), ())
    if not walk.dropped:
        return outcome
    before = _Run(inject, bare)
    changed = {
        each.injection
        for each in walk.dropped
        if before.added[each.injection] != after.added[each.injection] and each.injection not in skipped
    }
    back: set[str] = set()
    for each in sorted(walk.dropped, key=lambda each: each.form.default is not None):
        by_default = each.form.default is not None
        if by_default and each.injection not in back and not _written(after.builder, each.path, each.value, each.form):
            continue
        if each.comes_back and each.injection not in changed:
            text = _networks(each, after.builder, same_file=same_file) if each.form.text else None
            _put(each, builder, each.value if text is None else text)
            back.add(each.injection)
    start = len(builder.additions)
    fresh = inject(builder, frozenset(changed)) if changed else {}
    outcome.changed = list(dict.fromkeys(each.author for each in builder.additions[start:]))
    for author in dict.fromkeys(each.injection for each in walk.dropped):
        notes = fresh.get(author, []) if author in outcome.changed else _new_cautions(author, before, after)
        if notes:
            outcome.told[author] = notes
    return outcome


class _Run:
    """What each injection adds to a copy of a job, and says."""

    def __init__(self, inject: Inject, document: Any) -> None:
        self.builder = PatchBuilder(msgspec.json.decode(msgspec.json.encode(document)))
        self.added: dict[str, list[Addition]] = defaultdict(list)
        self.told: Told = {}
        with suppress(ShapeError, PatchConflict):
            self.told = inject(self.builder, None)
        for addition in self.builder.additions:
            self.added[addition.author].append(addition)


def _new_cautions(author: str, before: _Run, after: _Run) -> list[str]:
    earlier = before.told.get(author, ())
    return [note for note in after.told.get(author, ()) if isinstance(note, Caution) and note not in earlier]


def _part(document: Any, *path: str) -> Any:
    return mapping(at(document, *path[:-1])).get(path[-1])


def _written(today: PatchBuilder, path: Path, value: Any, form: Form) -> bool:
    """Whether the injections would write the value today."""
    if form.when is ComesBack.WITH_OTHERS:
        return False
    there = today.get(path)
    return value in there if isinstance(there, list) and form.path[-1] == ITEM else value == there


def _put(dropped: Dropped, builder: PatchBuilder, value: Any) -> None:
    builder.author = dropped.injection
    if dropped.item:
        builder.append(dropped.path, value, key=None, is_new=True)
    elif value != (dropped.left or ""):
        builder.add(dropped.path, value, over=dropped.left)


def _networks(dropped: Dropped, today: PatchBuilder, *, same_file: bool) -> str:
    """The text for a list of networks: today's if all of it comes from the stored job, else the stored one.

    A text of the user's that does not begin the stored one stays as it is.
    """
    left, text = str(dropped.left or ""), today.get(dropped.path)
    try:
        if isinstance(text, str) and set(parse(text)) <= {*parse(dropped.value), *parse(left)}:
            return text
    except NetworksError:
        return left
    return str(dropped.value) if same_file and extends(dropped.value, left) else left


class _Walk:
    """Through the stored job and the new one side by side."""

    def __init__(self, skipped: frozenset[str], today: PatchBuilder, *, same_file: bool, other_client: bool) -> None:
        self.dropped: list[Dropped] = []
        self._skipped = skipped
        self._today = today
        self._whoever_wrote_it = {
            ComesBack.WRITTEN_TODAY: False,
            ComesBack.SAME_FILE: same_file,
            ComesBack.OTHER_CLIENT: same_file or other_client,
        }
        self._forms: dict[tuple[str, ...], list[tuple[str, Form]]] = defaultdict(list)
        for injection in injections.REGISTRY.values():
            for form in injection.forms:
                self._forms[form.path].append((injection.id, form))
        self._ways = {path[:length] for path in self._forms for length in range(len(path))}

    def rest(self, stored: Any, new: Any, path: Path, pattern: tuple[str, ...]) -> Any:
        """What is left of `stored` without dropped values; _GONE for nothing."""
        if stored == new:
            return stored
        if path and (found := self._form(path, stored, new, pattern)) is not None:
            self._drop(found, path, stored, new, item=False)
            return _GONE if new is None else new
        if pattern not in self._ways or _stays_away(stored, new, pattern):
            return stored
        if isinstance(stored, dict) and (new is None or isinstance(new, dict)):
            there = new or {}
            if pattern[-1:] == ("resources",):
                there = _with_changed_pairs(stored, there)
            parts = {
                key: self.rest(value, there.get(key), (*path, key), (*pattern, key)) for key, value in stored.items()
            }
            left: Any = {key: value for key, value in parts.items() if value is not _GONE}
            return _GONE if stored and not left and new is None else left
        if isinstance(stored, list) and (new is None or isinstance(new, list)):
            left = self._items(stored, new or [], path, pattern)
            return _GONE if stored and not left and new is None else left
        return stored

    def _items(self, stored: list[Any], new: list[Any], path: Path, pattern: tuple[str, ...]) -> Any:
        key = _KEYS.get(pattern[-1]) if pattern else None
        places = {_identity(item, key): index for index, item in reversed(list(enumerate(new)))}
        left = []
        for position, item in enumerate(stored):
            identity = _identity(item, key)
            index = places.get(identity)
            if index is None and len(stored) == len(new) and _has_no_name(item, pattern[-1]):
                index = position
            if index is not None:
                left.append(self.rest(item, new[index], (*path, index), (*pattern, ITEM)))
            elif found := self._form(path, item, None, (*pattern, ITEM)):
                self._drop(found, path, item, None, item=True)
            else:
                left.append(item)
        return left

    def _drop(self, found: tuple[str, Form], path: Path, value: Any, left: Any, *, item: bool) -> None:
        comes_back = self._may(found[1], path, value)
        self.dropped.append(Dropped(*found, path, value, left, item=item, comes_back=comes_back))

    def _form(self, path: Path, stored: Any, new: Any, pattern: tuple[str, ...]) -> tuple[str, Form] | None:
        """The injection that can have written a value that is dropped, and the form that says so."""
        any_key = (*pattern[:-1], ITEM)
        fitting = [
            (author, form)
            for where in dict.fromkeys((pattern, any_key))
            for author, form in self._forms.get(where, ())
            if _is_lost(form, stored, new)
            and form.holds(str(path[-1]), stored)
            and (form.when is ComesBack.OTHER_CLIENT or self._may(form, path, stored))
        ]
        if self._skipped.intersection(author for author, _ in fitting):
            fitting = [entry for entry in fitting if entry[1].when is ComesBack.ALWAYS]
        fitting.sort(key=lambda entry: not self._may(entry[1], path, stored))
        return fitting[0] if fitting else None

    def _may(self, form: Form, path: Path, value: Any) -> bool:
        """Whether a value of this form may come back in this update."""
        if form.text or form.default is not None or self._whoever_wrote_it.get(form.when, True):
            return True
        return _written(self._today, path, value, form)


def _is_lost(form: Form, stored: Any, new: Any) -> bool:
    if form.text and isinstance(new, str):
        return True
    blank = form.when is ComesBack.ALWAYS and new == ""
    return new is None or blank or (form.default is not None and new == form.default)


def _with_changed_pairs(stored: Any, new: Any) -> Any:
    """The new resources, with the stored request where the limit has changed, and the other way round.

    What stays as it is does not come back: the API server rejects a request above its limit.
    """
    amended = dict(new)
    for half, other in (("requests", "limits"), ("limits", "requests")):
        before, now = mapping(stored.get(other)), mapping(new.get(other))
        changed = {name for name, amount in now.items() if amount != before.get(name)}
        kept = {name: amount for name, amount in mapping(stored.get(half)).items() if name in changed}
        amended[half] = {**kept, **mapping(new.get(half))} or new.get(half)
    return amended


def _stays_away(stored: Any, new: Any, pattern: tuple[str, ...]) -> bool:
    """Whether nothing comes back to a part: a template that is gone, or a security context that the user has changed.

    The API server rejects some values of a security context next to others.
    """
    if pattern[-1:] == ("securityContext",):
        return not _is_within(new, stored)
    of_pods = pattern[:2] == ("spec", "mpiReplicaSpecs") and (len(pattern) <= 4 or pattern[4:] == ("spec",))
    return new is None and of_pods


def _is_within(new: Any, stored: Any) -> bool:
    """Whether everything in the new value is in the stored one."""
    if isinstance(new, dict) and isinstance(stored, dict):
        return all(_is_within(value, stored.get(key)) for key, value in new.items())
    if isinstance(new, list) and isinstance(stored, list):
        return all(item in stored for item in new)
    return new is None or new == stored


def _has_no_name(item: Any, field: str) -> bool:
    """Whether an item is told apart by its position alone."""
    if field == "nodeSelectorTerms":
        return True
    return field in {"containers", "initContainers"} and not isinstance(mapping(item).get("name"), str)


def _identity(item: Any, key: str | None) -> str:
    """What stands for an item of a list."""
    value = item.get(key) if key is not None and isinstance(item, dict) else None
    return msgspec.json.encode(item if value is None else value, order="sorted").decode()
