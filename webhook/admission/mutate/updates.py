"""Restores injected values that an update dropped.

`kubectl apply` replaces whole lists of a custom resource and so drops injected items. Kueue stops a running job whose
containers change. A dropped value is restored if the stored job has the value and the value has the `Form` of values
that an injection writes. The annotation with the ids of the injections is not read, because users can change it.

A user who changes the stored job with kubectl (`edit`, `patch`, `label`, `annotate`, or `replace` of the output of
`get`) has seen the injected values. Values that this user removes are not restored, except a waiting job's time limit
and queue.

The injections also run on the stored job and on the new job, both without the dropped values. If the results differ,
the update changes an input of an injection, such as `training.openshift.io/timeout`. The new result then replaces the
stored values.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from webhook import injections
from webhook.api import untyped
from webhook.api.networks import NetworksError, extends, parse
from webhook.api.shape import ShapeError
from webhook.api.untyped import at, mapping
from webhook.injections import Caution
from webhook.kit.forms import ITEM, ComesBack, Form
from webhook.kit.patch import Addition, PatchBuilder, PatchConflict, Path

Notes = dict[str, list[str]]
"""Notes by injection."""
Inject = Callable[[PatchBuilder, frozenset[str] | None], Notes]
"""Runs the injections with these ids as for a new job. None stands for all injections."""

_WRITTEN_PARTS: Final = (("metadata", "labels"), ("metadata", "annotations"), ("spec",))
"""The parts of a job that injections change."""
KUBECTL_APPLY: Final = "kubectl-client-side-apply"
"""The field manager of `kubectl apply` without `--server-side`."""
_KUBECTL_REPLACE: Final = "kubectl-replace"
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
"""The field that identifies an item of a list. Items of other lists are compared as a whole."""
_GONE: Final = object()


@dataclass(slots=True)
class Restored:
    """Notes to the user about an update."""

    changed: list[str] = field(default_factory=list)
    """Injections that changed a value of the job."""
    notes: Notes = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Dropped:
    """A value that the stored job has and the new job lacks."""

    injection: str
    form: Form
    path: Path
    """In the new job: the path of the value, or of the list that lacks the item."""
    value: Any
    new: Any
    item: bool
    comes_back: bool
    """If false, the value is not restored. It only shows that the injection may have written a different value."""

    @property
    def defaulted(self) -> bool:
        """Whether the API server replaced the value by the schema's default."""
        return self.form.default is not None


def restore(
    stored: Any, builder: PatchBuilder, inject: Inject, *, skipped: frozenset[str], manager: str = ""
) -> Restored:
    """Restore values of the `stored` job in the new job in `builder`, except values of `skipped` injections.

    `manager` is the client's field manager.
    """
    outcome = Restored()
    if all(_part(stored, *path) == _part(builder.document, *path) for path in _WRITTEN_PARTS):
        return outcome
    new = _Run(inject, builder.document)
    file_before, file_now = (_part(job, "metadata", "annotations", LAST_APPLIED) for job in (stored, builder.document))
    applied = manager == KUBECTL_APPLY
    same_file = applied and isinstance(file_now, str) and file_before == file_now
    edited = _edits_the_stored_job(manager, builder.document)
    walk = _Walk(skipped, new.builder, same_file=same_file, other_client=not applied, edited=edited)
    bare = walk.without_dropped(stored, builder.document, (), ())
    if not walk.dropped:
        return outcome
    old = _Run(inject, bare)
    authors = list(dict.fromkeys(lost.injection for lost in walk.dropped))
    changed = {author for author in authors if author not in skipped and old.added[author] != new.added[author]}
    _put_back([lost for lost in walk.dropped if lost.injection not in changed], builder, new, same_file=same_file)
    start = len(builder.additions)
    fresh = inject(builder, frozenset(changed)) if changed else {}
    outcome.changed = list(dict.fromkeys(addition.author for addition in builder.additions[start:]))
    for author in authors:
        notes = fresh.get(author, []) if author in outcome.changed else _new_cautions(author, old, new)
        if notes:
            outcome.notes[author] = notes
    return outcome


def _edits_the_stored_job(manager: str, new: Any) -> bool:
    """Whether kubectl sends a changed copy of the stored job, and not a job from a file. Only the copy has a uid."""
    if manager == _KUBECTL_REPLACE:
        return bool(_part(new, "metadata", "uid"))
    return manager.startswith("kubectl-") and manager != KUBECTL_APPLY


class _Run:
    """A run of the injections on a copy of a job."""

    def __init__(self, inject: Inject, document: Any) -> None:
        self.builder = PatchBuilder(untyped.decode(msgspec.json.encode(document)))
        self.added: dict[str, list[Addition]] = defaultdict(list)
        self.notes: Notes = {}
        with suppress(ShapeError, PatchConflict):
            self.notes = inject(self.builder, None)
        for addition in self.builder.additions:
            self.added[addition.author].append(addition)


def _new_cautions(author: str, old: _Run, new: _Run) -> list[str]:
    earlier = old.notes.get(author, ())
    return [note for note in new.notes.get(author, ()) if isinstance(note, Caution) and note not in earlier]


def _part(document: Any, *path: str) -> Any:
    return mapping(at(document, *path[:-1])).get(path[-1])


def _put_back(dropped: list[Dropped], builder: PatchBuilder, today: _Run, *, same_file: bool) -> None:
    authors: set[str] = set()
    # Values replaced by the schema's default are last: some are restored only together with other values.
    for lost in sorted(dropped, key=lambda lost: lost.defaulted):
        alone = lost.defaulted and lost.injection not in authors
        if lost.comes_back and not (alone and not _comes_back_alone(lost, today.builder)):
            value = _networks(lost, today.builder, same_file=same_file) if lost.form.text else lost.value
            _put(lost, builder, value)
            authors.add(lost.injection)


def _comes_back_alone(dropped: Dropped, today: PatchBuilder) -> bool:
    """Whether a value that the schema's default replaced is restored without other values of the injection."""
    if dropped.form.when is ComesBack.WITH_OTHERS:
        return False
    return _writes(today, dropped.path, dropped.value, dropped.form)


def _writes(today: PatchBuilder, path: Path, value: Any, form: Form) -> bool:
    """Whether the injections would write the value now."""
    written = today.get(path)
    return value in written if isinstance(written, list) and form.path[-1] == ITEM else value == written


def _put(dropped: Dropped, builder: PatchBuilder, value: Any) -> None:
    builder.author = dropped.injection
    if dropped.item:
        builder.append(dropped.path, value, key=None, is_new=True)
    elif value != (dropped.new or ""):
        builder.add(dropped.path, value, over=dropped.new)


def _networks(dropped: Dropped, today: PatchBuilder, *, same_file: bool) -> str:
    """The text of the annotation with networks.

    1. The injection's current result, if each of its networks is in the stored text or in the user's text.
    2. Otherwise the stored text, if it begins with the user's text and the user applies the same file again.
    3. Otherwise the user's text.
    """
    users, text = str(dropped.new or ""), today.get(dropped.path)
    try:
        if isinstance(text, str) and set(parse(text)) <= {*parse(dropped.value), *parse(users)}:
            return text
    except NetworksError:
        return users
    return str(dropped.value) if same_file and extends(dropped.value, users) else users


class _Walk:
    """A walk through the stored and the new job in parallel."""

    def __init__(
        self, skipped: frozenset[str], today: PatchBuilder, *, same_file: bool, other_client: bool, edited: bool
    ) -> None:
        self.dropped: list[Dropped] = []
        self._skipped = skipped
        self._today = today
        self._edited = edited
        self._whatever_is_written_today = {
            ComesBack.SAME_FILE: same_file,
            ComesBack.OTHER_CLIENT: same_file or other_client,
            ComesBack.WITH_OTHERS: True,  # `_put_back` decides whether the value is restored
            ComesBack.ALWAYS: True,
        }
        self._forms: dict[tuple[str, ...], list[tuple[str, Form]]] = defaultdict(list)
        for injection in injections.REGISTRY.values():
            for form in injection.forms:
                self._forms[form.path].append((injection.id, form))
        self._prefixes = {path[:length] for path in self._forms for length in range(len(path))}

    def without_dropped(self, stored: Any, new: Any, path: Path, pattern: tuple[str, ...]) -> Any:
        """`stored` without the dropped values; _GONE if nothing is left."""
        if stored == new:
            return stored
        if path and self._drops(path, stored, new, pattern):
            return _GONE if new is None else new
        if pattern not in self._prefixes or _gets_nothing_back(stored, new, pattern):
            return stored
        if isinstance(stored, dict) and (new is None or isinstance(new, dict)):
            new_fields = new or {}
            if pattern[-1:] == ("resources",):
                new_fields = _with_changed_pairs(stored, new_fields)
            parts = {
                key: self.without_dropped(value, new_fields.get(key), (*path, key), (*pattern, key))
                for key, value in stored.items()
            }
            rest: Any = {key: value for key, value in parts.items() if value is not _GONE}
            return _GONE if stored and not rest and new is None else rest
        if isinstance(stored, list) and (new is None or isinstance(new, list)):
            rest = self._items(stored, new or [], path, pattern)
            return _GONE if stored and not rest and new is None else rest
        return stored

    def _items(self, stored: list[Any], new: list[Any], path: Path, pattern: tuple[str, ...]) -> list[Any]:
        key = _KEYS.get(pattern[-1]) if pattern else None
        indices = {_identity(item, key): index for index, item in reversed(list(enumerate(new)))}
        rest = []
        for position, item in enumerate(stored):
            index = indices.get(_identity(item, key))
            if index is None and len(stored) == len(new) and _has_no_name(item, pattern[-1]):
                index = position
            if index is not None:
                rest.append(self.without_dropped(item, new[index], (*path, index), (*pattern, ITEM)))
            elif not self._drops(path, item, None, (*pattern, ITEM), item=True):
                rest.append(item)
        return rest

    def _drops(self, path: Path, stored: Any, new: Any, pattern: tuple[str, ...], *, item: bool = False) -> bool:
        """Record a dropped value under an injection that may have written it. False if there is no such injection."""
        any_key = (*pattern[:-1], ITEM)
        fitting = [
            Dropped(author, form, path, stored, new, item=item, comes_back=self._comes_back(form, path, stored))
            for where in dict.fromkeys((pattern, any_key))
            for author, form in self._forms.get(where, ())
            if _is_lost(form, stored, new) and form.holds(ITEM if item else str(path[-1]), stored)
        ]
        fitting = [lost for lost in fitting if lost.comes_back or lost.form.when is ComesBack.OTHER_CLIENT]
        if any(lost.injection in self._skipped for lost in fitting):
            fitting = [lost for lost in fitting if lost.form.when is ComesBack.ALWAYS]
        if fitting:
            self.dropped.append(max(fitting, key=lambda lost: lost.comes_back))
        return bool(fitting)

    def _comes_back(self, form: Form, path: Path, value: Any) -> bool:
        """Whether a value of this form may be restored in this update."""
        if self._edited:
            return form.when in {ComesBack.ALWAYS, ComesBack.WITH_OTHERS}
        if form.text or form.default is not None or self._whatever_is_written_today.get(form.when):
            return True
        return _writes(self._today, path, value, form)


def _is_lost(form: Form, stored: Any, new: Any) -> bool:
    if form.text and isinstance(new, str):
        return True
    blank = form.when is ComesBack.ALWAYS and new == ""
    return new is None or blank or (form.default is not None and new == form.default)


def _with_changed_pairs(stored: Any, new: Any) -> Any:
    """The new resources, in which some dropped amounts count as present, so that they are not restored.

    A dropped request counts as present if the limit of the resource has changed, because the API server rejects a
    request above its limit. A dropped limit counts as present if the request has changed.
    """
    amended = dict(new)
    for half, other in (("requests", "limits"), ("limits", "requests")):
        before, now = mapping(stored.get(other)), mapping(new.get(other))
        changed = {name for name, amount in now.items() if amount != before.get(name)}
        kept = {name: amount for name, amount in mapping(stored.get(half)).items() if name in changed}
        amended[half] = {**kept, **mapping(new.get(half))} or new.get(half)
    return amended


def _gets_nothing_back(stored: Any, new: Any, pattern: tuple[str, ...]) -> bool:
    """True for a removed template, and for a security context in which the user set a value.

    The API server rejects some combinations of values in a security context.
    """
    if pattern[-1:] == ("securityContext",):
        return not _is_within(new, stored)
    of_pods = pattern[:2] == ("spec", "mpiReplicaSpecs") and (len(pattern) <= 4 or pattern[4:] == ("spec",))
    return new is None and of_pods


def _is_within(new: Any, stored: Any) -> bool:
    """Whether the stored value contains the whole new value."""
    if isinstance(new, dict) and isinstance(stored, dict):
        return all(_is_within(value, stored.get(key)) for key, value in new.items())
    if isinstance(new, list) and isinstance(stored, list):
        return all(item in stored for item in new)
    return new is None or new == stored


def _has_no_name(item: Any, field: str) -> bool:
    """Whether the item is identified only by its position."""
    if field == "nodeSelectorTerms":
        return True
    return field in {"containers", "initContainers"} and not isinstance(mapping(item).get("name"), str)


def _identity(item: Any, key: str | None) -> str:
    value = item.get(key) if key is not None and isinstance(item, dict) else None
    return msgspec.json.encode(item if value is None else value, order="sorted").decode()
