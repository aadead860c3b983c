import pytest

from tests.support.injecting import PATHS, Example, inject, mpijob, only, pod_spec
from webhook.admission import pipelines

ID = "host-network"
PORTS = f"{PATHS['Worker']}/spec/containers/0/ports"
NOTE = "declared port {} of the workers' sshd, so that each has a node of its own"


def on_host(**container):
    pod = pod_spec(hostNetwork=True)
    pod["containers"][0] |= container
    return mpijob(worker={"spec": pod})


EXAMPLE = Example(job=on_host())


@pytest.mark.parametrize(
    ("container", "settings", "port"),
    [
        ({}, {}, 22),
        ({"ports": []}, {}, 22),
        ({}, {"port": 2022}, 2022),
        ({"command": ["/usr/sbin/sshd", "-D", "-p", "2222"]}, {}, 2222),
    ],
)
def test_port_of_sshd_is_declared(container, settings, port):
    added, notes = inject(ID, on_host(**container), **settings)
    declared = {"containerPort": port, "protocol": "TCP"}
    assert added == ({f"{PORTS}/-": declared} if "ports" in container else {PORTS: [declared]})
    assert notes == [NOTE.format(port)]


@pytest.mark.parametrize("port", [22, 8080])
def test_container_that_declares_a_port_stays_unchanged(port):
    assert inject(ID, on_host(ports=[{"containerPort": port}])) == ({}, [])


@pytest.mark.parametrize(
    "pod",
    [
        {"containers": [{"name": "mpi"}, {"name": "side", "ports": [{"containerPort": 22}]}]},
        {"containers": [{"name": "mpi"}, {"name": "side", "ports": [{"containerPort": 80, "hostPort": 80}]}]},
        {"initContainers": [{"name": "side", "restartPolicy": "Always", "ports": [{"containerPort": 22}]}]},
    ],
)
def test_worker_stays_unchanged_if_another_container_declares_a_port(pod):
    """The API server rejects a host port that is declared twice."""
    assert inject(ID, mpijob(worker={"spec": pod_spec(hostNetwork=True) | pod})) == ({}, [])


def test_port_of_an_init_container_does_not_count():
    init = [{"name": "before", "ports": [{"containerPort": 22}]}]
    assert inject(ID, mpijob(worker={"spec": pod_spec(hostNetwork=True, initContainers=init)}))[1] == [NOTE.format(22)]


@pytest.mark.parametrize("pod", [pod_spec(), pod_spec(hostNetwork=False), pod_spec(hostNetwork=None), None])
def test_pods_outside_the_host_network_stay_unchanged(pod):
    assert inject(ID, mpijob(worker={"spec": pod})) == ({}, [])


def test_launcher_stays_unchanged_and_so_does_a_worker_without_containers():
    job = mpijob(launcher={"spec": pod_spec(hostNetwork=True)}, worker={"spec": {"hostNetwork": True}})
    assert inject(ID, job) == ({}, [])
    del job["spec"]["mpiReplicaSpecs"]["Worker"]
    assert inject(ID, job) == ({}, [])


def test_unknown_port_is_reported():
    assert inject(ID, on_host(command=["/start.sh"])) == (
        {},
        ["sshd's port is not known: declare it in the worker's ports, or workers may share a node"],
    )


def test_injection_is_off_by_default():
    assert ID not in {entry.id for entry, _ in pipelines.load_policy(None).injections}
    assert ID in {entry.id for entry, _ in only(ID, enabled=True).injections}
