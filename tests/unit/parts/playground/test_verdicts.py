"""The playground returns verdicts with line numbers, and errors for unusable texts."""

import json

import pytest

from tests.support.paths import EXAMPLES
from tests.support.policies import HEADER, configmap
from webhook.parts.playground.verdicts import answer

GOOD = (EXAMPLES / "openmpi-pi.yaml").read_text()
BAD = GOOD.replace("replicas: 2", "replicas: 200")
POLICY = f"{HEADER}rules:\n  worker-count: {{max: 300}}\n"
AMOUNTS = '{hard: {requests.cpu: "1"}, used: {requests.cpu: "1"}}'
QUOTA = f"apiVersion: v1\nkind: ResourceQuota\nmetadata: {{name: small, namespace: default}}\nstatus: {AMOUNTS}\n"


def line_of(text: str, part: str) -> int:
    (number,) = (number for number, line in enumerate(text.splitlines(), 1) if part in line)
    return number


def test_violation_has_the_line_of_its_field() -> None:
    (job,) = answer({"job": BAD})["jobs"]
    assert (job["namespace"], job["name"], job["allowed"]) == ("default", "openmpi-pi", False)
    assert job["causes"] == [
        {
            "rule": "worker-count",
            "field": "spec.mpiReplicaSpecs[Worker].replicas",
            "message": "200 workers, at most 100 allowed",
            "fix": "Set replicas to 100 or fewer.",
            "line": line_of(BAD, "replicas: 200"),
        }
    ]


def test_lines_are_counted_from_the_start_of_the_text() -> None:
    jobs = answer({"job": f"{GOOD}---\n{BAD}"})["jobs"]
    assert [job["allowed"] for job in jobs] == [True, False]
    assert jobs[1]["causes"][0]["line"] == len(GOOD.splitlines()) + 1 + line_of(BAD, "replicas: 200")


def test_diff_has_only_the_injections() -> None:
    (job,) = answer({"job": GOOD})["jobs"]
    assert job["allowed"]
    assert {"labels", "mpi-env"} <= {injection["id"] for injection in job["injected"]}
    changed = [line for line in job["diff"] if line[0] in "+-"]
    assert "+    training.kubeflow.org/job-type: mpijob" in changed
    assert [line for line in changed if line.startswith("-")] == []
    assert not any("training.openshift.io/injected" in line for line in changed)


def test_policy_replaces_the_built_in_policy() -> None:
    assert answer({"job": BAD, "policy": POLICY})["jobs"][0]["allowed"]


def test_cluster_objects_affect_the_verdict() -> None:
    (job,) = answer({"job": GOOD, "cluster": QUOTA})["jobs"]
    assert [cause["rule"] for cause in job["causes"]] == ["resource-quota"]


@pytest.mark.parametrize(
    ("question", "pane", "line"),
    [
        ({"job": ""}, "job", 1),
        ({"job": "kind: Pod\napiVersion: v1"}, "job", 1),
        ({"job": "a: b\n c: d"}, "job", 2),
        ({"job": "- 1"}, "job", None),
        ({"job": GOOD, "policy": POLICY.replace("300", "much")}, "policy", 4),
        ({"job": GOOD, "cluster": "a: b\n c: d"}, "cluster", 2),
        ({"job": GOOD, "cluster": "kind: Namespace\napiVersion: v1\nmetadata: {name: 1}"}, "cluster", None),
        ({"job": None, "policy": 7}, "policy", None),
        ({"job": f"{GOOD}\ud83d"}, "job", None),
        ({"job": GOOD, "cluster": "\ud83d"}, "cluster", None),
    ],
)
def test_unusable_text_is_reported_with_pane_and_line(question: dict[str, object], pane: str, line: int | None) -> None:
    result = answer(question)
    assert result["jobs"] == []
    assert [(fault["pane"], fault["line"]) for fault in result["faults"]] == [(pane, line)]
    assert result["faults"][0]["message"]


def test_broken_policy_of_the_cluster_is_reported_with_the_verdict() -> None:
    reply = answer({"job": GOOD, "cluster": json.dumps(configmap("mine", "kind: MPIJobPolicy"))})
    assert [fault["pane"] for fault in reply["faults"]] == ["cluster"]
    assert reply["jobs"][0]["allowed"]
