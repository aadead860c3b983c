"""Latency that a hook adds to a creation at a real API server. The client sends one dry run at a time.

Each hook is installed for a separate namespace, and the namespaces take turns, so that a slow period of the machine
affects all hooks. The webhook service watches the cluster, which has all objects that the job refers to.
"""

import argparse
import base64
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.bench import engines
from tests.bench.body import user_job
from tests.bench.machine import two_cores
from tests.bench.report import OPA, YARDSTICK, text
from tests.bench.servers import Servers
from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.support.installation import hooks
from tests.support.installation.load import ADMITTED, Client

NONE: Final = "none"
EACH: Final = 10
"""Measured creations per turn of a namespace. One creation before them is not measured."""
BROKEN: Final = "https://127.0.0.1:1/"
"""No server listens here, so a creation fails as soon as the API server calls the hook."""
_jobs = count()

Hooks = Mapping[str, str]
"""The URLs of hooks by kind, `Validating` or `Mutating`."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A namespace, and the hooks to which the API server sends the MPIJobs in it."""

    label: str
    hooks: Hooks

    @property
    def namespace(self) -> str:
        return "bench-" + "".join(letter if letter.isalnum() else "-" for letter in self.label.lower())


def configurations(place: Place, ca: bytes) -> Iterator[dict[str, Any]]:
    selector = {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}}
    for kind, url in place.hooks.items():
        client = {"url": url, "caBundle": base64.b64encode(ca).decode()}
        yield hooks.configuration(kind, place.namespace, client, hooks.MPIJOBS, namespaceSelector=selector)


def needed(namespace: str) -> Iterator[dict[str, Any]]:
    """The namespace, and the objects in it that the job refers to."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}}
    for name in ("data", "checkpoints"):
        metadata = {"name": name, "namespace": namespace}
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    for kind, name in (("ConfigMap", "resnet-config"), ("ServiceAccount", "default")):
        yield {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def install(cluster: Cluster, places: Sequence[Place], ca: bytes) -> None:
    """Register the hooks of all namespaces, and wait until the API server calls them."""
    broken = [Place(label=f"{kind} broken", hooks={kind: BROKEN}) for kind in ("Validating", "Mutating")]
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "training"}}
    cluster.apply(
        [priority | {"value": 1}, *(made for place in (*places, *broken) for made in needed(place.namespace))]
    )
    # The API server loads configurations in order: when it calls the last hook, it already calls all other hooks.
    cluster.apply([made for place in (*places, *broken) for made in configurations(place, ca)])
    client = Client(cluster.kubeconfig)
    for place in broken:
        cluster.wait_for(f"hooks of {place.label}", lambda place=place: create(client, place)[0] != ADMITTED)
    client.close()


def create(client: Client, place: Place) -> tuple[str, float]:
    """The API server's answer to the creation of a new job, and the time in ms."""
    job = user_job(0, f"{next(_jobs):09}")
    job["metadata"]["namespace"] = place.namespace
    path = f"/apis/kubeflow.org/v2beta1/namespaces/{place.namespace}/mpijobs"
    sent = json.dumps(job).encode()
    began = time.perf_counter()
    answer = client.create(path, sent)
    return answer, (time.perf_counter() - began) * 1e3


def in_turns(cluster: Cluster, places: Sequence[Place], rounds: int) -> dict[str, list[float]]:
    """The times of all creations in ms. Raises ControlPlaneError if a creation is not admitted."""
    client = Client(cluster.kubeconfig)
    times: dict[str, list[float]] = {place.label: [] for place in places}
    for _ in range(rounds):
        for place in places:
            for number in range(EACH + 1):
                answer, taken = create(client, place)
                if answer != ADMITTED:
                    raise ControlPlaneError(f"{place.label}: {answer}")
                if number:
                    times[place.label].append(taken)
    client.close()
    return times


def table(times: Mapping[str, Sequence[float]]) -> Iterator[tuple[str, ...]]:
    yield "hooks", "creations", "p50 ms", "p99 ms", "p50 added", "p99 added"
    without = times[NONE]
    for label, taken in times.items():
        added = [f"{median(taken) - median(without):+.1f}", f"{p99(taken) - p99(without):+.1f}"]
        yield (
            label,
            str(len(taken)),
            f"{median(taken):.1f}",
            f"{p99(taken):.1f}",
            *(added if label != NONE else ["", ""]),
        )


def p99(taken: Sequence[float]) -> float:
    return quantiles(taken, n=100)[-1]


def measure(arguments: argparse.Namespace, progress: Progress) -> str:
    """A table of all hooks, measured in turns. Raises ControlPlaneError if a program cannot be built or started."""
    server_core, _ = two_cores()
    programs = assets(progress=progress)
    progress.say("Starting an API server, to measure the latency that each hook adds to a creation.")
    with (
        Cluster(controller_manager=False) as cluster,
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        Servers(Path(name), core=server_core) as servers,
    ):
        ours = f"https://{servers.service('ours', '--kubeconfig', cluster.kubeconfig).address}"
        validate, mutate = f"{ours}/validate-mpijob", f"{ours}/mutate-mpijob"
        places = [
            Place(label=NONE, hooks={}),
            Place(label=YARDSTICK, hooks={"Validating": f"https://{servers.yardstick(programs).address}/"}),
            Place(label="validate", hooks={"Validating": validate}),
            Place(label="mutate", hooks={"Mutating": mutate}),
            Place(label="validate and mutate", hooks={"Validating": validate, "Mutating": mutate}),
        ]
        if "opa" not in arguments.without:
            opa = servers.opa(engines.program(progress), engines.POLICY)
            places.append(Place(label=OPA, hooks={"Validating": f"https://{opa.address}{engines.PATH}"}))
        install(cluster, places, servers.ca.read_bytes())
        progress.say(f"{arguments.rounds * 10} rounds of {EACH} creations for each of {len(places)} hooks: a minute.")
        times = in_turns(cluster, places, arguments.rounds * 10)
    return text([*table(times)], left=1)
