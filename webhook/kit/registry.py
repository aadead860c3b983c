"""Registries of rules and injections.

A plug-in declares its entries in another package. These entries have no effect until `webhook.plugins` registers them.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar


class Registered(Protocol):
    @property
    def id(self) -> str: ...


E = TypeVar("E", bound=Registered)


class Registry(Mapping[str, E], Generic[E]):
    """Entries sorted by id. On first use, the package's modules are imported. Their decorators register the entries."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._entries: dict[str, E] = {}
        self._loaded = False
        self._offered: dict[Callable[..., Any], E] = {}
        self.unusable: set[str] = set()
        """Ids of broken plug-ins. Policies may still contain these ids, without effect."""

    def add(self, entry: E) -> None:
        """RuntimeError if the id is taken."""
        if entry.id in self._entries:
            raise RuntimeError(f"two entries of {self._package} are called {entry.id!r}")
        self._entries[entry.id] = entry

    def declare(self, function: Callable[..., Any], entry: E) -> None:
        """Registers the entry of a function in this package. An entry from another package is only stored."""
        if function.__module__.startswith(f"{self._package}."):
            self.add(entry)
        else:
            self._offered[function] = entry

    def offered(self, function: object) -> E | None:
        """The entry that a plug-in declared with this function."""
        return self._offered.get(function) if callable(function) else None

    def take_in(self, entry: E) -> None:
        self._load()
        self.add(entry)
        self._entries = dict(sorted(self._entries.items()))

    def _load(self) -> dict[str, E]:
        if not self._loaded:
            self._loaded = True
            package: ModuleType = importlib.import_module(self._package)
            for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda info: info.name):
                importlib.import_module(f"{self._package}.{module.name}")
            self._entries = dict(sorted(self._entries.items()))
        return self._entries

    def __getitem__(self, key: str) -> E:
        return self._load()[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._load())

    def __len__(self) -> int:
        return len(self._load())


def documentation(module: str) -> tuple[str, str]:
    """The first line of the docstring of `module`, and the rest."""
    text = inspect.cleandoc(importlib.import_module(module).__doc__ or "")
    summary, _, rest = text.partition("\n")
    return summary, rest.strip()
