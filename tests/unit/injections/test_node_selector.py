import pytest

from tests.support.injecting import PATHS, Example, inject, mpijob, pod_spec

ID = "node-selector"
LAUNCHER, WORKER = (f"{PATHS[role]}/spec/nodeSelector" for role in ("Launcher", "Worker"))
LABELS = {"pool": "training", "topology.kubernetes.io/zone": "a"}
ADDED = "added nodeSelector pool=training, topology.kubernetes.io/zone=a"
EXAMPLE = Example({"labels": LABELS})


def affinity(*values, key="pool", operator="In"):
    term = {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"affinity": {"nodeAffinity": required}}


def worker_only(**spec):
    return mpijob(worker={"spec": pod_spec(**spec)}, launcher={"spec": None})


def test_nothing_is_injected_if_the_policy_has_no_labels():
    assert inject(ID, mpijob()) == ({}, [])


@pytest.mark.parametrize("own", [None, {}, {"disk": "ssd"}])
def test_missing_labels_are_added(own):
    first = {WORKER: {"pool": "training"}} if own is None else {f"{WORKER}/pool": "training"}
    added = {**first, f"{WORKER}/topology.kubernetes.io~1zone": "a"}
    assert inject(ID, worker_only(nodeSelector=own), labels=LABELS) == (added, [ADDED])


def test_both_templates_get_the_labels():
    added, notes = inject(ID, mpijob(), labels={"pool": "training"})
    assert added == {LAUNCHER: {"pool": "training"}, WORKER: {"pool": "training"}}
    assert notes == ["added nodeSelector pool=training"]


STAYS = "the job's own choice of nodes stays, the policy has pool=training"


@pytest.mark.parametrize(
    ("own", "notes"),
    [
        ({"nodeSelector": {"pool": "mine"}}, [STAYS]),
        ({"nodeSelector": {"pool": "training"}}, []),
        (affinity("mine"), [STAYS]),
        (affinity("training", "mine"), [STAYS]),
        (affinity("training", operator="NotIn"), [STAYS]),
        (affinity(operator="Exists"), [STAYS]),
        (affinity("training"), []),
        ({**affinity("mine"), "nodeSelector": {"pool": "training"}}, []),
    ],
)
def test_choice_of_nodes_by_the_user_stays(own, notes):
    assert inject(ID, worker_only(**own), labels={"pool": "training"}) == ({}, notes)


def test_label_is_added_if_the_user_chose_a_value_only_for_another_label():
    added, notes = inject(ID, worker_only(nodeSelector={"pool": "mine"}), labels=LABELS)
    assert added == {f"{WORKER}/topology.kubernetes.io~1zone": "a"}
    assert notes == ["added nodeSelector topology.kubernetes.io/zone=a", STAYS]


def test_preferred_affinity_of_the_user_does_not_prevent_the_label():
    term = {"matchExpressions": [{"key": "pool", "operator": "In", "values": ["mine"]}]}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "preference": term}]}
    job = worker_only(affinity={"nodeAffinity": preferred})
    assert inject(ID, job, labels={"pool": "training"})[0] == {WORKER: {"pool": "training"}}
