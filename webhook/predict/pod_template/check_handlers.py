"""Probes and lifecycle handlers: one way each, with a port that there can be."""

from typing import Final

from webhook.predict.pod_template import texts
from webhook.predict.pod_template.containers import Container
from webhook.predict.pod_template.fault import Faults, Kind
from webhook.predict.pod_template.handlers import Grpc, Handler, LifecycleHandler, Probe, ReadinessProbe, Sleep

_PERIOD: Final = 30  # the API server's default for terminationGracePeriodSeconds


def check_handlers(container: Container, path: str, found: Faults, *, grace_period: int | None) -> None:
    """Those of a container that runs as long as the pod does."""
    for field, probe in container.probes:
        if probe is not None:
            _probe(probe, f"{path}.{field}", container, found)
    if container.lifecycle is not None:
        for field, handler in (
            ("postStart", container.lifecycle.post_start),
            ("preStop", container.lifecycle.pre_stop),
        ):
            if handler is not None:
                _lifecycle(handler, f"{path}.lifecycle.{field}", container, found, grace_period)


def check_no_handlers(container: Container, path: str, found: Faults) -> None:
    """Of an init container, which runs to its end."""
    given = [field for field, probe in container.probes if probe is not None]
    if container.lifecycle is not None:
        given.append("lifecycle")
    for field in given:
        fault = "is not for init containers, unless they are sidecars"
        found.add(f"{path}.{field}", fault, "Remove it, or set restartPolicy: Always.", Kind.FORBIDDEN)


def _probe(probe: Probe, path: str, container: Container, found: Faults) -> None:
    _one(probe, path, container, found, {"grpc": probe.grpc}, choices="exec, httpGet, tcpSocket or grpc")
    if isinstance(probe, ReadinessProbe) and probe.termination_grace_period_seconds is not None:
        where = f"{path}.terminationGracePeriodSeconds"
        found.add(where, "is not for readiness probes", "Remove it.", Kind.FORBIDDEN)


def _lifecycle(
    handler: LifecycleHandler, path: str, container: Container, found: Faults, grace_period: int | None
) -> None:
    _one(handler, path, container, found, {"sleep": handler.sleep}, choices="exec, httpGet, tcpSocket or sleep")
    most = _PERIOD if grace_period is None else grace_period
    if handler.sleep is not None and not 0 <= (handler.sleep.seconds or 0) <= most:
        fault = f"must be between 0 and terminationGracePeriodSeconds, which is {most}"
        found.add(f"{path}.sleep.seconds", fault, "Correct the number.")


def _one(
    handler: Handler,
    path: str,
    container: Container,
    found: Faults,
    other: dict[str, Grpc | Sleep | None],
    *,
    choices: str,
) -> None:
    ways = {"exec": handler.exec, "httpGet": handler.http_get, "tcpSocket": handler.tcp_socket, **other}
    given = [field for field, way in ways.items() if way is not None]
    if not given:
        found.add(path, "does nothing", f"Set one of {choices}.", Kind.REQUIRED)
    elif given[1:]:
        found.add(path, f"has both {given[0]} and {given[1]}", "Keep one of them.", Kind.FORBIDDEN)
    for field, target in (("httpGet", handler.http_get), ("tcpSocket", handler.tcp_socket)):
        if target is not None and isinstance(target.port, str):
            if not target.port:
                found.add(f"{path}.{field}.port", "is empty", "Set it.", Kind.REQUIRED)
            elif problem := texts.port_name(target.port):
                texts.note(found, f"{path}.{field}.port", target.port, problem, "Write a number, or a port's name.")
            elif all(port.name != target.port for port in container.ports or ()):
                fault = f'the container has no port "{target.port}"'
                found.add(f"{path}.{field}.port", fault, "Write a number, or name the port.", advisory=True)
    if handler.http_get is not None:
        for index, one in enumerate(handler.http_get.http_headers or ()):
            if problem := texts.header(one.name):
                where = f"{path}.httpGet.httpHeaders[{index}].name"
                texts.note(found, where, one.name, problem, "Correct the name.")
