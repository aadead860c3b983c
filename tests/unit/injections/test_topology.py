import itertools
import json

import pytest

from tests.support import kueue_objects as kueue
from tests.support.injecting import PATHS, Example, hold, mpijob, only, pod_spec
from tests.support.jobs import request
from tests.support.nodes import node
from webhook.admission import pipelines
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown

ID = "topology"
RACK, BLOCK, ZONE = (f"topology.kubernetes.io/{level}" for level in ("rack", "block", "zone"))
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
QUEUE = "kueue.x-k8s.io/queue-name"
LEVEL, GROUP, ANYWHERE = (
    f"kueue.x-k8s.io/podset-{kind}" for kind in ("preferred-topology", "group-name", "unconstrained-topology")
)
GPU = "nvidia.com/gpu"


NODES = Snapshot([node("n1", {RACK: "r1", ZONE: "z1"}), node("n2", {RACK: "r2", "pool": "a"})])
EXAMPLE = Example(view=NODES)


def inject(job, view=NODES, **settings):
    """Affinity terms by role, annotations by role, and the notes."""
    decision = hold(job, only(ID, **settings), view=view)
    assert not decision.skipped
    templates = {role: one["template"] for role, one in decision.document["spec"]["mpiReplicaSpecs"].items()}
    terms = {
        role: found
        for role, template in templates.items()
        if (found := ((template["spec"].get("affinity") or {}).get("podAffinity") or {}).get(PREFERRED))
    }
    annotations = {role: one["metadata"]["annotations"] for role, one in templates.items() if "metadata" in one}
    return terms, annotations, [note.removeprefix(f"{ID}: ") for note in decision.notes]


def term(key, weight, **labels):
    selector = {"training.kubeflow.org/operator-name": "mpi-operator", **labels}
    return {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": selector}}}


NAMED = {"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/job-name": "train"}
TERMS = [term(RACK, 100, **NAMED), term(ZONE, 25, **NAMED)]


def test_workers_are_drawn_together_by_what_nodes_have():
    assert inject(mpijob()) == ({"Worker": TERMS}, {}, [f"workers come together by {RACK}, {ZONE}"])


@pytest.mark.parametrize("name", [{"name": "copy"}, {"generateName": "train-"}])
def test_a_copy_is_drawn_to_the_job_that_it_is_a_copy_of(name):
    """The advice works: without the copied affinity, the workers of the copy are placed together."""
    copied = hold(mpijob(), only(ID), view=NODES).document
    copied["metadata"] = {**name, "annotations": copied["metadata"]["annotations"]}
    reason = 'podAffinity draws the workers to job "train". Remove it if this job is a copy.'
    assert inject(copied) == ({"Worker": TERMS}, {}, [reason])
    del copied["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"]
    assert inject(copied)[2] == [f"workers come together by {RACK}, {ZONE}"]


def test_the_policys_own_keys_in_its_order():
    terms, _, notes = inject(mpijob(), keys=["pool", RACK, "pool"])
    assert terms == {"Worker": [term("pool", 100, **NAMED), term(RACK, 25, **NAMED)]}
    assert notes == [f"workers come together by pool, {RACK}"]


def test_weights_fall_and_stay_weights():
    keys = [f"k{index}" for index in range(6)]
    terms, _, _ = inject(mpijob(), Snapshot([node("n1", dict.fromkeys(keys, "x"))]), keys=keys)
    assert [one["weight"] for one in terms["Worker"]] == [100, 25, 6, 1, 1, 1]


def test_a_key_of_the_policy_that_no_node_has_is_reported():
    terms, _, notes = inject(mpijob(), keys=["switch", ZONE])
    assert terms == {"Worker": [term(ZONE, 100, **NAMED)]}
    assert notes == [
        "no node has the label switch, so it brings no workers together",
        f"workers come together by {ZONE}",
    ]


def test_a_well_known_key_that_no_node_has_is_not_reported():
    assert inject(mpijob(), Snapshot([node("n1", {"pool": "a"})])) == ({}, {}, [])


@pytest.mark.parametrize("view", [NothingKnown(), Snapshot([])])
def test_unknown_nodes(view):
    assert inject(mpijob(), view) == ({}, {}, [])
    assert inject(mpijob(), view, keys=[RACK])[0] == {"Worker": TERMS[:1]}


def test_labels_unique_to_each_node_are_used():
    assert inject(mpijob(), keys=["own"], view=Snapshot([node("n1", {"own": "n1"})]))[0]["Worker"][0]["weight"] == 100


class TestGenerateName:
    def job(self):
        return mpijob(metadata={"name": "", "generateName": "train-"})

    @pytest.mark.parametrize("kubelet", ["v1.31.0", "v1.35.4-eks-1", "v2.0.1"])
    def test_the_operators_label_means_the_name(self, kubelet):
        terms, _, _ = inject(
            self.job(),
            Snapshot([node("old", {RACK: "r"}, kubelet="v1.30.2"), node("n1", {RACK: "r"}, kubelet=kubelet)]),
        )
        wanted = term(RACK, 100, **{"training.kubeflow.org/job-role": "worker"})
        wanted["podAffinityTerm"]["matchLabelKeys"] = ["training.kubeflow.org/job-name"]
        assert terms == {"Worker": [wanted]}

    @pytest.mark.parametrize("kubelet", ["v1.30.9", "v1.9.0", "", "kwok-v0.8.0"])
    def test_no_affinity_where_the_api_server_may_drop_the_selector(self, kubelet):
        """It would attract the workers of every job to each other."""
        terms, _, notes = inject(self.job(), Snapshot([node("n1", {RACK: "r"}, kubelet=kubelet)]))
        assert terms == {}
        assert notes == ["workers do not come together: with generateName that needs nodes of Kubernetes 1.31"]

    def test_unknown_nodes(self):
        terms, _, notes = inject(self.job(), NothingKnown(), keys=[RACK])
        assert terms == {}
        assert len(notes) == 1

    def test_an_update_puts_it_back(self):
        created = hold(self.job(), only(ID), view=NODES).document
        created["metadata"]["name"] = "train-x7k2p"
        dropped = json.loads(json.dumps(created))
        del dropped["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"]
        sent = request(dropped, old=created)
        patch = pipelines.mutate(sent, policy=only(ID), view=NODES).patch
        assert [one["path"] for one in patch] == [
            f"{PATHS['Worker']}/spec/affinity",
            f"{PATHS['Worker']}/spec/affinity/podAffinity/{PREFERRED}/-",
        ]


def test_a_launcher_that_is_a_worker_comes_along():
    named = [
        term(key, weight, **{"training.kubeflow.org/job-name": "train"}) for key, weight in ((RACK, 100), (ZONE, 25))
    ]
    assert inject(mpijob(runLauncherAsWorker=True))[0] == {"Launcher": named, "Worker": named}


def with_workers(count, **spec):
    job = mpijob(**spec)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = count
    return job


@pytest.mark.parametrize(
    ("job", "together"),
    [
        (with_workers(1), False),
        (with_workers(1, runLauncherAsWorker=True), True),
        (with_workers(0, runLauncherAsWorker=True), False),
        (with_workers(None), False),
        (with_workers(-3), False),
        (mpijob(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}), False),
        (mpijob(run_policy={"managedBy": "kubeflow.org/mpi-operator"}), True),
        (mpijob(worker={"spec": None}), False),
    ],
)
def test_single_pods_get_no_affinity(job, together):
    decision = hold(job, only(ID), view=NODES)
    assert bool(decision.patch) is together


FAR = {"labelSelector": {}, "topologyKey": "kubernetes.io/hostname"}


@pytest.mark.parametrize("role", ["worker", "launcher"])
@pytest.mark.parametrize(
    ("own", "chosen"),
    [
        ({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [FAR]}}}, True),
        ({"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": FAR}]}}}, True),
        ({"topologySpreadConstraints": [{"topologyKey": RACK}]}, True),
        (
            {"affinity": {"podAntiAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": RACK}}]}}},
            True,
        ),
        ({"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [FAR]}}}, False),
        ({"affinity": {"podAffinity": {}, "podAntiAffinity": None}, "topologySpreadConstraints": []}, False),
        ({"affinity": {"nodeAffinity": {"x": 1}}}, False),
        ({"affinity": None}, False),
    ],
)
def test_the_users_choice_stays(role, own, chosen):
    decision = hold(mpijob(**{role: {"spec": pod_spec(**own)}}), only(ID), view=NODES)
    assert bool(decision.patch) is not chosen
    assert bool(decision.notes) is not chosen


@pytest.mark.parametrize("kind", ["required-topology", "unconstrained-topology", "slice-size", "group-name"])
def test_an_annotation_of_kueues_is_a_choice_too(kind):
    job = mpijob(worker={"metadata": {"annotations": {f"kueue.x-k8s.io/podset-{kind}": "x"}}, "spec": pod_spec()})
    assert hold(job, only(ID), view=NODES).patch == []


class TestKueue:
    """Queues in which Kueue itself places pods together."""

    TOPOLOGY = kueue.topology("racks", BLOCK, RACK, "kubernetes.io/hostname")
    BASE = (
        kueue.config(),
        kueue.namespace("team"),
        kueue.local_queue("q", "cq", namespace="team"),
        node("n1", {RACK: "r"}),
    )

    def view(self, *objects):
        return Snapshot([*self.BASE, self.TOPOLOGY, *objects])

    def job(self, *, gpus=True, launcher=None, **fields):
        asked = {"resources": {"limits": {"cpu": "1", **({GPU: 2} if gpus else {})}}}
        container = {"name": "mpi", "image": "x:1"}
        return mpijob(
            metadata={"labels": {QUEUE: "q"}},
            worker={"spec": {"containers": [container | asked]}},
            launcher={"spec": {"containers": [container | {"resources": {"limits": launcher or {"cpu": "1"}}}]}},
            **fields,
        )

    def tas(self, name="tas", topology="racks"):
        return kueue.flavor(name, topologyName=topology)

    def all_tas(self, *more):
        return self.view(*more, self.tas(), kueue.cluster_queue("cq", {"tas": {"cpu": 100, GPU: 64}}))

    def mixed(self, plain, tas):
        return self.view(self.tas(), kueue.flavor("plain"), kueue.cluster_queue("cq", {"plain": plain, "tas": tas}))

    def three(self, *levels):
        """A small flavor with racks, and a big one with these levels."""
        quotas = {"plain": {"cpu": 10, GPU: 0}, "small": {"cpu": 100, GPU: 1}, "big": {"cpu": 100, GPU: 64}}
        cells = (self.tas("big", "cells"), kueue.topology("cells", *levels))
        return self.view(self.tas("small"), *cells, kueue.flavor("plain"), kueue.cluster_queue("cq", quotas))

    def test_every_flavor_has_a_topology(self):
        kept = [f"Kueue keeps the workers together by {RACK}"]
        assert inject(self.job(), self.all_tas()) == ({}, {"Worker": {LEVEL: RACK}}, kept)

    def test_a_queue_that_kueue_itself_will_give_the_job(self):
        job = self.job()
        del job["metadata"]["labels"]
        assert inject(job, self.all_tas())[1] == {}, "it is in no queue"
        default = kueue.local_queue("default", "cq", namespace="team")
        assert inject(job, self.all_tas(default))[:2] == ({}, {"Worker": {LEVEL: RACK}})

    def test_where_pods_are_kept_together(self):
        on_tas, tas = {"Worker": {LEVEL: RACK}}, {"cpu": 100, GPU: 64}
        computes = self.job(launcher={"cpu": "1", GPU: 2}, runLauncherAsWorker=True)
        together = {role: {LEVEL: RACK, GROUP: "workers"} for role in ("Launcher", "Worker")}
        only_there = self.mixed({"cpu": 10, GPU: 0}, tas)
        for job, view, annotations in (
            (computes, self.all_tas(), together),
            (self.job(), only_there, on_tas),
            (computes, only_there, together),
            (self.job(), self.mixed({"cpu": 0, GPU: 0}, tas), {"Launcher": {ANYWHERE: "true"}, **on_tas}),
            # Both have the host in common, which would be too near; the second has no racks.
            (self.job(), self.three("cell", "kubernetes.io/hostname"), {"Worker": {LEVEL: "kubernetes.io/hostname"}}),
            (self.job(), self.three("room", "cell"), {"Worker": {LEVEL: "cell"}}),
        ):
            assert inject(job, view)[:2] == ({}, annotations)

    def test_workers_that_fit_elsewhere_stay_there(self):
        """An annotation would keep them from the flavors without a topology."""
        terms, annotations, _ = inject(self.job(), self.mixed({"cpu": 10, GPU: 64}, {"cpu": 100, GPU: 64}))
        assert [one["podAffinityTerm"]["topologyKey"] for one in terms["Worker"]] == [RACK]
        assert annotations == {}

    def test_a_job_that_fits_nowhere_is_left_to_the_rule_for_that(self):
        assert inject(self.job(), self.mixed({"cpu": 10, GPU: 0}, {"cpu": 100, GPU: 1}))[1] == {}

    @pytest.mark.parametrize(
        "without",
        ["ConfigMap", "LocalQueue", "ClusterQueue", "ResourceFlavor", "Topology", "Namespace"],
    )
    def test_what_is_not_known_leaves_the_affinity(self, without):
        queue = kueue.cluster_queue("cq", {"tas": {"cpu": 100, GPU: 64}})
        objects = [one for one in (*self.BASE, self.TOPOLOGY, self.tas(), queue) if one["kind"] != without]
        terms, annotations, _ = inject(self.job(), Snapshot(objects))
        assert ("Worker" in terms, annotations) == (True, {})

    @pytest.mark.parametrize("label", ["gone", None])
    def test_missing_or_unknown_queue_leaves_the_affinity(self, label):
        """In a queue with a topology, Kueue chooses the node of each pod, so a preference has no effect."""
        every_job = kueue.config("manageJobsWithoutQueueName: true\n")
        job = self.job()
        job["metadata"]["labels"] = {QUEUE: label} if label else {}
        terms, annotations, _ = inject(job, Snapshot([every_job, *self.BASE[1:], self.TOPOLOGY]))
        assert [one["podAffinityTerm"]["topologyKey"] for one in terms["Worker"]] == [RACK]
        assert annotations == {}

    def test_a_job_with_claims(self):
        """Kueue counts the claims in its own way, but in this queue the job needs a topology in any case."""
        job = self.job()
        job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu"}]
        assert inject(job, self.all_tas())[1] == {"Worker": {LEVEL: RACK}}
        assert inject(job, self.mixed({"cpu": 10, GPU: 0}, {"cpu": 100, GPU: 64}))[1] == {}

    def test_topology_aware_scheduling_is_off(self):
        off = kueue.config("featureGates: {TopologyAwareScheduling: false}\n")
        queue = kueue.cluster_queue("cq", {"tas": {"cpu": 100, GPU: 64}})
        objects = [off, *self.BASE[1:], self.TOPOLOGY, self.tas(), queue]
        assert inject(self.job(), Snapshot(objects))[1] == {}


def test_every_kind_of_job_keeps_the_promises():
    """`hold` checks them."""
    names = ({"name": "train"}, {"name": "", "generateName": "t-"})
    for metadata, as_worker, count, keys in itertools.product(names, (True, False), (0, 1, 2), (None, [RACK])):
        job = with_workers(count, metadata=metadata, runLauncherAsWorker=as_worker)
        for view in (NODES, NothingKnown()):
            hold(job, only(ID, keys=keys), view=view)


@pytest.mark.parametrize("name", ["bert-", "b" * 70])
def test_a_name_that_is_no_label_is_left_to_the_rule(name):
    """In a selector it would be reported as a second fault, in a field that the user did not write."""
    job = mpijob()
    job["metadata"]["name"] = name
    assert inject(job)[0] == {}


HOST = "kubernetes.io/hostname"
EIGHT = [node(f"gpu-{index}", {HOST: f"gpu-{index}", RACK: "r1"}, **{GPU: "8"}) for index in range(4)]
FOUR = Snapshot(EIGHT)


def of_gpus(count, workers=4, *, together=False, **spec):
    """A job whose workers have this number of GPUs each."""
    limits = {"resources": {"limits": {GPU: count, "cpu": "8"}}}
    template = {"spec": {"containers": [{"name": "mpi", "image": "mpi:1", **limits}], **spec}}
    job = mpijob(worker=template, **({"launcher": template, "runLauncherAsWorker": True} if together else {}))
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = workers
    return job


PORT = {"containers": [{"name": "mpi", "image": "mpi:1", "resources": {"limits": {"cpu": "1"}},
                        "ports": [{"containerPort": 22, "hostPort": 2222}]}]}  # fmt: skip
APART = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": HOST, "labelSelector": {}}]}


@pytest.mark.parametrize(
    ("job", "settings", "keys"),
    [
        (of_gpus(1), {}, [HOST, RACK]),
        (of_gpus(2), {}, [HOST, RACK]),
        (of_gpus(2), {"keys": [RACK]}, [HOST, RACK]),
        (of_gpus(2), {"keys": [RACK, HOST]}, [HOST, RACK]),
        (of_gpus(2), {"keys": []}, []),
        (of_gpus(3), {}, [RACK]),
        (of_gpus(8), {}, [RACK]),
        (of_gpus(1, workers=8), {}, [HOST, RACK]),
        (of_gpus(1, workers=9), {}, [RACK]),
        (of_gpus(1, workers=7, together=True), {}, [HOST, RACK]),
        (of_gpus(1, workers=8, together=True), {}, [RACK]),
        (of_gpus(1, hostNetwork=True), {}, [RACK]),
        (of_gpus(1, affinity={"podAntiAffinity": APART}), {}, [RACK]),
        (of_gpus(1, nodeSelector={"pool": "none"}), {}, [RACK]),
        (of_gpus(1, **PORT), {}, [RACK]),
        (mpijob(), {}, [RACK]),
    ],
)
def test_workers_that_fit_on_one_node_share_it(job, settings, keys):
    terms, _, _ = inject(job, FOUR, **settings)
    found = [one["podAffinityTerm"]["topologyKey"] for one in terms.get("Worker", ())]
    assert found == keys
