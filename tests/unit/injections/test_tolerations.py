import pytest

from tests.support.injecting import PATHS, Example, inject, mpijob, mutate, only, operations, operations_of, pod_spec
from tests.support.jobs import request
from webhook.admission import pipelines
from webhook.cluster.view import NothingKnown

ID = "tolerations"
LAUNCHER, WORKER = (f"{PATHS[role]}/spec/tolerations" for role in ("Launcher", "Worker"))
GPU = {"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}
TEAM = {"key": "team", "operator": "Equal", "value": "ml", "effect": "NoExecute"}
EXAMPLE = Example({"tolerations": [GPU, {**TEAM, "tolerationSeconds": 60}]})


def worker_only(own):
    return mpijob(worker={"spec": pod_spec(tolerations=own)}, launcher={"spec": None})


def test_nothing_is_injected_without_the_setting_tolerations():
    assert inject(ID, mpijob()) == ({}, [])


def test_both_templates_get_every_toleration():
    assert operations(ID, mpijob(), tolerations=[GPU, TEAM]) == [
        (LAUNCHER, [GPU]),
        (f"{LAUNCHER}/-", TEAM),
        (WORKER, [GPU]),
        (f"{WORKER}/-", TEAM),
    ]


@pytest.mark.parametrize(
    ("toleration", "note"),
    [
        (GPU, "nvidia.com/gpu:NoSchedule"),
        (TEAM, "team=ml:NoExecute"),
        ({"key": "a"}, "a="),  # `operator` is Equal by default
        ({"operator": "Exists"}, "every taint"),
        ({"operator": "Exists", "effect": "NoExecute"}, "every taint:NoExecute"),
        ({**TEAM, "tolerationSeconds": 0}, "team=ml:NoExecute"),
    ],
)
def test_toleration_is_injected_as_written(toleration, note):
    added, notes = inject(ID, worker_only(None), tolerations=[toleration])
    assert added == {WORKER: [{"operator": "Equal", **toleration}]}
    assert notes == [f"added tolerations for {note}"]


@pytest.mark.parametrize(
    ("own", "covered"),
    [
        (TEAM, True),
        ({"key": "team", "operator": "", "value": "ml", "effect": ""}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"operator": "Exists"}, True),
        ({**TEAM, "tolerationSeconds": 60}, True),  # the user chose tolerationSeconds
        ({**TEAM, "effect": "NoSchedule"}, False),
        ({**TEAM, "value": "other"}, False),
        ({**TEAM, "value": None}, False),
        ({**TEAM, "key": "other"}, False),
        ({**TEAM, "operator": "Gt"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_toleration_that_the_user_has_is_not_added(own, covered):
    assert operations(ID, worker_only([own]), tolerations=[TEAM]) == ([] if covered else [(f"{WORKER}/-", TEAM)])


def test_toleration_of_every_effect_is_not_covered_by_a_toleration_of_one_effect():
    every_effect = {"key": "a", "operator": "Exists"}
    assert operations(ID, worker_only([every_effect]), tolerations=[every_effect]) == []
    one_effect = {**every_effect, "effect": "NoSchedule"}
    assert operations(ID, worker_only([one_effect]), tolerations=[every_effect]) == [(f"{WORKER}/-", every_effect)]


def test_toleration_listed_twice_in_the_policy_is_added_once():
    assert operations(ID, worker_only([]), tolerations=[GPU, GPU]) == [(f"{WORKER}/-", GPU)]


class TestUpdate:
    """An update restores only injected tolerations. Kueue itself adds and removes the tolerations of flavors."""

    def update(self, new, old):
        sent = request(new, old=old, operation="UPDATE")
        decision = pipelines.mutate(sent, policy=only(ID, tolerations=[GPU, TEAM]), view=NothingKnown())
        return operations_of(decision)

    def test_toleration_from_a_flavor_is_not_restored(self):
        flavor = {"key": "spot", "operator": "Exists"}
        assert self.update(worker_only([GPU]), worker_only([GPU, flavor])) == []

    def test_injected_toleration_is_restored_next_to_a_new_one_of_the_user(self):
        created = mutate(worker_only(None), only(ID, tolerations=[GPU])).document
        assert self.update(worker_only([{"key": "mine", "operator": "Exists"}]), created) == [(f"{WORKER}/-", GPU)]
        assert self.update(worker_only([{"operator": "Exists"}]), created) == [], "the user's toleration covers it"

    def test_toleration_that_user_and_policy_both_have_is_restored(self):
        created = mutate(worker_only([GPU]), only(ID, tolerations=[GPU, TEAM])).document
        assert self.update(worker_only(None), created) == [(WORKER, [GPU]), (f"{WORKER}/-", TEAM)]
