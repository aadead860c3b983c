"""The kinds of objects that the service watches, one file each, discovered by import.

A file declares a `Resource`: the fields that are read, and the small frozen record to cache. A new file is watched,
read from snapshots and in the ClusterRole that `make manifests` writes; SECURITY.md lists it by hand. Keep only fields
that a rule or an injection uses: the service caches a record for every such object of the cluster.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from webhook.cluster.resource import Resource


@cache
def watched_resources() -> tuple[Resource[Any, Any], ...]:
    """Every resource declared in a module of this package, in the order of the modules' names."""
    modules = sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name)
    resources: list[Resource[Any, Any]] = []
    for module in modules:
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Resource) and value not in resources:
                resources.append(value)
    return tuple(resources)
