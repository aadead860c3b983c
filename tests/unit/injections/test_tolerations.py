import pytest
from pydantic import ValidationError

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


def test_nothing_happens_without_tolerations():
    assert inject(ID, mpijob()) == ({}, [])


def test_both_templates_get_every_toleration():
    assert operations(ID, mpijob(), tolerations=[GPU, TEAM]) == [
        (LAUNCHER, [GPU]),
        (f"{LAUNCHER}/-", TEAM),
        (WORKER, [GPU]),
        (f"{WORKER}/-", TEAM),
    ]


@pytest.mark.parametrize(
    ("wanted", "item", "note"),
    [
        (GPU, GPU, "nvidia.com/gpu:NoSchedule"),
        (TEAM, TEAM, "team=ml:NoExecute"),
        ({"key": "a"}, {"key": "a", "operator": "Equal"}, "a="),
        ({"operator": "Exists"}, {"operator": "Exists"}, "every taint"),
        (
            {"operator": "Exists", "effect": "NoExecute"},
            {"operator": "Exists", "effect": "NoExecute"},
            "every taint:NoExecute",
        ),
        ({**TEAM, "tolerationSeconds": 0}, {**TEAM, "tolerationSeconds": 0}, "team=ml:NoExecute"),
        ({**TEAM, "tolerationSeconds": -5}, {**TEAM, "tolerationSeconds": -5}, "team=ml:NoExecute"),
    ],
)
def test_as_it_stands_in_a_pod(wanted, item, note):
    assert inject(ID, worker_only(None), tolerations=[wanted]) == ({WORKER: [item]}, [f"added tolerations for {note}"])


@pytest.mark.parametrize(
    ("own", "covered"),
    [
        (TEAM, True),
        ({"key": "team", "value": "ml", "effect": "NoExecute"}, True),
        ({"key": "team", "operator": "", "value": "ml", "effect": ""}, True),
        ({"key": "team", "operator": "Exists"}, True),
        ({"key": "team", "operator": "Exists", "value": "", "effect": "NoExecute"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "", "operator": "Exists", "effect": "NoExecute"}, True),
        ({**TEAM, "tolerationSeconds": 60}, True),  # the user's own wish
        ({**TEAM, "effect": "NoSchedule"}, False),
        ({**TEAM, "value": "other"}, False),
        ({**TEAM, "value": None}, False),
        ({**TEAM, "key": "other"}, False),
        ({**TEAM, "operator": "Gt"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"operator": "Exists", "effect": "NoSchedule"}, False),
        ({}, False),
    ],
)
def test_what_a_users_toleration_covers(own, covered):
    assert operations(ID, worker_only([own]), tolerations=[TEAM]) == ([] if covered else [(f"{WORKER}/-", TEAM)])


@pytest.mark.parametrize(
    ("own", "covered"),
    [
        ({"key": "a", "operator": "Exists"}, True),
        ({"key": "a", "operator": "Exists", "effect": "NoSchedule"}, False),  # of one effect, not of all
        ({"key": "a", "value": "x"}, False),
    ],
)
def test_what_covers_a_wide_one(own, covered):
    wanted = {"key": "a", "operator": "Exists"}
    assert operations(ID, worker_only([own]), tolerations=[wanted]) == ([] if covered else [(f"{WORKER}/-", wanted)])


def test_one_that_is_listed_twice_goes_in_once():
    assert operations(ID, worker_only([]), tolerations=[GPU, GPU]) == [(f"{WORKER}/-", GPU)]


def test_a_template_without_a_spec_stays_so():
    assert inject(ID, mpijob(launcher={"spec": None}, worker={"spec": None}), tolerations=[GPU]) == ({}, [])


class TestUpdate:
    """Kueue compares tolerations of a running job: nothing but what was injected comes back."""

    def update(self, new, old):
        sent = request(new, old=old, operation="UPDATE")
        decision = pipelines.mutate(sent, policy=only(ID, tolerations=[GPU, TEAM]), view=NothingKnown())
        return operations_of(decision)

    def test_what_an_apply_drops_is_put_back(self):
        created = mutate(worker_only(None), only(ID, tolerations=[GPU, TEAM])).document
        assert self.update(worker_only(None), created) == [(WORKER, [GPU]), (f"{WORKER}/-", TEAM)]

    def test_what_the_job_never_had_does_not_come(self):
        assert self.update(worker_only(None), worker_only(None)) == []
        assert self.update(worker_only([GPU]), worker_only([GPU])) == []

    def test_what_a_flavor_of_kueue_brought_is_not_ours(self):
        flavor = {"key": "spot", "operator": "Exists"}
        assert self.update(worker_only([GPU]), worker_only([GPU, flavor])) == []

    def test_it_comes_back_beside_what_the_user_adds(self):
        created = mutate(worker_only(None), only(ID, tolerations=[GPU])).document
        assert self.update(worker_only([{"key": "mine", "operator": "Exists"}]), created) == [(f"{WORKER}/-", GPU)]
        assert self.update(worker_only([{"operator": "Exists"}]), created) == [], "it tolerates that too"

    def test_what_the_user_had_too_comes_back_while_the_policy_has_it(self):
        created = mutate(worker_only([GPU]), only(ID, tolerations=[GPU, TEAM])).document
        again = dict(self.update(worker_only(None), created))
        assert again[WORKER] == [GPU]
        assert again[f"{WORKER}/-"] == TEAM


@pytest.mark.parametrize(
    ("toleration", "message"),
    [
        ({}, "without a key the operator must be Exists"),
        ({"value": "x"}, "without a key the operator must be Exists"),
        ({"key": "a b"}, 'the key "a b" contains " "'),
        ({"key": "a", "value": "b c"}, 'the value "b c" contains " "'),
        ({"key": "a", "operator": "Exists", "value": "b"}, "the operator Exists takes no value"),
        ({"key": "a", "operator": "Gt", "value": "1"}, "'Equal' or 'Exists'"),
        ({"key": "a", "effect": "NoRun"}, "'NoSchedule', 'PreferNoSchedule' or 'NoExecute'"),
        ({"key": "a", "tolerationSeconds": 3}, "tolerationSeconds is only for the effect NoExecute"),
        ({"key": "a", "seconds": 3}, "Extra inputs are not permitted"),
    ],
)
def test_what_the_api_server_would_refuse(toleration, message):
    with pytest.raises(ValidationError, match=message):
        only(ID, tolerations=[toleration])
