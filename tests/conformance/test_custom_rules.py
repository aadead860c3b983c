"""Compares the values of expressions in custom rules with their values in the API server's ValidatingAdmissionPolicies.

A policy has two validations for each expression: the expression and its negation. A job that is created by
dry run gets a warning from the validation that is false, and no warning if the expression cannot be evaluated. All
warnings of a reply together have at most 4,096 characters, so a label of the job selects one policy at a time.
"""

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest

from tests.controlplane.cluster import Cluster
from tests.support.api_client import DRY_RUN, Client, at_a_time, client
from tests.support.custom_rules import outcomes
from tests.support.jobs import changed

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

JOBS = 3
IN_A_POLICY = 40
BATCH = "example.com/batch"
POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
BINDINGS = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
PATH = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"

RULE = {"apiGroups": ["kubeflow.org"], "apiVersions": ["v2beta1"], "operations": ["CREATE"], "resources": ["mpijobs"]}

WORKER = "object.spec.mpiReplicaSpecs.Worker"
CONTAINERS = f"{WORKER}.template.spec.containers"
LIMITS = f"{CONTAINERS}[0].resources.limits"
LABELS = "object.metadata.labels"


def expressions() -> list[str]:
    sources = [
        *(f"object.spec.slotsPerWorker {op} {n}"
          for op, n in product(("==", "!=", "<", ">="), (1, 2, 4, "2.0", "1.5"))),
        *(f"{WORKER}.replicas {op} {n}" for op, n in product(("==", "<=", ">", "%2 =="), (0, 2, 4))),
        *(f"{WORKER}.replicas * object.spec.slotsPerWorker + {a} >= {b}" for a, b in product((0, 3), (4, 8, 16))),
        *(f"quantity(string({LIMITS}.{name})).{how}(quantity('{amount}'))"
          for name, how, amount in product(("cpu", "memory"), ("isLessThan", "isGreaterThan"),
                                             ("8", "16000m", "64Gi"))),
        *(f"quantity({LIMITS}.{name}).compareTo(quantity('{amount}')) == 0"
          for name, amount in product(("cpu", "memory"), ("16", "64Gi", "1e3"))),
        *(f"{LIMITS}['nvidia.com/gpu'] {op} {n}" for op, n in product(("==", "<", ">="), (1, 2, "'2'"))),
        *(f"quantity('{a}').{how}(quantity('{b}'))" for a, b, how in product(
            ("1.5", "1500m", "-2Ki", "1e3"), ("1500m", "1k", "0"), ("isLessThan", "isGreaterThan"))),
        *(f"has({LABELS}.{name})" for name in ("team", "tier", "nothing")),
        *(f"{LABELS}.{name} == 'a'" for name in ("team", "tier", "nothing")),
        *(f"{LABELS}.?{name}.orValue('none') {op} 'a'" for name, op in product(("team", "nothing"), ("==", "<", ">"))),
        *(f"'{key}' in {LABELS}" for key in ("team", BATCH, "x.y/z")),
        *(f"{CONTAINERS}.{macro}(c, c.image.{test})" for macro, test in product(
            ("all", "exists", "exists_one"),
            ("startsWith('registry.')", "endsWith(':latest')", "contains('/ml/')", "matches('^[a-z.]+/')"))),
        *(f"{CONTAINERS}.{macro}(c, has(c.{field}))" for macro, field in product(
            ("all", "exists"), ("resources", "env", "command", "securityContext"))),
        *(f"{CONTAINERS}.map(c, c.name).{rest}" for rest in (
            "size() == 2", "join(',') == 'worker'", "distinct().size() == 2", "sort()[0] == 'side'",
            "flatten() == ['worker']", "min() == 'side'", "max() == 'worker'")),
        *(f"sets.{how}({CONTAINERS}.map(c, c.name), {names})" for how, names in product(
            ("contains", "equivalent", "intersects"), ("['worker']", "['worker', 'side']", "['other']"))),
        *(f"{CONTAINERS}[0].image.{rest}" for rest in (
            "split('/')[0] == 'registry.example.com'", "split(':', 2).size() == 2", "replace('train', 'x').size() > 20",
            "lowerAscii() == 'x'", "upperAscii().startsWith('REG')", "substring(0, 3) == 'reg'", "charAt(1) == 'e'",
            "indexOf('.') == 8", "lastIndexOf('/') > 20", "trim().size() > 3", "size() < 10")),
        *(f"isQuantity('{text}')" for text in ("1", "1.5Gi", "1GB", "", " 1", "1e3", "--1", "500m", "1Kib")),
        *(f"{left} {op} {right}" for left, op, right in product(
            ("object.spec.nothing == 1", "true", "false"), ("&&", "||"),
            ("object.spec.nothing == 1", "true", "false"))),
        *(f"{source}" for source in (
            "oldObject == null", "request.operation == 'CREATE'", "request.name == object.metadata.name",
            "request.namespace == 'default'", "request.kind.kind == 'MPIJob'", "request.dryRun",
            "namespaceObject.metadata.name == 'default'", "has(object.spec.runPolicy.schedulingPolicy)",
            "type(object.spec.slotsPerWorker) == int", "dyn(1) == 1.0", "size('héllo') == 5", "string(1.0) == '1'",
            "duration('90m') == duration('1h30m')", "timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
            "timestamp('2026-01-01T00:00:00Z').getHours('America/New_York') == 19", "int('7') + 1 == 8", "7 / 2 == 3",
            "-7 % 3 == -1", "[1, 2, 3].sum() == 6", "'%s-%d'.format(['a', 1]) == 'a-1'",
            "object.spec.slotsPerWorker + 1.5 > 1.0", "object.spec.slotsPerWorker < '3'",
              "1 / (object.spec.slotsPerWorker - 2) == 0",
            "object.spec.slotsPerWorker == '2'", "optional.of(1).hasValue()", "object.?spec.?nothing.hasValue()",
            "['b', 'a'].sort() == ['a', 'b']", "[[1], [2]].flatten() == [1, 2]", "b'abc'.size() == 3",
              "9223372036854775807 + dyn(1) > 0",
        )),
    ]  # fmt: skip
    return list(dict.fromkeys(sources))


def jobs() -> Iterator[dict[str, Any]]:
    """Jobs that differ in every field that the expressions read."""
    random = Random(7)
    for number in range(JOBS):
        containers: list[dict[str, Any]] = [
            {
                "name": "worker",
                "image": random.choice(
                    ["registry.example.com/ml/train:1.4", "train", "registry.example.com/ml/x:latest"]
                ),
                "resources": {
                    "limits": {
                        "cpu": random.choice(["16", 4, "500m"]),
                        "memory": random.choice(["64Gi", "16000M", "1Gi"]),
                        "nvidia.com/gpu": random.choice([1, 2, "2"]),
                    }
                },
            }
        ]
        if random.random() < 0.5:
            containers.append({"name": "side", "image": "registry.example.com/ml/side:1", "command": ["x"]})
        labels = {name: random.choice(["a", "b"]) for name in ("team", "tier") if random.random() < 0.6}
        yield changed(
            {
                "metadata.name": f"job-{number}",
                "metadata.namespace": "default",
                "metadata.labels": labels,
                "spec.slotsPerWorker": random.choice([1, 2, 4]),
                "Worker.replicas": random.choice([0, 2, 4, 7]),
                "Worker.restartPolicy": "Never",
                "Launcher.restartPolicy": "OnFailure",
                "Worker.template.spec.containers": containers,
            }
        )


async def apply(api: Client, number: int, sources: list[str]) -> None:
    """Create a policy that warns about false expressions and ignores expressions that cannot be evaluated."""
    validations = [{"expression": "false", "message": "in force"}]
    for index, source in enumerate(sources):
        validations += [
            {"expression": source, "message": f"{index}"},
            {"expression": f"!({source})", "message": f"{index}!"},
        ]
    name, batch = f"p{number}", {"matchLabels": {BATCH: str(number)}}
    spec = {
        "failurePolicy": "Ignore",
        "matchConstraints": {"resourceRules": [RULE], "objectSelector": batch},
        "validations": validations,
    }
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": name}}
    await api.make(POLICIES, {**head, "kind": "ValidatingAdmissionPolicy", "spec": spec})
    binding = {"policyName": name, "validationActions": ["Warn"]}
    await api.make(BINDINGS, {**head, "kind": "ValidatingAdmissionPolicyBinding", "spec": binding})


def labelled(job: dict[str, Any], number: int) -> dict[str, Any]:
    metadata = {**job["metadata"], "labels": {**job["metadata"]["labels"], BATCH: str(number)}}
    return {**job, "metadata": metadata}


async def theirs(api: Client, job: dict[str, Any], number: int, count: int) -> list[bool | None] | None:
    """The API server's values of a policy's expressions. Returns None while the policy has no effect yet."""
    status, reply, warnings = await api.send("POST", PATH, labelled(job, number), **DRY_RUN)
    assert status == 201, reply
    messages = {warning.rpartition(": ")[2] for warning in warnings}
    if "in force" not in messages:
        return None
    return [False if f"{index}" in messages else True if f"{index}!" in messages else None for index in range(count)]


def ours(job: dict[str, Any], number: int, sources: list[str]) -> list[bool | None]:
    name = job["metadata"]["name"]
    kind = {"group": "kubeflow.org", "version": "v2beta1", "kind": "MPIJob"}
    request = {"operation": "CREATE", "name": name, "namespace": "default", "kind": kind, "dryRun": True}
    namespace = {"metadata": {"name": "default", "labels": {}}}
    found = outcomes(*sources, submitted=labelled(job, number), request=request, namespace_object=namespace)
    return [None if outcome.fault else outcome.holds for outcome in found]


async def test_values_of_expressions_match_the_api_server(cluster: Cluster) -> None:
    sources = expressions()
    batches = [sources[start : start + IN_A_POLICY] for start in range(0, len(sources), IN_A_POLICY)]
    samples = [*jobs()]
    different: list[str] = []
    values: list[bool | None] = []
    async with client(cluster) as api:
        for number, batch in enumerate(batches):
            await apply(api, number, batch)

        async def compare(pair: tuple[int, dict[str, Any]]) -> None:
            number, job = pair
            while (expected := await theirs(api, job, number, len(batches[number]))) is None:
                pass  # a new policy takes effect after a moment
            values.extend(expected)
            different.extend(
                f"{source}: API server {theirs_}, service {ours_}, for {job['metadata']['name']}"
                for source, theirs_, ours_ in zip(
                    batches[number], expected, ours(job, number, batches[number]), strict=True
                )
                if theirs_ is not ours_
            )

        await at_a_time(product(range(len(batches)), samples), compare)
    assert len(values) >= 500
    assert min(values.count(value) for value in (True, False, None)) > len(values) / 50
    assert different == []


REFUSED = (
    "math.greatest(1, 2) == 2", "base64.encode(b'a') == ''", "cel.bind(a, 1, a == 1)", "'abc'.reverse() == 'cba'",
    "1 + 'a' == 2", "'yes'", "nothing", "quantity('1') == '1'", "object.spec.existsOne(x, true)", "object.nothing('a')",
    "true &&",
)  # fmt: skip


async def test_service_rejects_expressions_that_the_api_server_rejects(cluster: Cluster) -> None:
    async with client(cluster) as api:
        for number, (source, outcome) in enumerate(zip(REFUSED, outcomes(*REFUSED), strict=True)):
            spec = {"matchConstraints": {"resourceRules": [RULE]}, "validations": [{"expression": source}]}
            head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy"}
            body = {**head, "metadata": {"name": f"refused-{number}"}, "spec": spec}
            status, reply, _ = await api.send("POST", POLICIES, body, **DRY_RUN)
            assert (status, outcome.written_wrong) == (422, True), (source, status, reply.get("message"), outcome)
