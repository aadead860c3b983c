import pytest

from tests.support.injecting import PATHS, Example, inject, mpijob, operations, pod_spec

ID = "image-pull-secrets"
LAUNCHER, WORKER = (f"{PATHS[role]}/spec/imagePullSecrets" for role in ("Launcher", "Worker"))
EXAMPLE = Example({"secrets": ["registry", "mirror"]})


def test_nothing_is_injected_without_the_setting_secrets():
    assert inject(ID, mpijob()) == ({}, [])


def test_both_templates_get_every_secret():
    assert operations(ID, mpijob(), secrets=["a", "b"]) == [
        (LAUNCHER, [{"name": "a"}]),
        (f"{LAUNCHER}/-", {"name": "b"}),
        (WORKER, [{"name": "a"}]),
        (f"{WORKER}/-", {"name": "b"}),
    ]
    assert inject(ID, mpijob(), secrets=["a", "b"])[1] == ["added imagePullSecrets a, b"]


@pytest.mark.parametrize(
    ("own", "added"),
    [
        ([{"name": "a"}], {f"{WORKER}/-": {"name": "b"}}),
        ([{"name": "b"}, {"name": "mine"}, {"name": "a"}], {}),
    ],
)
def test_secret_of_the_user_is_not_added_again(own, added):
    job = mpijob(worker={"spec": pod_spec(imagePullSecrets=own)}, launcher={"spec": None})
    assert inject(ID, job, secrets=["a", "b"]) == (added, ["added imagePullSecrets b"] if added else [])


@pytest.mark.parametrize("own", [None, []])
def test_null_and_empty_lists_are_extended(own):
    job = mpijob(worker={"spec": pod_spec(imagePullSecrets=own)}, launcher={"spec": None})
    path = WORKER if own is None else f"{WORKER}/-"
    assert operations(ID, job, secrets=["a"]) == [(path, [{"name": "a"}] if own is None else {"name": "a"})]


def test_secret_listed_twice_in_the_policy_is_added_once():
    assert operations(ID, mpijob(launcher={"spec": None}), secrets=["a", "a"]) == [(WORKER, [{"name": "a"}])]
