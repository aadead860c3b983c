"""The user: changes the job as told."""

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from tests.support.mender import places
from tests.support.mender.advice import Edit, Verb
from tests.support.mender.places import Json, Path
from webhook.api import quantity
from webhook.api.quantity import Quantity, QuantityError
from webhook.api.resources import DEFAULT_ACCELERATORS, is_accelerator

# Values come before the bounds on them, and fields have their old names until all is written.
_ORDER: Final = {Verb.AT_MOST: 1, Verb.AT_LEAST: 1, Verb.RENAME: 2}
_RANKS: Final = re.compile(r"((?:^|\s)(?:-np|-n|--np|--n)[ =])\S+")
_FLAGS: Final = frozenset(("-np", "-n", "--np", "--n"))
# What resources are called in sentences; the accelerators are called GPUs.
_NOUNS: Final = {"CPUs": "cpu", "GPUs": "", "GPU": "", "": ""}
_WORKER: Final = places.parse("spec.mpiReplicaSpecs[Worker]")


def follow(job: Json, edits: Iterable[Edit]) -> Json:
    """The job with all edits; what is taken out goes last, from the end."""
    job, told = copy.deepcopy(job), list(edits)
    for edit in sorted(told, key=lambda edit: _ORDER.get(edit.verb, 0)):
        if edit.verb is not Verb.REMOVE:
            _DOES[edit.verb](job, edit.path, edit.value)
    gone = {edit.path for edit in told if edit.verb is Verb.REMOVE}
    for path in sorted(gone, key=_position, reverse=True):
        places.remove(job, path)
    return job


def _position(path: Path) -> list[tuple[int, str]]:
    return [(int(part) if part.isdecimal() else -1, part) for part in path]


def _bound(verb: Verb) -> Callable[[Json, Path, Any], None]:
    return lambda job, path, value: places.put(job, path, _within(places.get(job, path), verb, value))


def _within(value: Any, verb: Verb, bound: Any) -> Any:
    """The value if it keeps to the bound, else the bound."""
    try:
        found, most = quantity.parse(value), quantity.parse(bound)
    except QuantityError:
        return bound
    return value if (found <= most if verb is Verb.AT_MOST else found >= most) else bound


def _rename(job: Json, path: Path, name: str) -> None:
    parent = places.get(job, path[:-1])
    parent[name] = parent.pop(places.key(parent, path[-1]))


def _shorten(job: Json, path: Path, length: int) -> None:
    """A DNS label that begins as the name does."""
    text = re.sub("[^a-z0-9-]", "-", str(places.get(job, path)).lower())
    places.put(job, path, (text if text[:1].isalpha() else f"x{text}")[:length].rstrip("-"))


def _change(job: Json, path: Path, out: Sequence[str], into: Sequence[str]) -> None:
    """Take these out of a list, and put those at its end."""
    kept = [value for value in places.get(job, path) or [] if value not in out]
    places.put(job, path, [*kept, *into])


def _start(job: Json, path: Path, ranks: int) -> None:
    """Have mpirun start so many ranks."""
    container = places.get(job, path) or {}
    for field in ("command", "args"):
        words = container.get(field) or []
        for index, word in enumerate(words):
            before = words[index - 1] if index else ""
            if before in _FLAGS or (before == "-c" and word.isdecimal()):
                words[index] = str(ranks)
            else:
                words[index] = _RANKS.sub(rf"\g<1>{ranks}", word)


def _with_options(job: Json, path: Path, options: str) -> None:
    """Have mpirun read these options first."""
    container = places.get(job, path) or {}
    for field in ("command", "args"):
        words: list[str] = container.get(field) or []
        if "mpirun" in words:
            words[words.index("mpirun") + 1 : words.index("mpirun") + 1] = options.split()
        else:
            words[:] = [re.sub(r"\bmpirun\b", f"mpirun {options}", word) for word in words]


def _use_other(job: Json, path: Path, names: tuple[str, str]) -> None:
    """Ask for another resource, as much of it."""
    before, after = names
    for container in [*_pod(job, path), *_pod(job, path, "initContainers")]:
        for amounts in (container.get("resources") or {}).values():
            if isinstance(amounts, dict) and before in amounts:
                amounts[after] = amounts.pop(before)


def _pod(job: Json, path: Path, kind: str = "containers") -> list[Json]:
    """The containers of the pod that a message is about: the worker's, where it does not say."""
    role = path[: len(_WORKER)] if path[: len(_WORKER) - 1] == _WORKER[:-1] and len(path) >= len(_WORKER) else _WORKER
    return places.get(job, (*role, "template", "spec", kind)) or []


def _ask(job: Json, path: Path, wanted: tuple[Verb, str, str]) -> None:
    """Have the first container with the resource ask for what the others leave of the amount."""
    bound, amount, resource = wanted
    containers = _pod(job, path)
    if not containers:
        return
    if resource in _NOUNS:
        name = _NOUNS[resource] or _accelerator(containers) or _accelerator(_pod(job, _WORKER)) or "nvidia.com/gpu"
    else:
        name = resource
    asked = [_asked(container, name) for container in containers]
    chosen = next((index for index, value in enumerate(asked) if value), 0)
    rest = quantity.parse(amount) - sum(asked) + asked[chosen]
    resources = containers[chosen]["resources"] = containers[chosen].get("resources") or {}
    limits, requests = ((resources.get(field) or {}) for field in ("limits", "requests"))
    if not quantity.parse(amount):
        limits.pop(name, None)
        requests.pop(name, None)
        return
    had = quantity.format(Quantity(asked[chosen]))
    bounded = quantity.format(Quantity(max(rest, 0)))
    text = bounded if bound is Verb.SET else _within(had, bound, bounded)
    limits[name] = text
    resources["limits"] = limits
    if name in requests:
        requests[name] = text


def _asked(container: Json, name: str) -> int:
    resources = container.get("resources") or {}
    value = (resources.get("limits") or {}).get(name, (resources.get("requests") or {}).get(name, 0))
    try:
        return quantity.parse(value)
    except QuantityError:
        return 0


def _accelerator(containers: Sequence[Json]) -> str:
    names = (name for each in containers for name in (each.get("resources") or {}).get("limits") or ())
    return next((name for name in names if is_accelerator(name, DEFAULT_ACCELERATORS)), "")


_DOES: Final[Mapping[Verb, Callable[[Json, Path, Any], None]]] = {
    Verb.SET: places.put,
    Verb.AT_MOST: _bound(Verb.AT_MOST),
    Verb.AT_LEAST: _bound(Verb.AT_LEAST),
    Verb.RENAME: _rename,
    Verb.SHORTEN: _shorten,
    Verb.ADD: lambda job, path, values: _change(job, path, values, values),
    Verb.TAKE: lambda job, path, values: _change(job, path, values, ()),
    Verb.RANKS: _start,
    Verb.OPTIONS: _with_options,
    Verb.RESOURCE: _use_other,
    Verb.ASK: _ask,
}
