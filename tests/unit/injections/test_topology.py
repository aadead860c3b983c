import itertools
import json

import pytest

from tests.support import kueue_objects as kueue
from tests.support.injecting import PATHS, Example, hold, mpijob, only, pod_spec
from tests.support.jobs import request
from tests.support.nodes import node
from webhook.admission import pipelines
from webhook.api.untyped import at
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
HOST = "kubernetes.io/hostname"
NODES = Snapshot([node("n1", {RACK: "r1", ZONE: "z1"}), node("n2", {RACK: "r2", "pool": "a"})])
EXAMPLE = Example(view=NODES)


def inject(job, view=NODES, **settings):
    """Affinity terms by role, annotations by role, and the notes."""
    decision = hold(job, only(ID, **settings), view=view)
    assert not decision.skipped
    terms, annotations = {}, {}
    for role, replica in decision.document["spec"]["mpiReplicaSpecs"].items():
        template = replica["template"]
        if preferred := at(template, "spec", "affinity", "podAffinity").get(PREFERRED):
            terms[role] = preferred
        if "metadata" in template:
            annotations[role] = template["metadata"]["annotations"]
    return terms, annotations, [note.removeprefix(f"{ID}: ") for note in decision.notes]


def term(key, weight, **labels):
    selector = {"training.kubeflow.org/operator-name": "mpi-operator", **labels}
    return {"weight": weight, "podAffinityTerm": {"topologyKey": key, "labelSelector": {"matchLabels": selector}}}


def keys_of(terms):
    return [term["podAffinityTerm"]["topologyKey"] for term in terms.get("Worker", ())]


NAMED = {"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/job-name": "train"}
TERMS = [term(RACK, 100, **NAMED), term(ZONE, 25, **NAMED)]


def test_workers_get_an_affinity_for_each_label_of_the_nodes():
    assert inject(mpijob()) == ({"Worker": TERMS}, {}, [f"workers are placed together by {RACK}, {ZONE}"])


@pytest.mark.parametrize("name", [{"name": "copy"}, {"generateName": "train-"}])
def test_affinity_to_the_workers_of_another_job_is_reported(name):
    """The job is a copy of another job. If the user removes the copied affinity, the injection adds a new affinity."""
    copied = hold(mpijob(), only(ID), view=NODES).document
    copied["metadata"] = {**name, "annotations": copied["metadata"]["annotations"]}
    reason = 'podAffinity draws the workers to job "train". Remove it if this job is a copy.'
    assert inject(copied) == ({"Worker": TERMS}, {}, [reason])
    del copied["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"]
    assert inject(copied)[2] == [f"workers are placed together by {RACK}, {ZONE}"]


def test_keys_of_the_policy_keep_their_order():
    terms, _, notes = inject(mpijob(), keys=["pool", RACK, "pool"])
    assert terms == {"Worker": [term("pool", 100, **NAMED), term(RACK, 25, **NAMED)]}
    assert notes == [f"workers are placed together by pool, {RACK}"]


def test_weights_decrease_to_one():
    keys = [f"k{index}" for index in range(6)]
    terms, _, _ = inject(mpijob(), Snapshot([node("n1", dict.fromkeys(keys, "x"))]), keys=keys)
    assert [term["weight"] for term in terms["Worker"]] == [100, 25, 6, 1, 1, 1]


def test_policy_key_that_no_node_has_is_reported():
    terms, _, notes = inject(mpijob(), keys=["switch", ZONE])
    assert terms == {"Worker": [term(ZONE, 100, **NAMED)]}
    assert notes == [
        "no node has the label switch, so it places no workers together",
        f"workers are placed together by {ZONE}",
    ]


def test_default_key_that_no_node_has_is_not_reported():
    assert inject(mpijob(), Snapshot([node("n1", {"pool": "a"})])) == ({}, {}, [])


@pytest.mark.parametrize("view", [NothingKnown(), Snapshot([])])
def test_only_keys_of_the_policy_are_used_if_nodes_are_unknown(view):
    assert inject(mpijob(), view) == ({}, {}, [])
    assert inject(mpijob(), view, keys=[RACK])[0] == {"Worker": TERMS[:1]}


def test_labels_unique_to_each_node_are_used():
    assert inject(mpijob(), keys=["own"], view=Snapshot([node("n1", {"own": "n1"})]))[0]["Worker"][0]["weight"] == 100


class TestGenerateName:
    def job(self):
        return mpijob(metadata={"name": "", "generateName": "train-"})

    @pytest.mark.parametrize("kubelet", ["v1.31.0", "v1.35.4-eks-1", "v2.0.1"])
    def test_affinity_uses_match_label_keys(self, kubelet):
        nodes = [node(name, {RACK: "r"}, kubelet=version) for name, version in (("old", "v1.30.2"), ("n1", kubelet))]
        terms, _, _ = inject(self.job(), Snapshot(nodes))
        expected = term(RACK, 100, **{"training.kubeflow.org/job-role": "worker"})
        expected["podAffinityTerm"]["matchLabelKeys"] = ["training.kubeflow.org/job-name"]
        assert terms == {"Worker": [expected]}

    @pytest.mark.parametrize("kubelet", ["v1.30.9", "v1.9.0", "", "kwok-v0.8.0", None])
    def test_no_affinity_if_the_api_server_may_drop_match_label_keys(self, kubelet):
        """Without matchLabelKeys, the affinity would attract workers of all jobs to each other."""
        view = NothingKnown() if kubelet is None else Snapshot([node("n1", {RACK: "r"}, kubelet=kubelet)])
        terms, _, notes = inject(self.job(), view, keys=[RACK])
        assert terms == {}
        assert notes == [
            "workers are not placed together: a job with generateName needs nodes of Kubernetes 1.31 for this"
        ]

    def test_update_restores_the_affinity(self):
        created = hold(self.job(), only(ID), view=NODES).document
        created["metadata"]["name"] = "train-x7k2p"
        dropped = json.loads(json.dumps(created))
        del dropped["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["affinity"]
        sent = request(dropped, old=created)
        patch = pipelines.mutate(sent, policy=only(ID), view=NODES).patch
        assert [operation["path"] for operation in patch] == [
            f"{PATHS['Worker']}/spec/affinity",
            f"{PATHS['Worker']}/spec/affinity/podAffinity/{PREFERRED}/-",
        ]


def test_launcher_that_is_a_worker_gets_the_affinity():
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
        (mpijob(run_policy={"managedBy": "kueue.x-k8s.io/multikueue"}), False),
        (mpijob(worker={"spec": None}), False),
    ],
)
def test_affinity_needs_several_pods_of_this_operator(job, together):
    decision = hold(job, only(ID), view=NODES)
    assert bool(decision.patch) is together


FAR = {"labelSelector": {}, "topologyKey": HOST}


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
def test_placement_by_the_user_stays(role, own, chosen):
    decision = hold(mpijob(**{role: {"spec": pod_spec(**own)}}), only(ID), view=NODES)
    assert bool(decision.patch) is not chosen
    assert bool(decision.notes) is not chosen


@pytest.mark.parametrize("kind", ["required-topology", "unconstrained-topology", "slice-size", "group-name"])
def test_topology_annotation_of_the_user_stays(kind):
    job = mpijob(worker={"metadata": {"annotations": {f"kueue.x-k8s.io/podset-{kind}": "x"}}, "spec": pod_spec()})
    assert hold(job, only(ID), view=NODES).patch == []


class TestKueue:
    """In a queue with topology-aware scheduling (TAS), an annotation tells Kueue where to place the pods."""

    TOPOLOGY = kueue.topology("racks", BLOCK, RACK, HOST)
    BASE = (
        kueue.config(),
        kueue.namespace("team"),
        kueue.local_queue("q", "cq", namespace="team"),
        node("n1", {RACK: "r"}),
    )

    def view(self, *objects):
        return Snapshot([*self.BASE, self.TOPOLOGY, *objects])

    def job(self, *, gpus=True, launcher=None, **fields):
        requests = {"resources": {"limits": {"cpu": "1", **({GPU: 2} if gpus else {})}}}
        container = {"name": "mpi", "image": "x:1"}
        return mpijob(
            metadata={"labels": {QUEUE: "q"}},
            worker={"spec": {"containers": [container | requests]}},
            launcher={"spec": {"containers": [container | {"resources": {"limits": launcher or {"cpu": "1"}}}]}},
            **fields,
        )

    def tas(self, name="tas", topology="racks"):
        return kueue.flavor(name, topologyName=topology)

    def all_tas(self, *more):
        return self.view(*more, self.tas(), kueue.cluster_queue("cq", {"tas": {"cpu": 100, GPU: 64}}))

    def mixed(self, plain, tas):
        return self.view(self.tas(), kueue.flavor("plain"), kueue.cluster_queue("cq", {"plain": plain, "tas": tas}))

    def two_topologies(self, *levels):
        """A queue with a plain flavor, a small flavor with racks, and a big flavor with these levels."""
        quotas = {"plain": {"cpu": 10, GPU: 0}, "small": {"cpu": 100, GPU: 1}, "big": {"cpu": 100, GPU: 64}}
        cells = (self.tas("big", "cells"), kueue.topology("cells", *levels))
        return self.view(self.tas("small"), *cells, kueue.flavor("plain"), kueue.cluster_queue("cq", quotas))

    def test_workers_get_the_annotation_if_every_flavor_has_a_topology(self):
        notes = [f"Kueue keeps the workers together by {RACK}"]
        assert inject(self.job(), self.all_tas()) == ({}, {"Worker": {LEVEL: RACK}}, notes)

    def test_default_queue_of_kueue_applies(self):
        job = self.job()
        del job["metadata"]["labels"]
        assert inject(job, self.all_tas())[1] == {}, "the job is in no queue"
        default = kueue.local_queue("default", "cq", namespace="team")
        assert inject(job, self.all_tas(default))[:2] == ({}, {"Worker": {LEVEL: RACK}})

    def test_annotations_depend_on_the_flavors_that_fit(self):
        on_tas, tas = {"Worker": {LEVEL: RACK}}, {"cpu": 100, GPU: 64}
        computes = self.job(launcher={"cpu": "1", GPU: 2}, runLauncherAsWorker=True)
        together = {role: {LEVEL: RACK, GROUP: "workers"} for role in ("Launcher", "Worker")}
        only_there = self.mixed({"cpu": 10, GPU: 0}, tas)
        for job, view, annotations in (
            (computes, self.all_tas(), together),
            (self.job(), only_there, on_tas),
            (computes, only_there, together),
            (self.job(), self.mixed({"cpu": 0, GPU: 0}, tas), {"Launcher": {ANYWHERE: "true"}, **on_tas}),
            # The annotation names a level of both topologies, or the narrowest level of `big` if no level is in both.
            (self.job(), self.two_topologies("cell", HOST), {"Worker": {LEVEL: HOST}}),
            (self.job(), self.two_topologies("room", "cell"), {"Worker": {LEVEL: "cell"}}),
        ):
            assert inject(job, view)[:2] == ({}, annotations)

    def test_workers_that_fit_a_plain_flavor_get_the_affinity(self):
        """A plain flavor has no topology, so Kueue would not use it for workers with the annotation."""
        terms, annotations, _ = inject(self.job(), self.mixed({"cpu": 10, GPU: 64}, {"cpu": 100, GPU: 64}))
        assert (keys_of(terms), annotations) == ([RACK], {})

    def test_job_that_fits_no_flavor_gets_no_annotation(self):
        assert inject(self.job(), self.mixed({"cpu": 10, GPU: 0}, {"cpu": 100, GPU: 1}))[1] == {}

    @pytest.mark.parametrize(
        "without", ["ConfigMap", "LocalQueue", "ClusterQueue", "ResourceFlavor", "Topology", "Namespace"]
    )
    def test_affinity_is_injected_if_an_object_of_kueue_is_unknown(self, without):
        queue = kueue.cluster_queue("cq", {"tas": {"cpu": 100, GPU: 64}})
        objects = [item for item in (*self.BASE, self.TOPOLOGY, self.tas(), queue) if item["kind"] != without]
        terms, annotations, _ = inject(self.job(), Snapshot(objects))
        assert ("Worker" in terms, annotations) == (True, {})

    @pytest.mark.parametrize("label", ["gone", None])
    def test_affinity_is_injected_if_the_queue_is_missing_or_unknown(self, label):
        """The affinity does no harm: in a queue with a topology, Kueue chooses the node of each pod."""
        every_job = kueue.config("manageJobsWithoutQueueName: true\n")
        job = self.job()
        job["metadata"]["labels"] = {QUEUE: label} if label else {}
        terms, annotations, _ = inject(job, Snapshot([every_job, *self.BASE[1:], self.TOPOLOGY]))
        assert (keys_of(terms), annotations) == ([RACK], {})

    def test_job_with_claims_gets_the_annotation_only_if_all_flavors_have_a_topology(self):
        """The quota for claims is not predicted."""
        job = self.job()
        job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["resourceClaims"] = [{"name": "gpu"}]
        assert inject(job, self.all_tas())[1] == {"Worker": {LEVEL: RACK}}
        assert inject(job, self.mixed({"cpu": 10, GPU: 0}, {"cpu": 100, GPU: 64}))[1] == {}

    def test_no_annotation_if_topology_aware_scheduling_is_off(self):
        off = kueue.config("featureGates: {TopologyAwareScheduling: false}\n")
        queue = kueue.cluster_queue("cq", {"tas": {"cpu": 100, GPU: 64}})
        objects = [off, *self.BASE[1:], self.TOPOLOGY, self.tas(), queue]
        assert inject(self.job(), Snapshot(objects))[1] == {}


def test_injecting_is_safe_for_every_kind_of_job():
    """The function `hold` checks, for example, that injecting twice adds nothing."""
    names = ({"name": "train"}, {"name": "", "generateName": "t-"})
    for metadata, as_worker, count, keys in itertools.product(names, (True, False), (0, 1, 2), (None, [RACK])):
        job = with_workers(count, metadata=metadata, runLauncherAsWorker=as_worker)
        for view in (NODES, NothingKnown()):
            hold(job, only(ID, keys=keys), view=view)


@pytest.mark.parametrize("name", ["bert-", "b" * 70])
def test_job_with_a_name_that_is_not_a_valid_label_gets_no_affinity(name):
    """With the invalid name in a selector, a fault would be reported in a field that the user did not write."""
    job = mpijob()
    job["metadata"]["name"] = name
    assert inject(job)[0] == {}


GPU_NODES = [node(f"gpu-{index}", {HOST: f"gpu-{index}", RACK: "r1"}, **{GPU: "8"}) for index in range(4)]
FOUR_GPU_NODES = Snapshot(GPU_NODES)


def of_gpus(count, workers=4, *, together=False, **spec):
    """A job whose workers request this number of GPUs each."""
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
def test_workers_that_fit_on_one_node_get_the_host_as_first_key(job, settings, keys):
    terms, _, _ = inject(job, FOUR_GPU_NODES, **settings)
    assert keys_of(terms) == keys
