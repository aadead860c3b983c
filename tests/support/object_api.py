"""An API server that stores objects by path: enough to create, read and delete webhook configurations."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from aiohttp import web

from tests.support.loopback import served

KUBECONFIG = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "c", "cluster": {"server": ""}}],
    "users": [{"name": "u", "user": {"token": "t0ken"}}],
    "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    "current-context": "x",
}
_FIELDS = {"apiVersion": {}, "kind": {}, "spec": {"x-kubernetes-preserve-unknown-fields": True}}
_OF_MPIJOBS = {"properties": _FIELDS, "x-kubernetes-group-version-kind": [{"kind": "MPIJob"}]}
MPIJOB_SCHEMA = {"components": {"schemas": {"MPIJob": _OF_MPIJOBS}}}
"""The OpenAPI document of MPIJobs, with a schema that allows any spec."""


def kubeconfig(path: Path, server: str, **changes: Any) -> Path:
    """Write a kubeconfig for the API server at `server` to `path`. `changes` replace its top-level fields."""
    config = {**KUBECONFIG, "clusters": [{"name": "c", "cluster": {"server": server}}], **changes}
    path.write_text(json.dumps(config))  # JSON is YAML
    return path


class FakeApi:
    """Stores `objects` by path. `refusals` has the error (status, message) for each (method, path) that must fail.

    The API server's version is 1.`minor`. `impersonated` has the impersonation headers of each request.
    """

    def __init__(self) -> None:
        self.url = ""
        self.minor = "35"
        self.objects: dict[str, dict[str, Any]] = {}
        self.refusals: dict[tuple[str, str], tuple[int, str]] = {}
        self.calls: list[tuple[str, str]] = []
        self.impersonated: list[list[tuple[str, str]]] = []

    def put(self, path: str, **labels: str) -> str:
        """Store an object with these labels at `path`. Returns its uid."""
        name = path.rsplit("/", 1)[1]
        self.objects[path] = {"metadata": {"name": name, "uid": str(uuid4()), "labels": labels}}
        return str(self.objects[path]["metadata"]["uid"])

    async def _handle(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != "Bearer t0ken":
            return _status(401, "Unauthorized")
        self.calls.append((request.method, request.path))
        self.impersonated.append([pair for pair in request.headers.items() if pair[0].startswith("Impersonate-")])
        if refusal := self.refusals.get((request.method, request.path)):
            return _status(*refusal)
        body = await request.json() if request.can_read_body else {}
        if request.method == "POST":
            return self._create(f"{request.path}/{body['metadata']['name']}", body)
        stored = self.objects.get(request.path)
        if stored is None:
            return _status(404, f'"{request.path}" not found')
        if request.method == "DELETE":
            if (body.get("preconditions") or {}).get("uid", stored["metadata"]["uid"]) != stored["metadata"]["uid"]:
                return _status(409, "the UID in the precondition does not match")
            del self.objects[request.path]
        return web.Response(text=stored["log"]) if "log" in stored else web.json_response(stored)

    async def _version(self, request: web.Request) -> web.Response:
        return web.json_response({"major": "1", "minor": self.minor})

    def _create(self, path: str, body: dict[str, Any]) -> web.Response:
        if path in self.objects:
            return _status(409, f'"{path}" already exists')
        body["metadata"]["uid"] = str(uuid4())
        self.objects[path] = body
        return web.json_response(body, status=201)


def _status(code: int, message: str) -> web.Response:
    return web.json_response({"kind": "Status", "status": "Failure", "message": message, "code": code}, status=code)


@contextmanager
def fake_api() -> Iterator[FakeApi]:
    """A FakeApi that listens on loopback in a thread until the block ends."""
    api = FakeApi()
    app = web.Application()
    app.router.add_get("/version", api._version)
    app.router.add_route("*", "/{path:.*}", api._handle)
    with served(app) as api.url:
        yield api
