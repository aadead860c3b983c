"""The operations port, plain HTTP.

`/healthz` (the process runs), `/readyz` (it accepts reviews), `/metrics`, and `/metrics/jobs` (empty unless an option
switches job metrics on). Liveness depends only on the process: a restart would not repair a certificate or an API
server.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import cast

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.aiohttp import make_aiohttp_handler

from webhook.server.http_server import Handler


class Readiness:
    """Checks by name: functions that return a problem on one line, or nothing.

    The service is ready while no check returns a problem.
    """

    def __init__(self, *names: str) -> None:
        """The checks fail until they are set to pass."""
        self._checks: dict[str, Callable[[], str]] = dict.fromkeys(names, lambda: "not yet")
        self._sources: list[Callable[[], Mapping[str, str]]] = []

    def follow(self, name: str, problem: Callable[[], str]) -> None:
        self._checks[name] = problem

    def passes(self, name: str) -> None:
        self.follow(name, lambda: "")

    def fails(self, name: str, problem: str) -> None:
        """`problem` is one line for the administrator."""
        self.follow(name, lambda: problem)

    def concerns_of(self, source: Callable[[], Mapping[str, str]]) -> None:
        """A concern is a problem on one line. It does not make the service unready."""
        self._sources.append(source)

    @property
    def ready(self) -> bool:
        return not any(problem() for problem in self._checks.values())

    def report(self) -> str:
        """A line for each check and each concern, in the notation of Kubernetes components."""
        problems = {name: problem() for name, problem in self._checks.items()}
        lines = [f"[-]{name} failed: {text}" if text else f"[+]{name} ok" for name, text in problems.items()]
        for source in self._sources:
            lines += [f"[!]{name}: {text}" for name, text in source().items()]
        return "\n".join([*lines, f"readyz check {'passed' if self.ready else 'failed'}", ""])


def handler(readiness: Readiness, registry: CollectorRegistry, jobs: CollectorRegistry) -> Handler:
    async def healthz(_: web.BaseRequest) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.BaseRequest) -> web.Response:
        return web.Response(text=readiness.report(), status=200 if readiness.ready else 503)

    async def metrics_of_jobs(_: web.BaseRequest) -> web.Response:
        # thousands of series take a while, and reviews must not wait for them
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
