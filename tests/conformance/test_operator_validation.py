"""Compares the rule `upstream-contract` with the operator's own defaults and validation code."""

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.controlplane.assets import assets
from tests.support.jobs import REMOVE, changed
from tests.support.rule_checks import defaulted, violations
from webhook.api.operator_checks import is_rejected
from webhook.api.yaml import load_all

Verdict = Callable[[dict[str, Any]], list[dict[str, str]]]

RENAMED = {
    "spec.mpiReplicaSpecs[worker]": "spec.mpiReplicaSpecs[Worker]",
    "spec.mpiReplicaSpecs[Master]": "spec.mpiReplicaSpecs[Launcher]",
}
"""Misspelt roles. The service reports them in place of the missing role that upstream reports."""
# The service rejects these fields and upstream does not. The docstring of the rule has the reasons.
BEYOND = ("spec.launcherCreationPolicy", *RENAMED)


@pytest.fixture(scope="module")
def verdict() -> Iterator[Verdict]:
    """A function that returns the operator's errors for a job: a list of field, type and detail."""
    with subprocess.Popen([assets().operator_verdict], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def verdict(job: dict[str, Any]) -> list[dict[str, str]]:
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
            errors: list[dict[str, str]] = json.loads(process.stdout.readline())
            return errors

        yield verdict
        process.stdin.close()


NAMES = st.one_of(
    st.sampled_from(["train", "a", "1-foo", "my.job", "Train", "-x", "x-", "", "x_y", "jöb"]),
    st.integers(50, 64).map(lambda length: "x" * length),
)
CONTAINERS = [{"name": "main", "image": "x"}]
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        "metadata.name": NAMES,
        "spec.slotsPerWorker": st.sampled_from([REMOVE, -1, 0, 1, 2**31 - 1]),
        "spec.sshAuthMountPath": st.sampled_from([REMOVE, "", "/root/.ssh", "relative"]),
        "spec.mpiImplementation": st.sampled_from([REMOVE, "", "OpenMPI", "Intel", "MPICH", "openmpi", "MVAPICH"]),
        "spec.launcherCreationPolicy": st.sampled_from([REMOVE, "", "AtStartup", "WaitForWorkersReady", "Later"]),
        "spec.runPolicy": st.sampled_from([REMOVE, {}]),
        "Worker": st.sampled_from([REMOVE, {}, None]),
        "Launcher": st.sampled_from([REMOVE, {}, None]),
        "spec.mpiReplicaSpecs.worker": st.sampled_from([{}, {"replicas": 2}]),
        "spec.mpiReplicaSpecs.Master": st.just({}),
    },
)
RUN_POLICY = st.fixed_dictionaries(
    {},
    optional={
        "cleanPodPolicy": st.sampled_from(["", "All", "None", "Running", "all", "Always"]),
        "ttlSecondsAfterFinished": st.sampled_from([-1, 0, 60]),
        "activeDeadlineSeconds": st.sampled_from([-(2**63), -1, 0, 2**63 - 1]),
        "backoffLimit": st.sampled_from([-1, 0, 6]),
        "managedBy": st.sampled_from(["", "kubeflow.org/mpi-operator", "kueue.x-k8s.io/multikueue", "me"]),
        "suspend": st.booleans(),
    },
)
REPLICA = st.fixed_dictionaries(
    {},
    optional={
        "replicas": st.sampled_from([-1, 0, 1, 2, 10, 11, 100, 101, 1001]),
        "restartPolicy": st.sampled_from(["", "Never", "OnFailure", "Always", "ExitCode", "never"]),
        "template": st.sampled_from(
            [{}, {"spec": {}}, {"spec": {"containers": []}}, {"spec": {"containers": CONTAINERS}}]
        ),
    },
)


@settings(max_examples=600, deadline=None, suppress_health_check=list(HealthCheck))
@given(changes=CHANGES, run_policy=RUN_POLICY, launcher=REPLICA, worker=REPLICA)
def test_the_rule_and_the_operator_reject_the_same_fields(
    verdict: Verdict,
    changes: dict[str, Any],
    run_policy: dict[str, Any],
    launcher: dict[str, Any],
    worker: dict[str, Any],
) -> None:
    fields = {f"spec.runPolicy.{key}": value for key, value in run_policy.items()}
    fields |= {f"Launcher.{key}": value for key, value in launcher.items()}
    fields |= {f"Worker.{key}": value for key, value in worker.items()}
    whole = [key for key in ("Worker", "Launcher", "spec.runPolicy") if key in changes]
    all_changes = {k: v for k, v in fields.items() if not any(k.startswith(key + ".") for key in whole)} | changes
    upstream = {error["field"] for error in verdict(changed(all_changes))}
    ours = {each.path for each in violations("upstream-contract", all_changes) if not each.advisory}
    one_fault = {RENAMED[path] for path in ours & RENAMED.keys()}
    assert ours - set(BEYOND) - one_fault == upstream - one_fault
    assert is_rejected(defaulted(changed(all_changes))) == bool(upstream - {"spec.runPolicy.managedBy"})


@pytest.mark.parametrize("name", sorted(assets().upstream_examples))
def test_operator_accepts_the_upstream_examples(verdict: Verdict, name: str) -> None:
    (job,) = load_all(assets().upstream_examples[name].read_text())
    assert verdict(job) == []


def test_an_unreadable_quantity_stops_the_operators_decoder() -> None:
    job = changed({"Worker.template.spec.containers.0.resources.limits.cpu": "1e1.5"})
    result = subprocess.run(
        [assets().operator_verdict], input=json.dumps(job) + "\n", capture_output=True, text=True, check=False
    )
    assert result.returncode != 0
    assert "quantities must match the regular expression" in result.stderr
