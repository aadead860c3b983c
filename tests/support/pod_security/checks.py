"""Running one check on one pod."""

from collections.abc import Mapping
from typing import Any

from webhook.predict.pod_security.checks import REGISTRY
from webhook.predict.pod_security.levels import Version
from webhook.predict.pod_security.pod import convert
from webhook.predict.pod_security.subject import Subject

Found = tuple[str, str, str] | None


def found(check: str, minor: int, spec: Mapping[str, Any], annotations: Mapping[str, str] | None = None) -> Found:
    """What `check` says at v1.`minor` about a pod: (reason, detail, paths between spaces), or None.

    At a version without the check: ("no such check", "", "").
    """
    revision = REGISTRY[check].at(Version(minor))
    if revision is None:
        return "no such check", "", ""
    result = revision.evaluate(Subject(convert({"metadata": {"annotations": annotations}, "spec": spec})))
    return None if result is None else (result.reason, result.detail, " ".join(result.paths))


def containers(*contexts: Mapping[str, Any] | None) -> dict[str, Any]:
    """A spec with containers a, b, ... that have these security contexts."""
    return {"containers": [{"name": "abc"[i], "securityContext": context} for i, context in enumerate(contexts)]}


def everywhere(**fields: Any) -> dict[str, Any]:
    """A spec with an init container, a container and an ephemeral container that have these fields."""
    return {
        "initContainers": [{"name": "init", **fields}],
        "containers": [{"name": "main", **fields}],
        "ephemeralContainers": [{"name": "debug", **fields}],
    }


def paths(field: str) -> str:
    """The paths of `field` in the containers of `everywhere`."""
    return " ".join(f"spec.{kind}[0].{field}" for kind in ("initContainers", "containers", "ephemeralContainers"))


ALL = 'containers "init", "main", "debug"'
NONE = ("no such check", "", "")
WINDOWS = {"os": {"name": "windows"}}
