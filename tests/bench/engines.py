"""Runs Open Policy Agent (OPA) with ten of the service's rules, and checks that both reject the same jobs."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.bench.servers import Server
from tests.controlplane.build import ensure_built
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.controlplane.recipe import Recipe, Target
from tests.support.jobs import GOOD, REMOVE, body, changed

HERE: Final = Path(__file__).parent / "opa"
POLICY: Final = HERE / "policy.rego"
PATH: Final = "/v0/data/mpijob/review"
"""The path to which reviews are sent."""
RECIPE: Final = Recipe(
    what="Open Policy Agent, which the benchmarks measure",
    takes="2 to 5 minutes",
    targets=(Target(name="opa", package="github.com/open-policy-agent/opa"),),
    root=HERE,
)
BROKEN: Final[tuple[Mapping[str, Any], ...]] = (
    {"Worker.replicas": 1},
    {"Worker.replicas": 101},
    {"Worker.template.spec.containers.0.resources.limits.nvidia\\.com/gpu": 17},
    {"spec.slotsPerWorker": 9},
    {"Launcher.replicas": 2},
    {"spec.runPolicy.cleanPodPolicy": "Everything"},
    {"spec.sshAuthMountPath": "/etc/mpi/"},
    {"metadata.name": "a" * 60},
    {"spec.runPolicy.backoffLimit": -1},
    {"Worker.template.spec.containers.0.image": REMOVE},
)
"""Changes of a valid job. Each change violates one of the ten rules."""


def program(progress: Progress) -> Path:
    """The program, built unless it is cached. Raises ControlPlaneError if the build fails."""
    return ensure_built(RECIPE, progress=progress) / "bin" / "opa"


def disagreements(engine: Server, ours: Server, ca: Path) -> Iterator[str]:
    """The jobs with a wrong verdict from OPA or from the service."""
    for changes in ({}, *BROKEN):
        sent = body(changed(changes, GOOD))
        theirs = _allowed(engine, PATH, sent, ca)
        if theirs != _allowed(ours, "/validate-mpijob?timeout=10s", sent, ca) or theirs != (not changes):
            yield f"{dict(changes)}: {'allowed' if theirs else 'rejected'} by OPA"


def _allowed(server: Server, path: str, sent: bytes, ca: Path) -> bool:
    connection = http.client.HTTPSConnection(server.address, context=ssl.create_default_context(cafile=ca), timeout=30)
    connection.request("POST", path, sent, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    if "response" not in answer:
        raise ControlPlaneError(f"{path} answered {str(answer)[:300]}")
    return bool(answer["response"]["allowed"])
