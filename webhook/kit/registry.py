"""Rules and injections find themselves: every module of their package is imported once, in the order of its name."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Generic, Protocol, TypeVar


class Registered(Protocol):
    """What a registry holds."""

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

    def add(self, entry: E) -> None:
        """Register `entry`; two with one id are a programming error."""
        if entry.id in self._entries:
            raise RuntimeError(f"two entries of {self._package} are called {entry.id!r}")
        self._entries[entry.id] = entry

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
