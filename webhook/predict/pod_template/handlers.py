"""Probes and lifecycle handlers."""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from webhook.predict.pod_template.forms import Int64, LongPositive, NonEmpty, NotNegative, PortNumber, PortReference


class Exec(msgspec.Struct, gc=False):
    """A command."""

    command: Annotated[list[str], Meta(min_length=1)]


class Header(msgspec.Struct, gc=False):
    """A header of a request."""

    name: NonEmpty
    value: str | None = None


class HttpGet(msgspec.Struct, rename="camel", gc=False):
    """A request by HTTP."""

    port: PortReference
    path: str | None = None
    host: str | None = None
    scheme: Literal["", "HTTP", "HTTPS"] | None = None
    http_headers: list[Header] | None = None


class TcpSocket(msgspec.Struct, gc=False):
    """A connection."""

    port: PortReference
    host: str | None = None


class Grpc(msgspec.Struct, gc=False):
    """A gRPC health check."""

    port: PortNumber
    service: str | None = None


class Sleep(msgspec.Struct, gc=False):
    """Nothing but time."""

    seconds: Int64 | None = None


class Handler(msgspec.Struct, rename="camel", gc=False):
    """One of these."""

    exec: Exec | None = None
    http_get: HttpGet | None = None
    tcp_socket: TcpSocket | None = None


class LifecycleHandler(Handler, rename="camel", gc=False):
    """What runs after start or before stop."""

    sleep: Sleep | None = None


class Lifecycle(msgspec.Struct, rename="camel", gc=False):
    """What runs after start and before stop."""

    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None


class Probe(Handler, rename="camel", gc=False):
    """How often is asked, and what counts."""

    grpc: Grpc | None = None
    initial_delay_seconds: NotNegative | None = None
    timeout_seconds: NotNegative | None = None
    period_seconds: NotNegative | None = None
    success_threshold: NotNegative | None = None
    failure_threshold: NotNegative | None = None
    termination_grace_period_seconds: LongPositive | None = None


class ReadinessProbe(Probe, rename="camel", gc=False):
    """Whether the container is ready; it never ends the container."""


class ProbeOfLife(Probe, rename="camel", gc=False):
    """Whether the container is alive or has started: one success is enough."""

    success_threshold: Literal[0, 1] | None = None
