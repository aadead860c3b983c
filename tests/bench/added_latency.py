"""What a hook adds to a creation at a real API server: dry runs, one after the other, by a client that waits for each.

Every hook is installed for a namespace of its own, and the namespaces take turns, so that what slows the machine for a
while slows them all. Ours follows the cluster, in which all is there that the job refers to.
"""

import argparse
import base64
import json
import ssl
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any, Final

from tests.bench import engines
from tests.bench.body import mutate_body, user_job
from tests.bench.machine import two_cores
from tests.bench.report import Budget
from tests.bench.section import Section, Table
from tests.bench.servers import Servers
from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.support.installation.load import ADMITTED, Client

NONE: Final = "none"
GO: Final = "Go, allows only"
REPLAYED: Final = "our patch, replayed"
ONE_LABEL: Final = "a patch of one label, replayed"
NO_PATCH: Final = "no patch, replayed"
WITHIN: Final = 1.0
"""How many ms more than the Go server's our median may be."""
EACH: Final = 10
"""Creations in a namespace before the next one's turn; one more before, which does not count."""
BROKEN: Final = "https://127.0.0.1:1/"

Hooks = Mapping[str, str]
"""The URL of a hook by its kind, `Validating` or `Mutating`."""


@dataclass(frozen=True, kw_only=True)
class Place:
    """A namespace with hooks of its own."""

    label: str
    hooks: Hooks

    @property
    def namespace(self) -> str:
        """Its name."""
        return "bench-" + "".join(letter if letter.isalnum() else "-" for letter in self.label.lower())


def configurations(place: Place, ca: bytes) -> Iterator[dict[str, Any]]:
    """What registers the hooks of a namespace."""
    rule = {
        "apiGroups": ["kubeflow.org"],
        "apiVersions": ["v2beta1"],
        "operations": ["CREATE"],
        "resources": ["mpijobs"],
    }
    for kind, url in place.hooks.items():
        hook = {
            "name": f"{kind.lower()}.bench.example.com",
            "admissionReviewVersions": ["v1"],
            "sideEffects": "NoneOnDryRun",
            "timeoutSeconds": 10,
            "clientConfig": {"url": url, "caBundle": base64.b64encode(ca).decode()},
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": place.namespace}},
            "rules": [rule],
        }
        yield {
            "apiVersion": "admissionregistration.k8s.io/v1",
            "kind": f"{kind}WebhookConfiguration",
            "metadata": {"name": place.namespace},
            "webhooks": [hook],
        }


def job(namespace: str) -> dict[str, Any]:
    """The job that is created, over and over."""
    made = user_job(0)
    made["metadata"]["namespace"] = namespace
    return made


def needed(namespace: str) -> Iterator[dict[str, Any]]:
    """The namespace, and what the job refers to in it."""
    yield {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}
    spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Ti"}}}
    for name in ("imagenet-000", "resnet-checkpoints"):
        metadata = {"name": name, "namespace": namespace}
        yield {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
    for kind, name in (("ConfigMap", "resnet-config"), ("ServiceAccount", "default")):
        yield {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}}


def install(cluster: Cluster, places: Sequence[Place], ca: bytes) -> None:
    """Register the hooks of all places; return once the API server calls them."""
    broken = [Place(label=f"{kind} broken", hooks={kind: BROKEN}) for kind in ("Validating", "Mutating")]
    priority = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "training"}}
    cluster.apply(
        [priority | {"value": 1}, *(each for place in (*places, *broken) for each in needed(place.namespace))]
    )
    # The API server learns of them in their order: once the last is called, all are.
    cluster.apply([each for place in (*places, *broken) for each in configurations(place, ca)])
    client = Client(cluster.kubeconfig)
    for place in broken:
        cluster.wait_for(f"hooks of {place.label}", lambda place=place: create(client, place)[0] != ADMITTED)
    client.close()


def create(client: Client, place: Place) -> tuple[str, float]:
    """What the API server answered, after how many ms."""
    path = f"/apis/kubeflow.org/v2beta1/namespaces/{place.namespace}/mpijobs"
    sent = json.dumps(job(place.namespace)).encode()
    began = time.perf_counter()
    answer = client.create(path, sent)
    return answer, (time.perf_counter() - began) * 1e3


def in_turns(cluster: Cluster, places: Sequence[Place], rounds: int) -> dict[str, list[float]]:
    """The times of all creations in ms; ControlPlaneError where one is not admitted."""
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
    """The headings and a line for each hook."""
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
    """The time that one of a hundred takes."""
    return quantiles(taken, n=100)[-1]


def reply(hook: str, ca: Path) -> bytes:
    """What our hook says of the job."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(hook, data=mutate_body(user_job(0)), headers=headers)
    with urllib.request.urlopen(request, timeout=10, context=ssl.create_default_context(cafile=ca)) as answer:
        said: bytes = answer.read()
        return said


def one_label(reply: bytes) -> bytes:
    """The same reply with the smallest patch that there is."""
    review = json.loads(reply)
    patch = [{"op": "add", "path": "/metadata/labels/patched", "value": "yes"}]
    review["response"]["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    return json.dumps(review).encode()


def no_patch(reply: bytes) -> bytes:
    """The same reply without a patch."""
    review = json.loads(reply)
    review["response"] = {"uid": review["response"]["uid"], "allowed": True}
    return json.dumps(review).encode()


def budgets(times: Mapping[str, Sequence[float]]) -> list[Budget]:
    """Each hook of ours beside the Go server that only allows."""
    return [
        Budget(
            what=f"{label}: median added at the API server, beyond Go's",
            goal=WITHIN,
            now=median(times[label]) - median(times[GO]),
            unit="ms",
        )
        for label in ("validate", "mutate")
    ]


def measure(arguments: argparse.Namespace, progress: Progress) -> Section:
    """Install all hooks and measure them in turns; ControlPlaneError if something cannot be built or started."""
    server_core, _ = two_cores()
    programs = assets(progress=progress)
    progress.say("Starting an API server, to measure what each hook adds to a creation.")
    with (
        Cluster(controller_manager=False) as cluster,
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        Servers(Path(name), core=server_core) as servers,
    ):
        ours = f"https://{servers.service('ours', '--kubeconfig', cluster.kubeconfig).address}"
        validate, mutate = f"{ours}/validate-mpijob", f"{ours}/mutate-mpijob"
        cluster.apply(list(needed(user_job(0)["metadata"]["namespace"])))
        patch = reply(mutate, servers.ca)
        replayed = f"https://{servers.replayed('replayed', patch).address}/"
        smallest = f"https://{servers.replayed('one-label', one_label(patch)).address}/"
        none = f"https://{servers.replayed('no-patch', no_patch(patch)).address}/"
        places = [
            Place(label=NONE, hooks={}),
            Place(label=GO, hooks={"Validating": f"https://{servers.yardstick(programs).address}/"}),
            Place(label="validate", hooks={"Validating": validate}),
            Place(label="mutate", hooks={"Mutating": mutate}),
            Place(label=REPLAYED, hooks={"Mutating": replayed}),
            Place(label=ONE_LABEL, hooks={"Mutating": smallest}),
            Place(label=NO_PATCH, hooks={"Mutating": none}),
            Place(label="validate and mutate", hooks={"Validating": validate, "Mutating": mutate}),
        ]
        if "opa" not in arguments.without:
            opa = servers.opa(engines.OPA.program(progress), engines.OPA.policy)
            places.append(
                Place(label=engines.OPA.name, hooks={"Validating": f"https://{opa.address}{engines.OPA.path}"})
            )
        install(cluster, places, servers.ca.read_bytes())
        progress.say(f"{arguments.rounds * 10} rounds of {EACH} creations for each of {len(places)} hooks: a minute.")
        times = in_turns(cluster, places, arguments.rounds * 10)
    verdicts = [("budget", "goal", "now", ""), *(budget.cells for budget in budgets(times))]
    return Section(tables=[Table(lines=[*table(times)]), Table(lines=verdicts)], samples=times)
