"""Every field where a template breaks a check, so that two templates can be compared.

A check of the whole template is not enough: if one container has a wrong value, the check may not report the containers
without a value. The containers are therefore also checked one by one.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from webhook.predict.pod_security.checks import Result, evaluate
from webhook.predict.pod_security.levels import LevelVersion, Version
from webhook.predict.pod_security.pod import PodTemplate

_STEP: Final = re.compile(r"([A-Za-z]+)|\[(\d+)\]")
_KINDS: Final = {
    "initContainers": "init_containers",
    "containers": "containers",
    "ephemeralContainers": "ephemeral_containers",
}
# This check fails because an item is missing from the list, not because of the items in the list.
_LACKS: Final = ("capabilities_restricted", "drop")


def places(levels: LevelVersion, template: PodTemplate, *, newest: Version) -> dict[str, frozenset[str]]:
    """For each check id, the fields that break the check, as `path=value`. Each item of a list counts as a field."""
    whole = msgspec.to_builtins(template)
    by_check: dict[str, set[str]] = {}
    for result, path in _broken(levels, template, newest):
        by_check.setdefault(result.check, set()).update(_with_values(result.check, path, whole))
    return {check: frozenset(fields) for check, fields in by_check.items()}


def _broken(levels: LevelVersion, template: PodTemplate, newest: Version) -> Iterator[tuple[Result, str]]:
    """(result, path of a field), for the whole template and for each container alone."""
    for result in evaluate(*levels, template, newest=newest):
        yield from ((result, path) for path in result.paths)
    spec = template.spec
    if spec is None:
        return
    none = dict.fromkeys((*_KINDS.values(), "volumes"))
    for kind, field in _KINDS.items():
        for index, container in enumerate(getattr(spec, field) or ()):
            alone = PodTemplate(spec=msgspec.structs.replace(spec, **{**none, field: [container]}))
            for result in evaluate(*levels, alone, newest=newest):
                for path in result.paths:
                    yield result, path.replace(f"spec.{kind}[0]", f"spec.{kind}[{index}]")


def _with_values(check: str, path: str, whole: Any) -> Iterator[str]:
    if (check, path.rpartition(".")[2]) == _LACKS:
        yield path
        return
    value = whole
    for name, position in _STEP.findall(path):
        if isinstance(value, dict):
            value = value.get(name)
        elif isinstance(value, list) and position and int(position) < len(value):
            value = value[int(position)]
        else:
            value = None
    for item in value if isinstance(value, list) and value else [value]:
        yield f"{path}={msgspec.json.encode(item).decode()}"
