from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, violations

HOST = {"Worker.template.spec.hostNetwork": True}
COMMAND = "Worker.template.spec.containers.0.command"
MOUNTS = "Worker.template.spec.containers.0.volumeMounts"
EXPECTED = [
    "spec.mpiReplicaSpecs[Worker].template.spec.hostNetwork: the node's sshd uses port 22 already",
]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {COMMAND: ["/usr/sbin/sshd", "-De"]},
        {COMMAND: ["bash", "-c", "mkdir -p /run/sshd; /usr/sbin/sshd -De"]},
        {MOUNTS: [{"name": "ssh", "mountPath": "/etc/ssh/ssh_config"}]},
        {COMMAND: ["/start.sh"], "Worker.template.spec.containers.0.ports": [{"containerPort": 22}]},
    ],
)
def test_sshd_on_port_22_of_the_node_is_reported(changes: dict[str, Any]) -> None:
    (violation,) = result = violations("host-network", HOST | changes)
    assert as_texts(result) == EXPECTED
    assert violation.fix == "Set another Port in the image's sshd_config and ssh_config, or remove hostNetwork."


@pytest.mark.parametrize(
    "changes",
    [
        {"Worker.template.spec.hostNetwork": False},
        {"Worker": REMOVE},
        {COMMAND: ["/usr/sbin/sshd", "-De", "-p", "2222"]},
        {COMMAND: ["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"]},
        {COMMAND: ["/start.sh"]},
        {MOUNTS: [{"name": "ssh", "mountPath": "/etc/ssh/sshd_config", "subPath": "sshd_config"}]},
        {MOUNTS: [{"name": "ssh", "mountPath": "/etc/ssh/sshd_config.d/"}]},
        {MOUNTS: [{"name": "ssh", "mountPath": "/etc/ssh"}]},
        {"Worker.template.spec.containers.0.ports": [{"containerPort": 2222}]},
        {"Launcher.template.spec.containers.0.command": ["mpirun", "-mca", "plm_rsh_args", "-p 2222", "x"]},
    ],
)
def test_another_port_or_the_pod_network_is_accepted(changes: dict[str, Any]) -> None:
    assert violations("host-network", HOST | changes) == []
