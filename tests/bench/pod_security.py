"""Pod templates judged at the level restricted, beside Kubernetes' own Pod Security webhook.

    python -m tests.bench.pod_security

Both follow a real API server, in which the namespaces of all requests are labelled. Kubernetes' webhook gets pods of
6 kB; ours gets MPIJobs with two such templates each, so a request is two evaluations. The library alone is measured in
this process: decoding a template and evaluating it.
"""
# ruff: noqa: T201 - a command prints

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.body import user_job
from tests.bench.machine import this_machine, two_cores
from tests.bench.measure import Generator, Load, Sample, positive
from tests.bench.report import POD_SECURITY as GO
from tests.bench.report import text
from tests.bench.servers import Server, Servers, pinned
from tests.controlplane.assets import assets
from tests.controlplane.cluster import Cluster
from tests.controlplane.process import ControlPlaneError
from tests.controlplane.progress import Progress
from tests.support.jobs import body
from tests.support.pod_security.pods import COMPLIANT
from webhook import rules
from webhook.predict.pod_security import LATEST, Level, evaluate
from webhook.predict.pod_security.labels import PREFIX
from webhook.predict.pod_security.pod import decode

NAMESPACE = "restricted"
TEMPLATE_BYTES = 6_000
VARIANTS = 100
POLICY = {
    "apiVersion": "policy.training.openshift.io/v1",
    "kind": "MPIJobPolicy",
    "rules": {rule_id: {"action": "off"} for rule_id in rules.REGISTRY if rule_id != "pod-security"},
}


def template(number: int, role: str) -> dict[str, Any]:
    """A pod template of a team's job that restricted admits, with environment up to 6 kB of JSON."""
    made: dict[str, Any] = user_job(number)["spec"]["mpiReplicaSpecs"][role]["template"]
    made["spec"].pop("priorityClassName", None)  # this cluster has none
    for container in made["spec"]["containers"] + made["spec"].get("initContainers", []):
        container["securityContext"] = COMPLIANT
    env = made["spec"]["containers"][0].setdefault("env", [])
    while len(json.dumps(made)) < TEMPLATE_BYTES:
        env.append({"name": f"SETTING_{len(env)}", "value": f"value of job {number} for setting {len(env)}"})
    return made


def pod_review(number: int) -> bytes:
    """The creation of a pod of the worker's template."""
    metadata = {"name": f"worker-{number}", "namespace": NAMESPACE}
    made = template(number, "Worker")
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": made.get("metadata", {}) | metadata, "spec": made["spec"]}
    kind, resource = (
        {"group": "", "version": "v1", name: value} for name, value in (("kind", "Pod"), ("resource", "pods"))
    )
    return body(pod, kind=kind, resource=resource)


def job_review(number: int) -> bytes:
    """The creation of a job of both templates."""
    job = user_job(number)
    job["metadata"]["namespace"] = NAMESPACE
    for role, replica in job["spec"]["mpiReplicaSpecs"].items():
        replica["template"] = template(number, role)
    return body(job)


def label_namespace(cluster: Cluster) -> None:
    """Create the namespace of all requests, which enforces the level."""
    labels = {PREFIX + "enforce": "restricted"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    cluster.kubectl("create", "-f", "-", stdin=namespace)


def library(seconds: float, core: int) -> float:
    """Evaluations per second in this process."""
    templates = [json.dumps(template(number, "Worker")).encode() for number in range(VARIANTS)]
    count, began = 0, time.perf_counter()
    with pinned(core):
        while (took := time.perf_counter() - began) < seconds:
            for data in templates:
                if evaluate(Level.RESTRICTED, LATEST, decode(data)):
                    raise ControlPlaneError("the template of the benchmark breaks restricted")
            count += len(templates)
    return count / took


def subjects(folder: Path, servers: Servers, cluster: Cluster) -> Iterator[tuple[str, Server, Load, int]]:
    """(name, server, what it is asked, evaluations per request)."""
    pods, jobs, policy = folder / "pods.json", folder / "jobs.json", folder / "policy.yaml"
    pods.write_bytes(b"\n".join(map(pod_review, range(VARIANTS))))
    jobs.write_bytes(b"\n".join(map(job_review, range(VARIANTS))))
    policy.write_text(json.dumps(POLICY))
    allowed = '"allowed":true'
    go = servers.pod_security(cluster.assets, cluster.kubeconfig)
    yield GO, go, Load(path="/?timeout=10s", bodies=pods, expect=allowed), 1
    load = Load(path="/validate-mpijob?timeout=10s", bodies=jobs, expect=allowed)
    connected = ("--kubeconfig", cluster.kubeconfig)
    yield "pod-security alone", servers.service("alone", *connected, "--policy", policy), load, 2
    yield "all rules", servers.service("all", *connected), load, 2


def table(samples: dict[str, list[Sample]], evaluations: dict[str, int]) -> list[tuple[str, ...]]:
    """The headings and a line of cells for each server; ratios are medians over the rounds."""
    lines: list[tuple[str, ...]] = [
        ("server", "requests/s", "evaluations/s", "of Go", "p50 ms", "p99 ms", "CPU µs per evaluation")
    ]
    for name, taken in samples.items():
        each = evaluations[name]
        beside = median(s.rps * each / go.rps for s, go in zip(taken, samples[GO], strict=True))
        requests = median(s.rps for s in taken)
        cells = (requests, requests * each, beside, *(median(getattr(s, key) for s in taken) for key in ("p50", "p99")))
        micros = median(s.cpu_micros for s in taken) / each
        shown = (f"{value:,.{digits}f}" for value, digits in zip((*cells, micros), (0, 0, 2, 1, 1, 0), strict=True))
        lines.append((name, *shown))
    return lines


def run(arguments: argparse.Namespace, progress: Progress) -> str:
    """Measure in turns; the table as text."""
    server_core, load_core = two_cores()
    assets(progress=progress)
    with (
        Cluster(controller_manager=False) as cluster,
        TemporaryDirectory(prefix="mpijob-bench-") as name,
        Servers(Path(name), core=server_core) as servers,
    ):
        label_namespace(cluster)
        generator = Generator.wanted(arguments, program=cluster.assets.load, ca=servers.ca, core=load_core)
        measured = list(subjects(Path(name), servers, cluster))
        samples: dict[str, list[Sample]] = {label: [] for label, *_ in measured}
        for number in range(arguments.rounds):
            for label, server, load, _ in measured:
                sample = generator.run(server, load)
                if sample.errors:
                    raise ControlPlaneError(f"{label}: {sample.errors} wrong or missing answers: {sample.error}")
                samples[label].append(sample)
                progress.say(
                    f"round {number + 1}  {label:28} {sample.rps:6,.0f} requests/s, others {sample.others:.2f}"
                )
        lines = table(samples, {label: each for label, _, _, each in measured})
        alone = library(arguments.seconds, server_core)
    return f"{text(lines, left=1)}\n\nThe library alone: {alone:,.0f} evaluations/s. {this_machine().summary}."


def main() -> None:
    """Parse, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.pod_security", description="See docs/benchmarks.md.")
    parser.add_argument("--seconds", type=positive, default=5, help="length of each measurement (default: 5)")
    parser.add_argument("--rounds", type=positive, default=3, help="how often each is repeated (default: 3)")
    parser.add_argument("--connections", type=positive, default=50, help="kept-alive connections (default: 50)")
    try:
        print(run(parser.parse_args(), Progress()))
    except ControlPlaneError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
