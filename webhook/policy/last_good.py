"""The last good documents, as a ConfigMap holds them: a copy for each version of the service.

A newer version accepts settings that an older one cannot read. With a copy of its own, an older replica that restarts
still has the documents that it could read.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

import msgspec

from webhook import __version__

# No policy has such a name, because no ConfigMap has.
_COPY: Final = "_"


def texts(data: Mapping[str, object], version: str = __version__) -> dict[str, str]:
    """The copy that `version` starts from: its own, else that of the newest other version. Texts by policy."""
    copies = _copies(data)
    return copies.get(version if version in copies else max(copies, key=_order, default=""), {})


def data_with(data: Mapping[str, object], copy: Mapping[str, str], version: str = __version__) -> dict[str, str]:
    """`data` with the copy of `version`. To limit the size, only the newest of the other versions keeps its copy."""
    others = {other: texts for other, texts in _copies(data).items() if other != version}
    kept = max(others, key=_order, default=None)
    written = {} if kept is None else _as_data(kept, others[kept])
    return written | _as_data(version, copy)


def _as_data(version: str, copy: Mapping[str, str]) -> dict[str, str]:
    return {_COPY + version: msgspec.json.encode(copy).decode()}


def _copies(data: Mapping[str, object]) -> dict[str, dict[str, str]]:
    """The copies by version."""
    found: dict[str, dict[str, str]] = {}
    for key, value in data.items():
        if key.startswith(_COPY):
            with suppress(msgspec.DecodeError):  # edited by hand
                found[key.removeprefix(_COPY)] = msgspec.json.decode(str(value), type=dict[str, str])
    return found


def _order(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]
