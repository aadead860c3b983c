import pytest

from tests.support.injecting import PATHS, inject, mpijob, pod_spec

LAUNCHER = {f"{PATHS['Launcher']}/spec/automountServiceAccountToken": False}
WORKER = {f"{PATHS['Worker']}/spec/automountServiceAccountToken": False}
NOTE = "no Kubernetes API token for {}; set serviceAccountName where one is needed"


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"serviceAccountName": ""},
        {"serviceAccountName": None, "serviceAccount": None},
        {"automountServiceAccountToken": None},
    ],
)
def test_pod_without_a_named_account_gets_no_token(fields):
    added, notes = inject("api-access", mpijob(launcher={"spec": pod_spec(**fields)}))
    assert added == {**LAUNCHER, **WORKER}
    assert notes == [NOTE.format("Launcher and Worker")]


@pytest.mark.parametrize(
    "fields",
    [
        {"serviceAccountName": "trainer"},
        {"serviceAccount": "trainer"},
        {"serviceAccountName": "default"},
        {"automountServiceAccountToken": True},
        {"automountServiceAccountToken": False},
        {"serviceAccountName": "trainer", "automountServiceAccountToken": True},
    ],
)
def test_pod_with_a_named_account_or_a_token_setting_stays_unchanged(fields):
    job = mpijob(launcher={"spec": pod_spec(**fields)})
    assert inject("api-access", job) == (WORKER, [NOTE.format("Worker")])
    job = mpijob(launcher={"spec": pod_spec(**fields)}, worker={"spec": pod_spec(**fields)})
    assert inject("api-access", job) == ({}, [])
