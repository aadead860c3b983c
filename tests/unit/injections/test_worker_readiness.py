import pytest

from tests.support.injecting import PATHS, Example, hold, inject, only
from tests.support.kueue_objects import cluster_queue, config, local_queue, namespace
from tests.support.waiting_jobs import READINESS, waiting_job
from webhook.admission import pipelines
from webhook.cluster.snapshot import Snapshot

ID = "worker-readiness"
QUEUE = {"kueue.x-k8s.io/queue-name": "q"}
POLICY = "/spec/launcherCreationPolicy"
PROBE = f"{PATHS['Worker']}/spec/containers/0/readinessProbe"
WAIT = "WaitForWorkersReady"
OWN = {"tcpSocket": {"port": 7}}


def probe(port=22):
    return {"tcpSocket": {"port": port}, "periodSeconds": 5, "timeoutSeconds": 5}


PORT = {"port": 22}
ON = {"enabled": True}
SHOWN = {"ports": [{"containerPort": 22}]}
EXAMPLE = Example(job=waiting_job(worker=SHOWN), settings=ON)


def note(port=22):
    return [f"added a readiness probe on port {port} to the workers and launcherCreationPolicy: {WAIT}"]


@pytest.mark.parametrize(
    ("fields", "settings", "port"),
    [
        ({}, PORT, 22),
        ({"worker": {"command": ["/usr/sbin/sshd", "-D", "-p", "2222"]}}, {}, 2222),
        ({"worker": {"ports": [{"containerPort": 2222}]}}, {}, 2222),
        ({"annotation": "2023"}, PORT, 2023),
        ({"run_policy": {"suspend": False, "schedulingPolicy": {"minAvailable": 2}}}, PORT, 22),
    ],
)
def test_probe_and_creation_policy_are_injected_together(fields, settings, port):
    added, notes = inject(ID, waiting_job(**fields), **ON, **settings)
    assert added == {PROBE: probe(port), POLICY: WAIT}
    assert notes == note(port)


OWN_PROBE = {"readinessProbe": OWN}


@pytest.mark.parametrize(
    ("fields", "settings", "added", "notes"),
    [
        ({"worker": OWN_PROBE}, {}, {POLICY: WAIT}, [f"added launcherCreationPolicy: {WAIT}"]),
        # With a probe of the user, the port is not needed.
        ({"policy": WAIT}, PORT, {PROBE: probe()}, ["added a readiness probe on port 22 to the workers"]),
        ({"policy": WAIT, "worker": OWN_PROBE}, {}, {}, []),
    ],
)
def test_probe_or_creation_policy_of_the_user_stays(fields, settings, added, notes):
    assert inject(ID, waiting_job(**fields), **ON, **settings) == (added, notes)


@pytest.mark.parametrize(
    "fields",
    [
        {"policy": "Later"},
        {"run_policy": {"suspend": True}},
        {"labels": QUEUE},
        {"run_policy": {"schedulingPolicy": {}}},
    ],
)
def test_nothing_is_injected_if_the_operator_cannot_wait(fields):
    assert inject(ID, waiting_job(**fields), **ON, **PORT) == ({}, [])


@pytest.mark.parametrize(
    ("fields", "settings"),
    [
        # The job does not state the port. The image may set any port in its sshd_config.
        ({}, {}),
        ({"worker": {"command": ["/usr/sbin/sshd", "-De"]}}, {}),
        ({"annotation": "true"}, {}),
    ],
)
def test_unknown_port_is_reported(fields, settings):
    caution = f'sshd\'s port is unknown: declare it in ports, or set {READINESS}: "2222"'
    assert inject(ID, waiting_job(**fields), **(ON | settings)) == ({}, [caution])


def test_unknown_port_is_not_reported_if_the_launcher_itself_waits():
    job = waiting_job()
    launcher = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    launcher["initContainers"] = [{"name": "wait-for-workers", "image": "x"}]
    assert inject(ID, job, **ON) == ({}, [])


@pytest.mark.parametrize("worker", [None, {"replicas": 0}, {"replicas": 1}, {"replicas": 1, "template": {"spec": {}}}])
def test_job_without_workers_stays_unchanged(worker):
    job = waiting_job()
    job["spec"]["mpiReplicaSpecs"]["Worker"] = worker
    assert inject(ID, job, **ON, **PORT) == ({}, [])


def test_nothing_is_injected_if_an_earlier_injection_puts_the_job_into_a_queue():
    """The injection `kueue-queue` runs before `worker-readiness`."""
    view = Snapshot([config(), namespace("team"), cluster_queue("cq"), local_queue("q", "cq", namespace="team")])
    policy = pipelines.load_policy(None)
    queued = (*only("kueue-queue").injections, *only(ID, **ON).injections)
    decision = hold(waiting_job(worker=SHOWN), pipelines.Policy(policy.document, (), queued), view=view)
    assert set(decision.authors) == {"kueue-queue"}


@pytest.mark.parametrize(
    "objects",
    [
        [config(), namespace("team"), local_queue("default", "cq", namespace="team")],
        [namespace("team"), local_queue("default", "cq", namespace="team")],
        [config(), namespace("team")],
    ],
)
def test_job_that_kueue_itself_may_queue_stays_unchanged(objects):
    assert inject(ID, waiting_job(worker=SHOWN), view=Snapshot(objects), **ON) == ({}, [])
