"""The kinds of objects that the service watches. Each kind has a file; the files are found automatically.

A file declares a `Resource` and its record. A record should only have fields that a rule or an injection uses: the
service caches the records of all objects. After you add a file, run `make manifests` and edit SECURITY.md.
"""

import importlib
import pkgutil
from functools import cache
from typing import Any

from webhook.cluster.resource import Resource


@cache
def watched_resources() -> tuple[Resource[Any, Any], ...]:
    """All resources in this package, ordered by module name."""
    modules = sorted(pkgutil.iter_modules(__path__), key=lambda module: module.name)
    resources: list[Resource[Any, Any]] = []
    for module in modules:
        for value in vars(importlib.import_module(f"{__name__}.{module.name}")).values():
            if isinstance(value, Resource) and value not in resources:
                resources.append(value)
    return tuple(resources)
