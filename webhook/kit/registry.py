"""Registries of rules and injections: every module of their package is imported once, in the order of its name.

Entries declared in other packages belong to plug-ins. They are offered, and in force once `webhook.plugins` adds them.
"""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator, Mapping
from types import ModuleType
from typing import Any, Generic, Protocol, TypeVar


class Registered(Protocol):
    """An entry of a registry."""

    @property
    def id(self) -> str:
        """Its name in policies, metrics and messages."""
        ...


E = TypeVar("E", bound=Registered)


class Registry(Mapping[str, E], Generic[E]):
    """Entries by id, sorted; filled by the decorators of one package's modules on first use."""

    def __init__(self, package: str) -> None:
        self._package = package
        self._entries: dict[str, E] = {}
        self._loaded = False
        self._offered: dict[Callable[..., Any], E] = {}
        self.unusable: set[str] = set()
        """Ids of broken plug-ins: policies may still name them, without effect."""

    def add(self, entry: E) -> None:
        """Register `entry`; two with one id are a programming error."""
        if entry.id in self._entries:
            raise RuntimeError(f"two entries of {self._package} are called {entry.id!r}")
        self._entries[entry.id] = entry

    def declare(self, function: Callable[..., Any], entry: E) -> None:
        """Register the `entry` of a function of this package; an entry of another package is only offered."""
        if function.__module__.startswith(f"{self._package}."):
            self.add(entry)
        else:
            self._offered[function] = entry

    def offered(self, function: object) -> E | None:
        """The entry that a plug-in has declared with this function."""
        return self._offered.get(function) if callable(function) else None

    def take_in(self, entry: E) -> None:
        """Register a plug-in's entry, in addition to all of the package."""
        self._load()
        self.add(entry)
        self._entries = dict(sorted(self._entries.items()))

    def _load(self) -> dict[str, E]:
        if not self._loaded:
            self._loaded = True
            package: ModuleType = importlib.import_module(self._package)
            for module in sorted(pkgutil.iter_modules(package.__path__), key=lambda found: found.name):
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
    """(first line, the rest) of the docstring of `module`: the summary and the explanation shown to users."""
    text = inspect.cleandoc(importlib.import_module(module).__doc__ or "")
    summary, _, rest = text.partition("\n")
    return summary, rest.strip()
