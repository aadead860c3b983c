"""The operations port, plain HTTP: `/healthz` (the process lives), `/readyz` (it may get reviews), `/metrics`,
`/metrics/jobs` (what is counted of jobs where an option asks for it; empty otherwise).

Liveness never depends on anything outside the process: a restart repairs neither a certificate nor an API server.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol, cast

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.aiohttp import make_aiohttp_handler

from webhook.server.http_server import Handler


class ReadinessCheck(Protocol):
    """Something that the service cannot do without."""

    @property
    def problem(self) -> str:
        """What is wrong, on one line for the operator."""
        ...

    def healthy(self) -> bool:
        """Whether nothing is wrong."""
        ...


@dataclass(frozen=True, slots=True)
class _State:
    """A check that somebody sets."""

    problem: str

    def healthy(self) -> bool:
        return not self.problem


@dataclass(frozen=True, slots=True)
class AskedCheck:
    """A check whose problem is asked for each time; it is healthy while there is none."""

    ask: Callable[[], str]

    @property
    def problem(self) -> str:
        """What is wrong now."""
        return self.ask()

    def healthy(self) -> bool:
        """Whether nothing is wrong now."""
        return not self.ask()


class Readiness:
    """Named checks; ready while every one of them is healthy."""

    def __init__(self, *names: str) -> None:
        """The checks `names` fail until they are set."""
        self._checks: dict[str, ReadinessCheck] = dict.fromkeys(names, _State("not yet"))
        self._sources: list[Callable[[], Mapping[str, str]]] = []

    def follow(self, name: str, check: ReadinessCheck) -> None:
        """From now on `check` itself is asked."""
        self._checks[name] = check

    def passes(self, name: str) -> None:
        """The check `name` is healthy from now on."""
        self._checks[name] = _State("")

    def fails(self, name: str, problem: str) -> None:
        """The check `name` fails from now on; `problem` is for the operator, on one line."""
        self._checks[name] = _State(problem)

    def concerns_of(self, source: Callable[[], Mapping[str, str]]) -> None:
        """Add a source of concerns: for each name, on one line, what is wrong while reviews are still answered."""
        self._sources.append(source)

    @property
    def ready(self) -> bool:
        """Whether every check is healthy."""
        return all(check.healthy() for check in self._checks.values())

    def report(self) -> str:
        """A line for each check, in the notation of Kubernetes' own components; and one for each concern."""
        lines = [
            f"[+]{name} ok" if check.healthy() else f"[-]{name} failed: {check.problem}"
            for name, check in self._checks.items()
        ]
        for source in self._sources:
            lines += [f"[!]{name}: {text}" for name, text in source().items()]
        return "\n".join([*lines, f"readyz check {'passed' if self.ready else 'failed'}", ""])


def handler(readiness: Readiness, registry: CollectorRegistry, jobs: CollectorRegistry) -> Handler:
    """Answers requests for these paths."""

    async def healthz(_: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.BaseRequest) -> web.Response:
        return web.Response(text=readiness.report(), status=200 if readiness.ready else 503)

    async def metrics_of_jobs(_: web.BaseRequest) -> web.Response:
        # Thousands of jobs and series take a while, and reviews do not wait for it.
        text = await asyncio.to_thread(generate_latest, jobs)
        return web.Response(body=text, headers={"Content-Type": CONTENT_TYPE_LATEST})

    handlers: dict[str, Handler] = {
        "/healthz": healthz,
        "/readyz": readyz,
        "/metrics": cast("Handler", make_aiohttp_handler(registry)),
        "/metrics/jobs": metrics_of_jobs,
    }

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.path not in handlers:
            return web.Response(status=404, text="there is no such path here\n")
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, text="use GET\n", headers={"Allow": "GET, HEAD"})
        return await handlers[request.path](request)

    return handle
