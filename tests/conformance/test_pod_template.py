"""Compares the rule `pod-template` on jobs with the API server's validation of the jobs' pods.

A mutant is a template with one changed value, which is wrong in most cases. It is made from a template in tests/corpus,
or from a template with nearly all fields. The test posts each mutant by dry run, as the pod that the operator would
create. The service must not reject a template that the API server accepts, and must reject nearly all templates that
the API server rejects. The test prints the templates that the service misses. MPIJOB_POD_TEMPLATE_MUTANTS sets how
many mutants are tried.
"""

import copy
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support import corpus, refused_pods
from tests.support.api_client import DRY_RUN, Client, at_a_time, client
from tests.support.jobs import changed
from tests.support.refused_pods import Case
from tests.support.worlds.pod_mutants import Mutant, Schema, mutants
from tests.support.worlds.rich_template import RICH
from webhook.api import mpijob
from webhook.api.mpijob import LAUNCHER, WORKER
from webhook.api.shape import ShapeError
from webhook.cluster.snapshot import Snapshot
from webhook.kit.context import Context
from webhook.rules import REGISTRY, Violation

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]
APISERVER_FLAGS = ["--disable-admission-plugins=PodSecurity"]

MUTANTS = int(os.environ.get("MPIJOB_POD_TEMPLATE_MUTANTS", "1000"))
FOUND = 0.95
NAMESPACE = "team-a"
# The rule itself, and other rules for the same pods: each problem is reported by only one of these rules.
RULES = ("pod-template", "upstream-contract", "gpus", "images")

Json = dict[str, Any]


def job_of(role: str, template: Json) -> Json:
    """A job with this template. The template of the other role is valid."""
    document = changed({})
    document["spec"]["mpiReplicaSpecs"][role]["template"] = template
    return document


def pod_of(role: str, template: Json) -> Json:
    """The pod that the operator creates (mpi-operator `newWorker` and `newLauncherPodTemplate`)."""
    pod = copy.deepcopy(template)
    metadata = pod.get("metadata") or {}
    labels = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
    spec = pod["spec"]
    spec["restartPolicy"] = "Never" if role == WORKER else "OnFailure"
    if role == WORKER:
        spec |= {"hostname": "j-worker-0", "subdomain": "j"}
    if isinstance(volumes := spec.get("volumes", []), list):
        own = [{"name": "ssh-auth", "secret": {"secretName": "j-ssh"}}]
        own += [{"name": "mpi-job-config", "configMap": {"name": "j-config"}}] * (role == LAUNCHER)
        spec["volumes"] = [*volumes, *own]
    return {"metadata": {**labels, "name": "j-worker-0"}, "spec": spec}


def violations_of(document: Json) -> dict[str, list[Violation]]:
    """The violations by rule. The schema of the MPIJob is treated as a rule."""
    data = json.dumps(document).encode()
    try:
        job = mpijob.apply_operator_defaults(mpijob.decode(data))
    except ShapeError as error:
        return {"schema": [Violation(error.path, error.message, fix="")]}
    context = Context(namespace=NAMESPACE, document=data, view=VIEW)
    by_rule = {}
    for rule_id in RULES:
        rule = REGISTRY[rule_id]
        violations = rule.check(job, rule.settings(), context)
        by_rule[rule_id] = [violation for violation in violations if not violation.advisory]
    return by_rule


# The namespace has no LimitRange.
KNOWN = {"limitranges": {}}
NOTHING = [
    {"apiVersion": "policy.training.openshift.io/v1", "kind": "ClusterSnapshot", "known": KNOWN},
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
]
VIEW = Snapshot(NOTHING)


def templates() -> Iterator[tuple[str, str, Json]]:
    """(name, role, template) of every valid template."""
    yield "rich", WORKER, RICH
    for job in corpus.jobs():
        for role in (LAUNCHER, WORKER):
            template = job.manifest.document["spec"]["mpiReplicaSpecs"].get(role, {}).get("template")
            if template:
                kept = {"labels", "annotations"} & (template.get("metadata") or {}).keys()
                metadata = {key: template["metadata"][key] for key in sorted(kept)}
                yield job.path.stem, role, {"metadata": metadata, "spec": template["spec"]}


async def prepare(api: Client) -> Schema:
    core = f"/api/v1/namespaces/{NAMESPACE}"
    await api.send("POST", "/api/v1/namespaces", NOTHING[1])
    specs = [template["spec"] for _, _, template in templates()]
    # The objects to which a pod refers must exist. Otherwise the API server rejects the pod with 403 before validation.
    for fields, path, more in (
        (("serviceAccountName", "serviceAccount"), f"{core}/serviceaccounts", {}),
        (("priorityClassName",), "/apis/scheduling.k8s.io/v1/priorityclasses", {"value": 1000}),
        (("runtimeClassName",), "/apis/node.k8s.io/v1/runtimeclasses", {"handler": "h"}),
    ):
        for name in {spec[field] for spec in specs for field in fields if spec.get(field)} | {"default"}:
            await api.send("POST", path, {"metadata": {"name": name}, **more})
    _, document, _ = await api.send("GET", "/openapi/v3/api/v1", None)
    return Schema(document)


class Comparison:
    def __init__(self, api: Client) -> None:
        self.api = api
        self.counts: Counter[str] = Counter()
        self.wrong: list[str] = []
        self.twice: list[str] = []
        self.missed: dict[str, list[str]] = defaultdict(list)

    async def post(self, role: str, template: Json) -> tuple[int, str]:
        path = f"/api/v1/namespaces/{NAMESPACE}/pods"
        status, reply, _ = await self.api.send("POST", path, pod_of(role, template), **DRY_RUN)
        return status, reply.get("message", "") if status != 201 else ""

    async def mutant(self, role: str, mutant: Mutant) -> None:
        template = mutant.template
        status, message = await self.post(role, template)
        ours = violations_of(job_of(role, template))
        self.counts[str(status)] += 1
        shown = f"{mutant.place}: {mutant.change}\n  {message[:400]}\n  {ours}"
        if status == 201:
            violations = [violation for rule in ("schema", "pod-template") for violation in ours.get(rule, ())]
            # The words "never start" are right: the API server accepts the pod, but the kubelet does not start it.
            if any("never start" not in violation.message for violation in violations):
                self.wrong.append(shown)
        elif status in {400, 422}:
            self.counts["refusals"] += 1
            if any(ours.values()):
                self.counts["found"] += 1
            else:
                self.missed[mutant.place].append(f"{mutant.change}: {message[:300]}")
            places = Counter(violation.path for violations in ours.values() for violation in violations)
            if any(number > 1 for number in places.values()):
                self.twice.append(shown)

    def report(self) -> Iterator[str]:
        """The numbers of mutants, and the fields whose errors the service missed."""
        yield f"\n{dict(self.counts)}"
        for place, missed in sorted(self.missed.items(), key=lambda item: -len(item[1])):
            yield f"missed {len(missed)} at {place}: {missed[0][:200]}"


def chosen(schema: Schema) -> list[tuple[str, Mutant]]:
    """One mutant for each kind of change and each field, then more, up to the configured number."""
    rng = Random(14)
    kinds: dict[tuple[str, str], list[tuple[str, Mutant]]] = defaultdict(list)
    for _, role, template in templates():
        for mutant in mutants(schema, template):
            kinds[mutant.place, mutant.change].append((role, mutant))
    for kind in kinds.values():
        rng.shuffle(kind)
    first = [kind.pop() for kind in kinds.values()]
    rng.shuffle(first)
    rest = [mutant for kind in kinds.values() for mutant in kind]
    return (first + rng.sample(rest, min(len(rest), max(MUTANTS - len(first), 0))))[:MUTANTS]


async def test_valid_templates_are_accepted_by_service_and_api_server(cluster: Cluster) -> None:
    """Templates of every shape in tests/corpus."""
    async with client(cluster) as api:
        await prepare(api)
        comparison = Comparison(api)
        for name, role, template in templates():
            status, message = await comparison.post(role, template)
            assert status == 201, f"{name}: {message}"
            assert not violations_of(job_of(role, template)).get("pod-template"), name


@pytest.mark.parametrize("case", refused_pods.CASES.values(), ids=refused_pods.CASES)
async def test_api_server_accepts_or_rejects_the_pod_as_the_case_says(cluster: Cluster, case: Case) -> None:
    template = changed(case.changes)["spec"]["mpiReplicaSpecs"][WORKER]["template"]
    async with client(cluster) as api:
        await prepare(api)
        status, message = await Comparison(api).post(WORKER, template)
    assert (status == 201) == case.taken, message


async def test_service_rejects_the_mutants_that_the_api_server_rejects(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every mutant that the service rejects is invalid, and the service rejects most invalid mutants."""
    async with client(cluster) as api:
        schema = await prepare(api)
        comparison = Comparison(api)
        await at_a_time(chosen(schema), lambda item: comparison.mutant(*item))
    counts = comparison.counts
    with capsys.disabled():
        for line in comparison.report():
            print(line)  # noqa: T201 - for a developer who wants to improve the rule
    assert not comparison.wrong, f"{len(comparison.wrong)} rejected only by the service:\n" + "\n".join(
        comparison.wrong[:20]
    )
    assert not comparison.twice, f"{len(comparison.twice)} reported twice:\n" + "\n".join(comparison.twice[:20])
    assert counts["refusals"] > 0.3 * MUTANTS
    assert counts["found"] >= FOUND * counts["refusals"], counts
