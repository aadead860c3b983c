"""The operations port, plain HTTP: `/healthz` (the process lives), `/readyz` (it may get reviews), `/metrics`.

Liveness never depends on anything outside the process: a restart mends neither a certificate nor an API server.
"""

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.aiohttp import make_aiohttp_handler


class Readiness:
    """Named checks; ready when every one of them passes. Whoever owns a check sets it when its state changes."""

    def __init__(self, *names: str) -> None:
        """The checks `names` fail until they are set."""
        self._problems = dict.fromkeys(names, "not yet")

    def passes(self, name: str) -> None:
        """The check `name` is fine from now on."""
        self._problems[name] = ""

    def fails(self, name: str, problem: str) -> None:
        """The check `name` fails from now on; `problem` is for the operator, on one line."""
        self._problems[name] = problem

    @property
    def ready(self) -> bool:
        """Whether every check passes."""
        return not any(self._problems.values())

    def report(self) -> str:
        """A line for each check, in the notation of Kubernetes' own components."""
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in self._problems.items()]
        return "\n".join([*lines, f"readyz check {'passed' if self.ready else 'failed'}", ""])


def application(readiness: Readiness, registry: CollectorRegistry) -> web.Application:
    """The three paths."""

    async def healthz(_: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def readyz(_: web.Request) -> web.Response:
        return web.Response(text=readiness.report(), status=200 if readiness.ready else 503)

    app = web.Application()
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", make_aiohttp_handler(registry))
    return app
