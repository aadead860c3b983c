"""Policy engines with ten of our rules, and whether they refuse what our own refuse."""

import http.client
import json
import ssl
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.servers import Server
from tests.controlplane.build import ensure_built
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.controlplane.recipe import Recipe, Target
from tests.support.jobs import GOOD, REMOVE, body, changed

HERE: Final = Path(__file__).parent
IMAGE: Final = "Worker.template.spec.containers.0.image"
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
    {IMAGE: REMOVE},
)
"""What is wrong in a job that one of the ten rules refuses."""


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A policy engine: what it is built from, its file with the ten rules, and where it takes reviews."""

    name: str
    """In the table."""
    recipe: Recipe
    policy: Path
    path: str

    def program(self, progress: Progress) -> Path:
        """The program, built where it is not there yet; ControlPlaneError if it cannot be."""
        return ensure_built(self.recipe, progress=progress) / "bin" / self.recipe.targets[0].name

    def disagreements(self, engine: Server, ours: Server, ca: Path) -> Iterator[str]:
        """The jobs of which only one of the two thinks well, the good one among them."""
        for changes in ({}, *BROKEN):
            sent = body(changed(changes, GOOD))
            theirs = _allowed(engine, self.path, sent, ca)
            if theirs != _allowed(ours, "/validate-mpijob?timeout=10s", sent, ca) or theirs != (not changes):
                yield f"{dict(changes)}: {'allowed' if theirs else 'refused'} by {self.name}"


OPA: Final = Engine(
    name="OPA, ten rules",
    recipe=Recipe(
        what="Open Policy Agent, which the benchmarks measure beside us",
        takes="2 to 5 minutes",
        targets=(Target(name="opa", package="github.com/open-policy-agent/opa"),),
        root=HERE / "opa",
    ),
    policy=HERE / "opa" / "policy.rego",
    path="/v0/data/mpijob/review",
)
KYVERNO: Final = Engine(
    name="Kyverno, ten rules",
    recipe=Recipe(
        what="Kyverno's engine, which the benchmarks measure beside us",
        takes="4 to 8 minutes",
        targets=(Target(name="kyverno", package="."),),
        root=HERE / "kyverno",
    ),
    policy=HERE / "kyverno" / "policy.yaml",
    path="/?timeout=10s",
)


def _allowed(server: Server, path: str, sent: bytes, ca: Path) -> bool:
    connection = http.client.HTTPSConnection(server.address, context=ssl.create_default_context(cafile=ca), timeout=30)
    connection.request("POST", path, sent, {"Content-Type": "application/json"})
    answer = json.loads(connection.getresponse().read())
    connection.close()
    if "response" not in answer:
        raise ControlPlaneError(f"{path} answered {str(answer)[:300]}")
    return bool(answer["response"]["allowed"])
