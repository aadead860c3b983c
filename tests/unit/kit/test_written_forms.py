"""A form describes the values that an injection can write. An update restores only values that match a form.

So a form must match no other values. `tests.support.promises` checks the forms in the tests of each injection.
"""

import pytest

from tests.support.written_forms import holds
from webhook.api import duration
from webhook.injections.mpi_env import SSH_ARGS

LAUNCHER, WORKER = (("spec", "mpiReplicaSpecs", role, "template", "spec") for role in ("Launcher", "Worker"))
DEADLINE = ("spec", "runPolicy", "activeDeadlineSeconds")
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
POD_AFFINITY = (*WORKER, "affinity", "podAffinity", PREFERRED, "0")
NODE_AFFINITY = (*WORKER, "affinity", "nodeAffinity", PREFERRED, "0")
TERM = (
    *(*WORKER, "affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"),
    *("nodeSelectorTerms", "0"),
)
PROBE = (*WORKER, "containers", "0", "readinessProbe")
PORT = (*WORKER, "containers", "0", "ports", "0")
ENV = (*LAUNCHER, "containers", "0", "env", "0")
TOLERATION = (*WORKER, "tolerations", "0")
CONDITION = {"key": "gpu", "operator": "In", "values": ["true"]}
NEAR = {
    "topologyKey": "rack",
    "labelSelector": {"matchLabels": {"training.kubeflow.org/operator-name": "mpi-operator"}},
    "matchLabelKeys": ["training.kubeflow.org/job-name"],
}


def variable(name, value):
    return {"name": name, "value": value}


@pytest.mark.parametrize(
    ("path", "written", "others"),
    [
        pytest.param(
            DEADLINE, [1, duration.MAX_SECONDS], [0, -1, duration.MAX_SECONDS + 1, True, "60"], id="job-timeout"
        ),
        pytest.param((*WORKER, DEADLINE[-1]), [1], [0, duration.MAX_SECONDS + 1], id="job-timeout of workers"),
        pytest.param(
            POD_AFFINITY,
            [{"weight": weight, "podAffinityTerm": NEAR} for weight in (100, 25, 6, 1)],
            [
                {"weight": 7, "podAffinityTerm": NEAR},
                {"weight": 100, "podAffinityTerm": {**NEAR, "topologyKey": None}},
                {"weight": 100, "podAffinityTerm": {**NEAR, "matchLabelKeys": ["app"]}},
                {"weight": 100, "podAffinityTerm": {**NEAR, "labelSelector": {"matchLabels": {"app": "x"}}}},
                {"weight": 100, "podAffinityTerm": {**NEAR, "labelSelector": {"matchExpressions": [CONDITION]}}},
                {"weight": 100, "podAffinityTerm": {**NEAR, "namespaceSelector": {}}},
                "near",
            ],
            id="topology",
        ),
        pytest.param(
            NODE_AFFINITY,
            [{"weight": 50, "preference": {"matchExpressions": [CONDITION]}}],
            [
                {"weight": 49, "preference": {"matchExpressions": [CONDITION]}},
                {"weight": 50, "preference": {"matchExpressions": [{**CONDITION, "values": ["false"]}]}},
                {"weight": 50, "preference": {"matchExpressions": [CONDITION, CONDITION]}},
                {"weight": 50, "preference": {"matchExpressions": []}},
                "near",
            ],
            id="gpu-nodes, preferred",
        ),
        pytest.param(
            TERM,
            [{"matchExpressions": [CONDITION]}, {"matchExpressions": [{**CONDITION, "values": ["H100", "A100"]}]}],
            [
                {"matchExpressions": []},
                {"matchExpressions": [{**CONDITION, "values": []}]},
                {"matchExpressions": [{**CONDITION, "operator": "NotIn"}]},
                {"matchFields": [CONDITION]},
            ],
            id="gpu-nodes, required",
        ),
        pytest.param(
            TOLERATION,
            [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a", "operator": "Equal"}],
            [{"key": "a"}, {"key": "", "operator": "Exists", "effect": "NoSchedule"}, {"key": "a b"}, "gpu"],
            id="tolerations",
        ),
        pytest.param(
            PROBE,
            [{"tcpSocket": {"port": 2222}, "periodSeconds": 5, "timeoutSeconds": 5}],
            [
                {"tcpSocket": {"port": 22, "host": "db"}, "periodSeconds": 5, "timeoutSeconds": 5},
                {"tcpSocket": {"port": 22}, "periodSeconds": 1, "timeoutSeconds": 5},
                {"tcpSocket": {"port": "ssh"}, "periodSeconds": 5, "timeoutSeconds": 5},
                {"tcpSocket": 22, "periodSeconds": 5, "timeoutSeconds": 5},
            ],
            id="worker-readiness",
        ),
        pytest.param(
            PORT,
            [{"containerPort": 22, "protocol": "TCP"}],
            [{"containerPort": 22, "protocol": "UDP"}, {"containerPort": 0, "protocol": "TCP"}, {"containerPort": 22}],
            id="host-network",
        ),
        pytest.param(
            ENV,
            [variable("PRTE_MCA_plm_ssh_args", f"-p 2222 {SSH_ARGS}"), variable("HYDRA_LAUNCHER_EXTRA_ARGS", SSH_ARGS)],
            [
                variable("LD_PRELOAD", "x"),
                variable("OMPI_MCA_mca_base_env_list", "LD_PRELOAD=x"),
            ],
            id="mpi-env, rdma",
        ),
    ],
)
def test_form_accepts_injected_values_and_rejects_similar_ones(path, written, others):
    assert [value for value in written if not holds(path, value)] == []
    assert [value for value in others if holds(path, value)] == []
