"""Discovers installed plug-ins, and imports those that an administrator names.

A plug-in is a package with entry points. The name of an entry point is the id of a rule or injection; its value is the
decorated function. Faults are recorded, not raised.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, ValidationError

from webhook import injections, rules
from webhook.api.text import visible
from webhook.kit.advice_bounds import Admitted
from webhook.kit.custom_rules import PREFIX
from webhook.kit.registry import Registry
from webhook.kit.settings import InjectionSettings, RuleSettings, Settings
from webhook.plugins import guard
from webhook.plugins.limits import MAX_ID_CHARACTERS
from webhook.policy.exemptions import REQUIRED_INJECTION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ALL: Final = "all"
VARIABLE: Final = "MPIJOB_WEBHOOK_PLUGINS"
RESERVED: Final = frozenset({"schema", REQUIRED_INJECTION, PREFIX})
"""Ids that plug-ins may not use. Custom rules, and findings without a rule, have these ids."""

State = Literal["in force", "broken", "unused"]
_ID: Final = re.compile(r"[a-z](?:[a-z0-9]*-)*[a-z0-9]+")


@dataclass(frozen=True, slots=True)
class _Group:
    kind: Literal["rule", "injection"]
    registry: Registry[Any]
    settings: type[Settings]
    guarded: Callable[..., Any]


GROUPS: Final[Mapping[str, _Group]] = {
    "mpijob_webhook.rules": _Group("rule", rules.REGISTRY, RuleSettings, guard.rule),
    "mpijob_webhook.injections": _Group("injection", injections.REGISTRY, InjectionSettings, guard.injection),
}


@dataclass(frozen=True, slots=True)
class Plugin:
    """A package with entry points for this service, or a named package that is not installed."""

    name: str
    version: str = ""
    """The version of the package; empty if it is not installed."""
    state: State = "unused"
    rules: tuple[str, ...] = ()
    """The ids of the active rules; for an unused plug-in, the ids of all its rules."""
    injections: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    """Problems. The other parts of the plug-in are active."""


class PluginFault(Exception):
    pass


@dataclass(slots=True)
class Failures:
    counts: dict[tuple[str, str], int]
    """The number of failures by (kind, id); 0 for each loaded entry without failures."""
    last: dict[tuple[str, str], str]
    """The last failure by (kind, id)."""
    listener: Callable[[str, str, BaseException], None] = lambda *_: None
    """Called with kind, id and exception."""

    def note(self, kind: str, entry_id: str, error: BaseException) -> None:
        key = kind, entry_id
        self.counts[key] += 1
        self.last[key] = guard.where(error)
        self.listener(kind, entry_id, error)


FAILURES: Final = Failures({}, {})
_LOADED: Final[list[Plugin]] = []


def normalised(name: str) -> str:
    """The name of a package in the normal form of PEP 503."""
    return re.sub(r"[-_.]+", "-", name.strip()).lower()


def load(named: Iterable[str]) -> None:
    """Loads the plug-ins with these names, or all installed plug-ins if a name is `all`."""
    names = [normalised(name) for name in named if name.strip()]
    available = dict(_installed()) if names else {}
    for name in sorted(available) if ALL in names else dict.fromkeys(names):
        if all(plugin.name != name for plugin in _LOADED):
            _LOADED.append(_load(name, *available.get(name, ("", ()))))


def loaded() -> tuple[Plugin, ...]:
    return tuple(_LOADED)


def installed() -> tuple[Plugin, ...]:
    """The named plug-ins, then the other installed plug-ins."""
    named = {plugin.name for plugin in _LOADED}
    not_named = (
        Plugin(name, version, rules=_ids(points, "rule"), injections=_ids(points, "injection"))
        for name, (version, points) in sorted(_installed())
        if name not in named
    )
    return (*_LOADED, *not_named)


def problems() -> dict[str, str]:
    """The problems of each broken plug-in, on one line."""
    faults = {plugin.name: list(plugin.faults) for plugin in _LOADED}
    for (kind, entry_id), count in FAILURES.counts.items():
        if count:
            registry = next(group.registry for group in GROUPS.values() if group.kind == kind)
            left_out = "jobs were judged" if kind == "rule" else "jobs were admitted"
            last = FAILURES.last[kind, entry_id]
            faults[registry[entry_id].plugin].append(
                f"{kind} {entry_id} failed {count:,} {'time' if count == 1 else 'times'}, last with {last}: {left_out}"
                " without it"
            )
    return {name: "; ".join(texts) for name, texts in faults.items() if texts}


def _installed() -> Iterator[tuple[str, tuple[str, tuple["EntryPoint", ...]]]]:
    """(name, (version, entry points)) of each plug-in package. Of several packages with one name, the first is used."""
    from importlib import metadata  # noqa: PLC0415 - slow, and not needed without plug-ins

    seen = set()
    for package in metadata.distributions():
        try:
            points = tuple(point for point in package.entry_points if point.group in GROUPS)
            if points and (name := normalised(package.metadata["Name"])) not in seen:
                seen.add(name)
                yield name, (package.version, points)
        except Exception:  # noqa: BLE001, S112 - without readable metadata, the package has no name
            continue


def _ids(points: "Iterable[EntryPoint]", kind: str) -> tuple[str, ...]:
    return tuple(sorted({visible(point.name) for point in points if GROUPS[point.group].kind == kind}))


def _load(name: str, version: str, points: "tuple[EntryPoint, ...]") -> Plugin:
    if not points:
        return Plugin(name, state="broken", faults=("it is not installed, or has no entry points of this service",))
    faults = []
    for point in points:
        group = GROUPS[point.group]
        usable_id = False
        try:
            _check_id(point.name, group)
            usable_id = True
            _take_in(point, group, name)
        except PluginFault as fault:
            faults.append(visible(f"{group.kind} {point.name}: {fault}"))
            if usable_id:
                group.registry.unusable.add(point.name)
    registered = {
        group.kind: tuple(entry.id for entry in group.registry.values() if entry.plugin == name)
        for group in GROUPS.values()
    }
    state: State = "broken" if faults else "in force"
    return Plugin(name, version, state, registered["rule"], registered["injection"], tuple(faults))


def _take_in(point: "EntryPoint", group: _Group, plugin: str) -> None:
    """Registers the object of the entry point; PluginFault if the object is unusable."""
    try:
        entry = group.registry.offered(point.load())
    except guard.RAISED as error:
        text = str(error).partition("\n")[0][:200] or "no reason given"
        raise PluginFault(f"cannot be imported: {type(error).__name__}: {text}") from None
    if entry is None:
        raise PluginFault(f"{point.value} is not a function below @{group.kind} of webhook.plugins.api")
    if entry.id != point.name:
        raise PluginFault(f"{point.value} is called {entry.id} in @{group.kind}; both names must be the same")
    on_failure = partial(FAILURES.note, group.kind, entry.id)
    guarded = group.guarded(entry, plugin, on_failure)
    _check_entry(entry, guarded, group)
    group.registry.take_in(guarded)
    group.registry.unusable.discard(entry.id)
    FAILURES.counts[group.kind, entry.id] = 0


def _check_id(entry_id: str, group: _Group) -> None:
    if not _ID.fullmatch(entry_id) or len(entry_id) > MAX_ID_CHARACTERS:
        raise PluginFault(
            f"is not a valid id: small letters, digits and single hyphens, {MAX_ID_CHARACTERS} characters at most"
        )
    if entry_id in RESERVED or hasattr(BaseModel, entry_id.replace("-", "_")):
        raise PluginFault("has a name that is reserved; begin it with the name of your organisation")
    if (existing := group.registry.get(entry_id)) is not None:
        owner = f'the plug-in "{existing.plugin}"' if existing.plugin else "this service"
        article = "an" if group.kind == "injection" else "a"
        raise PluginFault(
            f"{owner} already has {article} {group.kind} with this name; that {group.kind} remains active"
        )


def _check_entry(entry: Any, guarded: Any, group: _Group) -> None:
    """PluginFault if the settings or texts are invalid. They are used outside of reviews too, without a guard."""
    if not (isinstance(entry.settings, type) and issubclass(entry.settings, group.settings)):
        raise PluginFault(f"its settings are not derived from {group.settings.__name__}")
    fields = entry.settings.model_fields
    for name, field in group.settings.model_fields.items():
        if fields[name].annotation != field.annotation:
            raise PluginFault(f"its settings change the type of {name}, but only the default may differ")
    try:
        defaults = guarded.settings.model_validate({})
        defaults.model_dump(mode="json", by_alias=True)
        json.dumps(guarded.settings.model_json_schema(), allow_nan=False)
        if group.kind == "rule" and not isinstance(entry.admits(defaults), Admitted):
            raise PluginFault("`admits` does not return Admitted")
        summary, _ = entry.documentation
    except PluginFault:
        raise
    except ValidationError as error:
        names = ", ".join(str(fault["loc"][0]) for fault in error.errors() if fault["loc"])
        raise PluginFault(f"its settings have no valid defaults: {names}") from None
    except guard.RAISED as error:
        raise PluginFault(f"its settings cannot be used: {guard.where(error)}") from None
    if not summary:
        raise PluginFault("its module has no docstring; users read the first line")
