"""The resources that the service looks at, one file each. A new file here is watched, and read from snapshots."""

import importlib
import pkgutil
from functools import cache
from typing import Any

from webhook.cluster.resource import Resource


@cache
def watched_resources() -> tuple[Resource[Any, Any], ...]:
    """Every resource declared in a module of this package, in the order of the modules' names."""
    modules = sorted(pkgutil.iter_modules(__path__), key=lambda found: found.name)
    found: list[Resource[Any, Any]] = []
    for module in modules:
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Resource) and value not in found:
                found.append(value)
    return tuple(found)
