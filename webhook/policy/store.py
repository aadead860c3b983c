"""Turns policy ConfigMaps into layers. If a document is broken, its last good text is used.

Each version of the service stores its own copy of the last good texts, because an older version cannot read settings of
a newer version. A replica that restarts reads the copy of its own version.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import msgspec

from webhook import PROGRAM, __version__
from webhook.api import yaml
from webhook.api.names import closest_name
from webhook.policy import document
from webhook.policy.document import KIND, PolicyDocument, PolicyError, PolicyFault
from webhook.policy.layers import Layer, digest_of
from webhook.policy.limits import MAX_DOCUMENT_CHARACTERS, MAX_DOCUMENT_FAULTS

REMEMBERED = f"{PROGRAM}-last-good"


LABEL = "training.openshift.io/mpijob-policy"
KEY = "policy.yaml"


MISSING = f"is missing: it belongs under the key {KEY} of data"

# `_DOCUMENT` recognises a policy in YAML and JSON. `_BLOCK` matches the start of a literal block in the file.
_DOCUMENT: Final = re.compile(rf"""(?:^|[{{,])[ \t]*["']?kind["']?:[ \t]*["']?{KIND}\b""", re.MULTILINE)
_BLOCK: Final = re.compile(r"""["']?policy\.yaml["']?:\s+\|[-+0-9]*\s*(#.*)?""")

State = Literal["current", "last-good", "unusable"]


class PolicySource(msgspec.Struct, frozen=True):
    name: str
    uid: str
    version: str
    text: str | None
    """The content of `policy.yaml`; None if it is missing."""


@dataclass(frozen=True, slots=True)
class Loaded:
    layers: tuple[Layer, ...] = ()
    states: Mapping[str, State] = field(default_factory=dict)
    """Which text of each ConfigMap is used: the current one, the last good one, or none."""
    errors: Mapping[str, str] = field(default_factory=dict)
    """Why the current text is not used."""
    last_good: Mapping[str, str] = field(default_factory=dict)
    """The texts to store, for all ConfigMaps that exist."""


def load(
    sources: Iterable[PolicySource],
    remembered: Mapping[str, str],
    model: type[PolicyDocument],
    reader: Callable[[str | None, type[PolicyDocument], int], PolicyDocument] | None = None,
) -> Loaded:
    """Loads every ConfigMap. If a text is broken, the last good text in `remembered` is used. Never raises.

    A `reader` is used in place of `read`.
    """
    reader = reader or read
    layers: list[Layer] = []
    states: dict[str, State] = {}
    errors: dict[str, str] = {}
    last_good: dict[str, str] = {}
    for source in sorted(sources, key=lambda source: source.name):
        texts: dict[State, str | None] = {"current": source.text, "last-good": remembered.get(source.name)}
        for state, text in texts.items():
            try:
                loaded = reader(text, model, MAX_DOCUMENT_FAULTS)
            except PolicyError as error:
                errors.setdefault(source.name, str(error))
                continue
            version = source.version if state == "current" else ""
            layers.append(Layer(source.name, loaded, version, digest_of(text or "")))
            states[source.name] = state
            last_good[source.name] = text or ""
            break
        else:
            states[source.name] = "unusable"
            if source.name in remembered:
                last_good[source.name] = remembered[source.name]  # a newer version may read it
    return Loaded(tuple(layers), states, errors, last_good)


def load_file(name: str, text: str | bytes, model: type[PolicyDocument]) -> tuple[Layer, ...]:
    """The documents in a file, plain or in ConfigMaps; PolicyError if one is broken."""
    try:
        parts = yaml.split(text) or [""]
    except yaml.YamlError as error:
        raise PolicyError(PolicyFault("", str(error))) from None
    loaded: list[Layer] = []
    faults: list[PolicyFault] = []
    for number, part in enumerate(parts, start=1):
        try:
            loaded.append(_of_part(part, name if len(parts) == 1 else f"{name}, document {number}", model))
        except PolicyError as error:
            faults += error.faults
    if faults:
        raise PolicyError(*faults)
    return tuple(loaded)


def _of_part(text: str, name: str, model: type[PolicyDocument]) -> Layer:
    (value,) = yaml.load_all(text) or [None]
    if not isinstance(value, dict) or value.get("kind") != "ConfigMap":
        return Layer(name, document.load(text, model), digest=digest_of(text))
    data = value.get("data")
    data = data if isinstance(data, dict) else {}
    counted = embedded(data, text, ())
    try:
        named = (value.get("metadata") or {}).get("name")
        loaded = read_from(counted or data, model)
        return Layer(named if isinstance(named, str) else name, loaded, digest=digest_of(str(data.get(KEY))))
    except PolicyError as error:
        raise error if counted else PolicyError(*(replace(fault, line=None) for fault in error.faults)) from None


def embedded(data: Mapping[str, Any], text: str, path: tuple[str | int, ...]) -> dict[str, Any] | None:
    """The data of the ConfigMap at `path` of the YAML `text`, padded so that line numbers refer to `text`.

    None if the document is not a literal block: only the lines of a literal block are lines of `text`.
    """
    document = data.get(KEY)
    line = yaml.lines(text).get((*path, "data", KEY), 0)  # 0 for a file with too many values
    if isinstance(document, str) and line and _BLOCK.fullmatch(text.splitlines()[line - 1].strip()):
        return {**data, KEY: "\n" * line + document}
    return None


def misplaced(data: Mapping[str, object]) -> str:
    """The key that holds a policy document instead of KEY; empty if no key does."""
    if KEY in data:
        return ""
    return next(
        (
            key
            for key, text in data.items()
            if isinstance(text, str) and _DOCUMENT.search(text, 0, MAX_DOCUMENT_CHARACTERS)
        ),
        "",
    )


def read_from(data: Mapping[str, object], model: type[PolicyDocument], most: int | None = None) -> PolicyDocument:
    """The policy document in the data of a ConfigMap; PolicyError with at most `most` faults."""
    text = data.get(KEY)
    if KEY not in data and (near := misplaced(data) or closest_name(KEY, data)):
        raise PolicyError(PolicyFault("", f"{MISSING}; rename the key {near}"))
    if text is not None and not isinstance(text, str):
        raise PolicyError(PolicyFault("", f"must be text: write `{KEY}: |`, and the document below it, indented"))
    return read(text, model, most)


def read(text: str | None, model: type[PolicyDocument], most: int | None = None) -> PolicyDocument:
    if text is None:
        raise PolicyError(PolicyFault("", MISSING))
    if len(text) > MAX_DOCUMENT_CHARACTERS:
        raise PolicyError(
            PolicyFault("", f"has {len(text):,} characters, at most {MAX_DOCUMENT_CHARACTERS:,} are read")
        )
    return document.load(text, model, most)


# The prefix of the keys of copies. ConfigMap names, and so policy names, cannot contain this character.
_COPY: Final = "_"


def remembered_texts(data: Mapping[str, object], version: str = __version__) -> dict[str, str]:
    """The last good text of each policy: from the copy of `version`, or else from the copy of the newest version."""
    copies = _copies(data)
    return copies.get(version if version in copies else max(copies, key=_order, default=""), {})


def with_remembered(data: Mapping[str, object], copy: Mapping[str, str], version: str = __version__) -> dict[str, str]:
    """`data` with the copy of `version`. To limit the size, only the newest copy of another version is kept."""
    of_others = {other: texts for other, texts in _copies(data).items() if other != version}
    newest = max(of_others, key=_order, default=None)
    kept = {} if newest is None else _as_data(newest, of_others[newest])
    return kept | _as_data(version, copy)


def _as_data(version: str, copy: Mapping[str, str]) -> dict[str, str]:
    return {_COPY + version: msgspec.json.encode(copy).decode()}


def _copies(data: Mapping[str, object]) -> dict[str, dict[str, str]]:
    copies: dict[str, dict[str, str]] = {}
    for key, value in data.items():
        if key.startswith(_COPY):
            with suppress(msgspec.DecodeError):  # a copy that a user has broken is ignored
                copies[key.removeprefix(_COPY)] = msgspec.json.decode(str(value), type=dict[str, str])
    return copies


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
