"""Fields by their paths in messages: `spec.mpiReplicaSpecs[Worker].template.spec.containers[0].image`."""

import re
from typing import Any, Final

from webhook.api.text import visible

Json = dict[str, Any]
Path = tuple[str, ...]

_PART: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


def parse(text: str) -> Path:
    """The path in its parts; what stands in brackets is one part."""
    return tuple(key or name for key, name in _PART.findall(text))


def key(parent: Json, part: str) -> str:
    """The key that a message shows as `part`."""
    return part if part in parent else next((each for each in parent if visible(each) == part), part)


def get(job: Any, path: Path) -> Any:
    """What is there; None for nothing."""
    for part in path:
        if isinstance(job, list):
            job = job[int(part)] if part.isdecimal() and int(part) < len(job) else None
        else:
            job = job.get(key(job, part)) if isinstance(job, dict) else None
    return job


def put(job: Any, path: Path, value: Any) -> None:
    """Write `value`, with the mappings that it stands in; LookupError where an item of a list is missing."""
    *parents, last = path
    for part in parents:
        if isinstance(job, list):
            job = job[int(part)]
        else:
            name = key(job, part)
            if not isinstance(job.get(name), dict | list):
                job[name] = {}
            job = job[name]
    if isinstance(job, list):
        job[int(last)] = value
    else:
        job[key(job, last)] = value


def remove(job: Any, path: Path) -> None:
    """Take it out, if it is there."""
    parent, last = get(job, path[:-1]), path[-1]
    if isinstance(parent, list) and last.isdecimal() and int(last) < len(parent):
        del parent[int(last)]
    elif isinstance(parent, dict):
        parent.pop(key(parent, last), None)
