"""The kinds of objects that the service watches, one file each, discovered by import.

A file declares a `Resource`: the fields that are read, and the small frozen record to cache. A resource in a new file
is watched, read from snapshots, and added to the ClusterRole by `make manifests`. Add it to SECURITY.md by hand. A
record should only have fields that a rule or an injection uses, because the service caches the records of all objects.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from webhook.cluster.resource import Resource


@cache
def watched_resources() -> tuple[Resource[Any, Any], ...]:
    """All resources in the modules of this package, ordered by module name."""
    modules = sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name)
    resources: list[Resource[Any, Any]] = []
    for module in modules:
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Resource) and value not in resources:
                resources.append(value)
    return tuple(resources)
