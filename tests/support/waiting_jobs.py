"""Jobs with the annotation for a launcher that waits for its workers."""

from typing import Any

from tests.support.injecting import mpijob, pod_spec

READINESS = "training.openshift.io/worker-readiness"


def waiting_job(
    annotation: str | None = None,
    *,
    labels: dict[str, str] | None = None,
    worker: dict[str, Any] | None = None,
    launcher: dict[str, Any] | None = None,
    pod: dict[str, Any] | None = None,
    policy: str | None = "AtStartup",
    **spec: Any,
) -> dict[str, Any]:
    """A job in which `worker` and `launcher` are fields of the first container of each role.

    `pod` has fields of the launcher's pod spec. `policy` is `launcherCreationPolicy`.
    """
    templates = {"worker": {"spec": pod_spec()}, "launcher": {"spec": pod_spec(**(pod or {}))}}
    templates["worker"]["spec"]["containers"][0] |= worker or {}
    templates["launcher"]["spec"]["containers"][0] |= launcher or {}
    metadata = {"annotations": {} if annotation is None else {READINESS: annotation}, "labels": labels or {}}
    return mpijob(metadata=metadata, launcherCreationPolicy=policy, **templates, **spec)
