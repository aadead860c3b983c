"""The port of the workers' sshd."""

from typing import Any

import pytest

from tests.support.jobs import changed
from tests.support.rule_checks import defaulted
from webhook.api import sshd

DEFAULT = 1022
CONTAINER = "template.spec.containers.0"


def port(**changes: Any) -> int | None:
    """Change a valid job and return the port. For example, `Worker_command` sets the worker container's `command`."""
    job = changed({f"{name.replace('_', f'.{CONTAINER}.')}": value for name, value in changes.items()})
    return sshd.port(defaulted(job), DEFAULT)


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (None, DEFAULT),
        ([], DEFAULT),
        (["/usr/sbin/sshd", "-De"], DEFAULT),
        (["/usr/sbin/sshd", "-De", "-p", "2222"], 2222),
        (["/usr/sbin/sshd", "-D", "-p2222"], 2222),
        (["/usr/sbin/sshd", "-D", "-o", "Port=2222"], 2222),
        (["/usr/sbin/sshd", "-D", "-oPort=2222"], 2222),
        (["sshd", "-D", "-o", "port 2222"], 2222),
        (["sh", "-c", "mkdir -p /run/sshd && /usr/sbin/sshd -D -p 2222; sleep 5"], 2222),
        (["sh", "-c", "mkdir -p /run/sshd; /usr/sbin/sshd -De"], DEFAULT),
        (["bash", "-c", "service ssh start\nsleep infinity"], DEFAULT),
        (["sh", "-c", "/etc/init.d/ssh start && tail -f /dev/null"], DEFAULT),
        (["sh", "-c", "echo Port 2222 >> /etc/ssh/sshd_config; service ssh start; sleep 5"], None),
        (["/usr/sbin/sshd", "-De", "-f", "/home/mpiuser/.sshd_config"], None),
        (["sh", "-c", "sed -i 's/#Port 22/Port 2222/' /etc/ssh/sshd_config; /usr/sbin/sshd -D"], None),
        (["sh", "-c", "echo 'Port 2222' >> /etc/ssh/sshd_config; /usr/sbin/sshd -D"], None),
        (["sh", "-c", "/usr/sbin/sshd -p $PORT -D"], None),
        (["/usr/sbin/sshd", "-Dep", "2222"], 2222),
        (["/usr/sbin/sshd", "-Dep2222"], 2222),
        (["/usr/sbin/sshd", "-Def", "/home/mpiuser/.sshd_config"], None),
        (["sh", "-c", "mkdir -p /run/sshd && /usr/sbin/sshd -De \\\n  -p 2222"], 2222),
        (["/start.sh"], None),
        (["/usr/sbin/sshd", "-p", "0"], None),
        (["/usr/sbin/sshd", "-p", "65536"], None),
    ],
)
def test_port_from_the_sshd_command(command: Any, expected: int | None) -> None:
    assert port(Worker_command=command) == expected


@pytest.mark.parametrize(
    ("ports", "expected"),
    [
        ([{"containerPort": 2222}], 2222),
        ([{"containerPort": 22, "protocol": "TCP"}], 22),
        ([{"containerPort": 8022, "name": "ssh"}], 8022),
        ([{"containerPort": 9400}, {"containerPort": 2222}], 2222),
        ([{"containerPort": 9400, "name": "metrics"}], None),
        ([{"containerPort": 22}, {"containerPort": 2222}], None),
        ([{"containerPort": 22, "protocol": "UDP"}], None),
        ([{"name": "ssh"}], None),
        ([{"name": "ssh", "containerPort": 0}], None),
        ([], None),
    ],
)
def test_port_from_the_worker_container(ports: Any, expected: int | None) -> None:
    assert port(Worker_ports=ports, Worker_args=["/start.sh"]) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["mpirun", "-mca", "plm_rsh_args", "-p 2222", "x"], 2222),
        (["bash", "-c", 'mpirun --prtemca plm_ssh_args "-o Port=2222" x'], 2222),
        (["mpirun", "-mca", "plm_rsh_args", "-v", "x"], None),
        (["mpirun", "-mca", "pml", "-p 2222", "x"], None),
        (["ssh", "-p", "2222"], None),
    ],
)
def test_port_from_the_ssh_options_of_the_launcher(command: Any, expected: int | None) -> None:
    assert port(Launcher_command=command, Worker_args=["/start.sh"]) == expected


@pytest.mark.parametrize("name", sorted(sshd.SSH_OPTIONS))
def test_port_from_the_environment_of_the_launcher(name: str) -> None:
    """The operator overwrites the variable of Open MPI 4, so a value in the job has no effect."""
    env = [{"name": "A", "value": "-p 1"}, {"name": name, "value": "-v -p 2222"}]
    expected = None if name == "OMPI_MCA_plm_rsh_args" else 2222
    assert port(Launcher_env=env, Worker_args=["/start.sh"]) == expected


def test_options_of_sshd_take_precedence() -> None:
    command = ["mpirun", "-mca", "plm_rsh_args", "-p 3", "x"]
    assert port(Worker_command=["sshd", "-p", "1"], Worker_ports=[{"containerPort": 22}], Launcher_command=command) == 1
    assert port(Worker_ports=[{"containerPort": 22}], Launcher_command=command) == 22


@pytest.mark.parametrize("worker", [None, {"replicas": 1}, {"replicas": 1, "template": {"spec": {"containers": []}}}])
def test_port_is_unknown_without_a_worker(worker: Any) -> None:
    assert sshd.port(defaulted(changed({"Worker": worker})), DEFAULT) is None


def test_port_is_the_default_if_the_job_sets_no_port() -> None:
    assert sshd.port(defaulted(changed({"Launcher": None})), DEFAULT) == DEFAULT
    assert sshd.port(defaulted(changed()), None) is None
