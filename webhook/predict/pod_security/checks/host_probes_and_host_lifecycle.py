"""Probes and lifecycle handlers connect to the pod and nowhere else: the kubelet must not be sent elsewhere.

**Restricted fields:**
- `spec.containers[*].livenessProbe.httpGet.host`, and the same with `readinessProbe` and `startupProbe`
- `spec.containers[*].livenessProbe.tcpSocket.host`, and the same with `readinessProbe` and `startupProbe`
- `spec.containers[*].lifecycle.postStart.httpGet.host`, and the same with `preStop`
- `spec.containers[*].lifecycle.postStart.tcpSocket.host`, and the same with `preStop`

**Allowed values:** unset, empty
"""

from collections.abc import Iterator

from webhook.predict.pod_security.checks import Result, Revision, register
from webhook.predict.pod_security.levels import Level, Version
from webhook.predict.pod_security.pod import Container, Handler
from webhook.predict.pod_security.subject import Subject
from webhook.predict.pod_security.texts import plural, quoted

ID = "hostProbesAndHostLifecycle"


def stays_in_pod(pod: Subject) -> Result | None:
    """Even the pod's own address and 127.0.0.1 may not be written."""
    names, hosts, paths = set(), set(), []
    for place in pod.containers:
        for path, handler in _handlers(place.container):
            for kind, endpoint in (("httpGet", handler.http_get), ("tcpSocket", handler.tcp_socket)):
                if endpoint is not None and endpoint.host:
                    names.add(place.name)
                    hosts.add(endpoint.host)
                    paths.append(f"{place.path}.{path}.{kind}.host")
    if not paths:
        return None
    who = f"{plural('container', 'containers', names)} {quoted(sorted(names))} {plural('uses', 'use', names)}"
    what = plural("probe or lifecycle host", "probe or lifecycle hosts", hosts)
    return Result(ID, "probe or lifecycle host", f"{who} {what} {quoted(sorted(hosts))}", tuple(paths))


def _handlers(container: Container) -> Iterator[tuple[str, Handler]]:
    if container.liveness_probe is not None:
        yield "livenessProbe", container.liveness_probe
    if container.readiness_probe is not None:
        yield "readinessProbe", container.readiness_probe
    if container.startup_probe is not None:
        yield "startupProbe", container.startup_probe
    if container.lifecycle is not None:
        if container.lifecycle.post_start is not None:
            yield "lifecycle.postStart", container.lifecycle.post_start
        if container.lifecycle.pre_stop is not None:
            yield "lifecycle.preStop", container.lifecycle.pre_stop


register(ID, Level.BASELINE, Revision(Version(34), stays_in_pod))
