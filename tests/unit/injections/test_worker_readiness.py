import pytest

from tests.support.injecting import PATHS, Example, hold, inject, mpijob, only, pod_spec
from tests.support.kueue_objects import cluster_queue, config, local_queue, namespace
from webhook.admission import pipelines
from webhook.cluster.snapshot import Snapshot

ID = "worker-readiness"
KEY = "training.openshift.io/worker-readiness"
QUEUE = {"kueue.x-k8s.io/queue-name": "q"}
POLICY = "/spec/launcherCreationPolicy"
PROBE = f"{PATHS['Worker']}/spec/containers/0/readinessProbe"
WAIT = "WaitForWorkersReady"
OWN = {"tcpSocket": {"port": 7}}


def probe(port=22):
    return {"tcpSocket": {"port": port}, "periodSeconds": 5, "timeoutSeconds": 5}


def job(answer="true", *, labels=None, worker=None, launcher=None, policy="AtStartup", **spec):
    """With the default that the API server fills in; `worker` and `launcher` are fields of the first container."""
    pods = {}
    for role, fields in (("worker", worker), ("launcher", launcher)):
        pods[role] = {"spec": pod_spec()}
        pods[role]["spec"]["containers"][0] |= fields or {}
    metadata = {"annotations": {} if answer is None else {KEY: answer}, "labels": labels or {}}
    return mpijob(metadata=metadata, launcherCreationPolicy=policy, **pods, **spec)


PORT = {"port": 22}
SHOWN = {"ports": [{"containerPort": 22}]}
EXAMPLE = Example(job=job(worker=SHOWN))


def note(port=22):
    return [f"added a readiness probe on port {port} to the workers and launcherCreationPolicy: {WAIT}"]


@pytest.mark.parametrize(
    ("given", "settings", "port"),
    [
        ({}, PORT, 22),
        ({"policy": None}, PORT, 22),
        ({}, {"port": 2022}, 2022),
        ({"answer": None}, {"byDefault": True, **PORT}, 22),
        ({"answer": None, "worker": {"ports": [{"containerPort": 2222}]}}, {"byDefault": True}, 2222),
        ({"answer": "2222"}, {}, 2222),
        ({"answer": "2222", "worker": {"command": ["/start.sh"]}}, {}, 2222),
        ({"worker": {"command": ["/usr/sbin/sshd", "-D", "-p", "2222"]}}, {}, 2222),
        ({"worker": {"ports": [{"containerPort": 2222}]}}, {}, 2222),
        ({"launcher": {"command": ["mpirun", "-mca", "plm_rsh_args", "-p 2222", "x"]}}, {}, 2222),
        ({"launcher": {"env": [{"name": "PRTE_MCA_plm_ssh_args", "value": "-p 2222"}]}}, {}, 2222),
        ({"run_policy": {"suspend": False, "schedulingPolicy": {"minAvailable": 2}}}, PORT, 22),
    ],
)
def test_probe_and_policy_come_together(given, settings, port):
    added, notes = inject(ID, job(**given), **settings)
    assert added == {PROBE: probe(port), POLICY: WAIT}
    assert notes == note(port)


def test_what_the_user_has_of_the_two_stays():
    assert inject(ID, job(worker={"readinessProbe": OWN})) == (
        {POLICY: WAIT},
        [f"added launcherCreationPolicy: {WAIT}"],
    )
    assert inject(ID, job(policy=WAIT), **PORT) == (
        {PROBE: probe()},
        ["added a readiness probe on port 22 to the workers"],
    )
    assert inject(ID, job(policy=WAIT, worker={"readinessProbe": OWN})) == ({}, [])
    own = {"readinessProbe": OWN, "command": ["/start.sh"]}
    assert inject(ID, job(worker=own))[0] == {POLICY: WAIT}, "for a probe of the user's the port need not be known"


@pytest.mark.parametrize(
    ("given", "settings"),
    [
        ({"answer": None}, {}),
        ({"answer": "false"}, {"byDefault": True}),
        ({"policy": "Later"}, {"byDefault": True}),
        ({"policy": ""}, {"byDefault": True}),
        ({"answer": None, "run_policy": {"suspend": True}}, {"byDefault": True}),
        ({"answer": None, "labels": QUEUE}, {"byDefault": True}),
        ({"answer": None, "worker": {"command": ["/start.sh"]}}, {"byDefault": True}),
        ({"answer": None}, {"byDefault": True}),
        ({"answer": None, "run_policy": {"schedulingPolicy": {}}}, {"byDefault": True}),
    ],
)
def test_nothing_is_put_in_or_told(given, settings):
    assert inject(ID, job(**given), **settings) == ({}, [])


@pytest.mark.parametrize("worker", [None, {"replicas": 0}, {"replicas": 1}, {"replicas": 1, "template": {"spec": {}}}])
def test_nothing_without_workers(worker):
    other = job()
    other["spec"]["mpiReplicaSpecs"]["Worker"] = worker
    assert inject(ID, other) == ({}, [])


QUEUED = "has no effect on suspended or queued jobs: the operator does not wait for their workers"
UNKNOWN = f'sshd\'s port is unknown: declare it in ports, or set {KEY}: "2222"'
GANG = "nothing added: with schedulingPolicy, minAvailable has to be 2 or fewer"


@pytest.mark.parametrize(
    ("given", "caution"),
    [
        ({"run_policy": {"suspend": True}}, QUEUED),
        ({"labels": QUEUE}, QUEUED),
        ({"run_policy": {"schedulingPolicy": {}}}, GANG),
        ({"run_policy": {"schedulingPolicy": {"minAvailable": 3}}}, GANG),
        ({"worker": {"command": ["/start.sh"]}}, UNKNOWN),
        # The image decides: that of upstream has 2222 in its sshd_config.
        ({}, UNKNOWN),
        ({"worker": {"command": ["/usr/sbin/sshd", "-De"]}}, UNKNOWN),
        # The operator overwrites it.
        ({"launcher": {"env": [{"name": "OMPI_MCA_plm_rsh_args", "value": "-p 2222"}]}}, UNKNOWN),
        ({"answer": "yes"}, f'{KEY} "yes" is not "true", "false" or a port'),
        ({"answer": ""}, f'{KEY} "" is not "true", "false" or a port'),
        ({"answer": "0"}, f'{KEY} "0" is not "true", "false" or a port'),
        ({"answer": "65536"}, f'{KEY} "65536" is not "true", "false" or a port'),
        ({"answer": "9" * 5000}, f'{KEY} "999999999..." is not "true", "false" or a port'),
    ],
)
def test_who_asks_is_told_why_not(given, caution):
    assert inject(ID, job(**given)) == ({}, [caution])


def test_the_first_one_who_suspends_is_seen():
    """Injections that ran before may have put the job into a queue."""
    view = Snapshot([config(), namespace("team"), cluster_queue("cq"), local_queue("q", "cq", namespace="team")])
    policy = pipelines.load_policy(None)
    queued = (*only("kueue-queue").injections, *only(ID, byDefault=True).injections)
    decision = hold(job(None, worker=SHOWN), pipelines.Policy(policy.document, (), queued), view=view)
    assert set(decision.authors) == {"kueue-queue"}


@pytest.mark.parametrize(
    ("objects", "caution"),
    [
        ([config(), namespace("team"), local_queue("default", "cq", namespace="team")], QUEUED),
        ([namespace("team"), local_queue("default", "cq", namespace="team")], QUEUED),
        ([config(), namespace("team")], "nothing added: whether Kueue queues the job is not known"),
    ],
)
def test_jobs_that_kueue_itself_will_queue(objects, caution):
    view = Snapshot(objects)
    assert inject(ID, job(None, worker=SHOWN), view=view, byDefault=True) == ({}, [])
    assert inject(ID, job(worker=SHOWN), view=view) == ({}, [caution])
