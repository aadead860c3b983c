"""Compares the rule `pod-template` on jobs with the API server's validation of the jobs' pods.

A mutant is a template with one changed value, which is wrong in most cases. It is made of a template in tests/corpus,
or of a template with nearly all fields. Each mutant is posted as a pod by dry run, as the operator would
create it. The service must not reject a template that the API server accepts, and must reject nearly all templates that
the API server rejects. The test prints the others. MPIJOB_POD_TEMPLATE_MUTANTS sets how many mutants are tried.
"""

import copy
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

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

MUTANTS = int(os.environ.get("MPIJOB_POD_TEMPLATE_MUTANTS", "1000"))
FOUND = 0.95
NAMESPACE = "team-a"
# The rule itself, and other rules for the same pods: each problem is reported by only one of these rules.
RULES = ("pod-template", "upstream-contract", "gpus", "images")

Json = dict[str, Any]


class Verdict(NamedTuple):
    """The service's messages about a job, by rule. The schema of the MPIJob is treated as a rule."""

    by_rule: dict[str, list[Violation]]

    @property
    def refused(self) -> bool:
        return any(self.by_rule.values())


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


def verdict_of(document: Json) -> Verdict:
    data = json.dumps(document).encode()
    try:
        job = mpijob.apply_operator_defaults(mpijob.decode(data))
    except ShapeError as error:
        return Verdict({"schema": [Violation(error.path, error.message, fix="")]})
    context = Context(namespace=NAMESPACE, document=data, view=VIEW)
    found = {}
    for rule_id in RULES:
        rule = REGISTRY[rule_id]
        violations = [*rule.check(job, rule.settings(), context)]
        found[rule_id] = [each for each in violations if not each.advisory]
    return Verdict(found)


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


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    flags = ["--disable-admission-plugins=PodSecurity"]
    folder = tmp_path_factory.mktemp("pod-template")
    with Cluster(controller_manager=False, apiserver_flags=flags, log_dir=folder) as running:
        yield running


async def prepare(api: Client) -> Schema:
    core = f"/api/v1/namespaces/{NAMESPACE}"
    await api.send("POST", "/api/v1/namespaces", NOTHING[1])
    for account in {
        "default",
        *(
            template["spec"].get("serviceAccountName") or template["spec"].get("serviceAccount") or "default"
            for _, _, template in templates()
        ),
    }:
        await api.send("POST", f"{core}/serviceaccounts", {"metadata": {"name": account}})
    # Objects that pods name must exist: otherwise the API server rejects the pod with 403 before it validates it.
    for name in {template["spec"].get("priorityClassName") for _, _, template in templates()} - {None}:
        made = {"metadata": {"name": name}, "value": 1000}
        await api.send("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", made)
    for name in {template["spec"].get("runtimeClassName") for _, _, template in templates()} - {None}:
        await api.send("POST", "/apis/node.k8s.io/v1/runtimeclasses", {"metadata": {"name": name}, "handler": "h"})
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
        ours = verdict_of(job_of(role, template))
        self.counts[str(status)] += 1
        shown = f"{mutant.place}: {mutant.change}\n  {message[:400]}\n  {ours.by_rule}"
        if status == 201:
            refused = [each for rule in ("schema", "pod-template") for each in ours.by_rule.get(rule, ())]
            # The API server accepts these pods, but the kubelet does not start them.
            if any("never start" not in each.message for each in refused):
                self.wrong.append(shown)
        elif status in {400, 422}:
            self.counts["refusals"] += 1
            if ours.refused:
                self.counts["found"] += 1
            else:
                self.missed[mutant.place].append(f"{mutant.change}: {message[:300]}")
            places = Counter(each.path for found in ours.by_rule.values() for each in found)
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
    rest = [each for kind in kinds.values() for each in kind]
    return (first + rng.sample(rest, min(len(rest), max(MUTANTS - len(first), 0))))[:MUTANTS]


async def test_valid_templates_are_accepted_by_service_and_api_server(cluster: Cluster) -> None:
    """Templates of every shape in tests/corpus."""
    async with client(cluster) as api:
        await prepare(api)
        comparison = Comparison(api)
        for name, role, template in templates():
            status, message = await comparison.post(role, template)
            assert status == 201, f"{name}: {message}"
            assert not verdict_of(job_of(role, template)).by_rule.get("pod-template"), name


@pytest.mark.parametrize("case", refused_pods.CASES.values(), ids=refused_pods.CASES)
async def test_pods_that_only_the_kubelet_rejects_are_reported(cluster: Cluster, case: Case) -> None:
    """The API server accepts these pods, but the kubelet does not start them."""
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
        await at_a_time(chosen(schema), lambda each: comparison.mutant(*each))
    counts = comparison.counts
    with capsys.disabled():
        for line in comparison.report():
            print(line)  # noqa: T201 - for a developer who wants to improve the rule
    assert not comparison.wrong, f"{len(comparison.wrong)} refused by us alone:\n" + "\n".join(comparison.wrong[:20])
    assert not comparison.twice, f"{len(comparison.twice)} told twice:\n" + "\n".join(comparison.twice[:20])
    assert counts["refusals"] > 0.3 * MUTANTS
    assert counts["found"] >= FOUND * counts["refusals"], counts
