"""Finds the right places of fields that a user has put into a wrong object of a job."""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, cast

from webhook.api.crd_schema import Shape
from webhook.api.kueue import QUEUE_NAME
from webhook.api.mpijob import WORKER, meant_role
from webhook.api.untyped import mapping
from webhook.cli.job_schema_values import accepts
from webhook.cli.policy import job_fields

GPU: Final = "nvidia.com/gpu"
_ROLES: Final = "spec.mpiReplicaSpecs"
_ROLE: Final = re.compile(r"spec\.mpiReplicaSpecs\[[^\[\]]+\]")
_CONTAINER: Final = re.compile(r".+?\.(?:c|initC)ontainers\[\d+\]")
_OBJECTS: Final = (
    "{container}", "{container}.resources", "{container}.resources.limits", "{container}.securityContext", "{role}",
    "{pod}", "{pod}.securityContext", "{role}.template", "{role}.template.metadata", "",
    _ROLES, "metadata", "metadata.labels", "spec", "spec.runPolicy.schedulingPolicy", "spec.runPolicy",
)  # fmt: skip
"""The objects of a job in which misplaced fields are looked up, from a container to the job."""
_ONLY: Final = {
    QUEUE_NAME: ("metadata.labels",), **dict.fromkeys(("name", "namespace"), ("metadata",)),
    **dict.fromkeys(("annotations", "labels"), ("metadata", "{role}.template.metadata")),
    "activeDeadlineSeconds": ("spec.runPolicy",), "restartPolicy": ("{role}",), "securityContext": ("{pod}",),
    "resources": ("{container}",),
}  # fmt: skip
"""Fields that several objects of a job have, with the objects that users mean."""
_OBJECT: Final = Shape("object")
_AMOUNTS: Final = {"limits": {"cpu", "memory", "ephemeral-storage"}, "requests": {"storage"}}


def at(path: str, key: str, shape: Shape) -> str:
    """The path of the field `key` in the object at `path`. `shape` is the shape of this object."""
    return f"{path}[{key}]" if "." in key or shape.values else f"{path}.{key}".lstrip(".")


class Places:
    """The places in a job where a field is valid and not set."""

    def __init__(self, job: Mapping[str, Any], root: Shape) -> None:
        self._job = job
        self._root = root

    def of(self, key: str, value: Any, path: str) -> list[str]:
        """The places of the unknown field `key` of the object at `path`: one, or one in each role; empty if unclear."""
        key = QUEUE_NAME if key in {"queueName", "queue"} and path in {"metadata", "spec"} else key
        given, in_role = job_fields.get(self._job, _ROLES), _ROLE.match(path)
        roles = [role for role, each in mapping(given).items() if isinstance(each, dict)]
        roles = [WORKER] if key == GPU or not roles else roles
        paths = [in_role[0]] if in_role else [f"{_ROLES}[{role}]" for role in roles]
        with suppress(job_fields.FieldError):  # there may be brackets in a key
            places = [self._in_role(key, value, path, role) for role in paths]
            return [*dict.fromkeys(filter(None, places))] if all(places) else []
        return []

    def _in_role(self, key: str, value: Any, path: str, role: str) -> str:
        """The path of the field in the first object of `_OBJECTS` that may have it; empty if unclear.

        If none may have the field, the objects inside the object at `path` are searched: exactly one must allow it.
        """
        in_container, pod = _CONTAINER.match(path), f"{role}.template.spec"
        container = in_container[0] if in_container else f"{pod}.containers[0]"
        for place in _OBJECTS if _ROLE.match(path) else reversed(_OBJECTS):
            where = place.format(role=role, pod=pod, container=container)
            if place in _ONLY.get(key, (place,)) and (home := self._free(key, value, where)) is not None:
                return home
        inner = self._shape(path).fields if key not in _ONLY else ()
        homes = [home for name in inner if (home := self._free(key, value, at(path, name, _OBJECT)))]
        return homes[0] if len(homes) == 1 else ""

    def _free(self, key: str, value: Any, path: str) -> str | None:
        """The path of the field in the object at `path`; None for an unknown field, empty if it cannot be set."""
        shape, name = self._shape(path), path.rpartition(".")[2]
        field = shape.fields.get(key)
        if shape.values is not None:
            is_role = bool(shape.values.fields) and meant_role(key) and isinstance(value, dict)
            is_amount = key in _AMOUNTS.get(name, ()) or (name == "limits" and "/" in key and str(value)[:1].isdigit())
            is_label = name == "matchLabels" and isinstance(value, str)
            field = shape.values if is_role or is_amount or is_label or key == QUEUE_NAME else None
        if field is None:
            return None
        where, parent = at(path, key, shape), cast("Any", self._job)
        steps = job_fields.place(self._job, where)
        for step in steps:
            parent = parent[step]
        free = len(steps) < len(job_fields.parse(where)) and (not parent or isinstance(parent, dict))
        return where if free and accepts(field, value, key) else ""

    def _shape(self, path: str) -> Shape:
        shape = self._root
        for key in job_fields.parse(path) if path else ():
            shape = shape.fields.get(key) or shape.values or shape.items or _OBJECT
        return shape
