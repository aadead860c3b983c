"""The parts of the official Kubernetes client that are used here.

Its package loads all others as well, and what they need, which takes a quarter of the service's start.
"""

import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from typing import Any, Final


def _part(name: str) -> Any:
    """The module of this name, for which no package above it is run; parts of those are found all the same."""
    package = ""
    for each in name.split(".")[:-1]:
        package = f"{package}.{each}".lstrip(".")
        if package not in sys.modules and (spec := find_spec(package)) is not None:
            sys.modules[package] = module_from_spec(spec)
    return import_module(name)


client: Final = _part("kubernetes.aio.client")
config: Final = _part("kubernetes.aio.config")
kube_config: Final = _part("kubernetes.aio.config.kube_config")
