"""The rule `api-access` reports pods with an API token. The injection `api-access` usually prevents the token."""

from typing import Any

import pytest

from tests.support.any_job import Json
from tests.support.jobs import changed, request
from tests.support.policies import HEADER
from tests.support.rule_checks import decide, fits_a_warning, violations
from tests.support.service_accounts import service_account
from webhook.admission.pipelines import load_policy, mutate
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.rules import Violation

PATHS = {role: f"spec.mpiReplicaSpecs[{role}].template.spec" for role in ("Launcher", "Worker")}
WORKER = "Worker.template.spec"
PROJECTED = {
    f"{WORKER}.volumes": [
        {"name": "scratch", "projected": {"sources": [{"configMap": {"name": "c"}}]}},
        {"name": "token", "projected": {"sources": [{"configMap": {"name": "c"}}, {"serviceAccountToken": {}}]}},
    ]
}
TOKEN = f"{PATHS['Worker']}.volumes[1].projected.sources[1].serviceAccountToken"
LAUNCHER_OFF = {"Launcher.template.spec.automountServiceAccountToken": False}


def test_pods_without_settings_get_a_token() -> None:
    result = violations("api-access")
    fix = "Set automountServiceAccountToken: false."
    assert result == [Violation(path, "gets an API token", fix=fix) for path in PATHS.values()]
    assert all(fits_a_warning("api-access", each) for each in result)


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({f"{WORKER}.automountServiceAccountToken": True}, [PATHS["Worker"]]),
        ({f"{WORKER}.automountServiceAccountToken": None}, [PATHS["Worker"]]),
        ({f"{WORKER}.serviceAccountName": ""}, [PATHS["Worker"]]),
        ({f"{WORKER}.automountServiceAccountToken": False}, []),
        ({f"{WORKER}.serviceAccountName": "default"}, []),
        ({f"{WORKER}.serviceAccount": "team"}, []),
        ({f"{WORKER}.serviceAccountName": "team", f"{WORKER}.automountServiceAccountToken": True}, []),
        ({"Worker.template": {}}, []),
        ({f"{WORKER}.automountServiceAccountToken": False, **PROJECTED}, [TOKEN]),
        (PROJECTED, [PATHS["Worker"], TOKEN]),
        ({f"{WORKER}.serviceAccountName": "team", **PROJECTED}, []),
    ],
)
def test_token_of_a_pod_without_a_named_account_is_reported(changes: Json, paths: list[str]) -> None:
    assert [each.path for each in violations("api-access", {**LAUNCHER_OFF, **changes})] == paths


def test_account_that_gives_no_token_is_accepted() -> None:
    view = Snapshot([service_account("default", token=False)])
    assert violations("api-access", view=view) == []
    result = violations("api-access", {f"{WORKER}.automountServiceAccountToken": True}, view=view)
    assert [each.path for each in result] == [PATHS["Worker"]]


@pytest.mark.parametrize(
    ("policy", "changes", "warned"),
    [
        ("", {}, 0),
        ("injections: {api-access: {enabled: false}}", {}, 2),
        ("", {"metadata.annotations": {"training.openshift.io/skip": "api-access"}}, 2),
        ("", {f"{WORKER}.automountServiceAccountToken": True}, 1),
        ("injections: {api-access: {enabled: false}}\nrules: {api-access: {action: off}}", {}, 0),
    ],
)
def test_token_is_reported_if_the_injection_did_not_apply(policy: str, changes: dict[str, Any], warned: int) -> None:
    loaded = load_policy(HEADER + policy)
    injected = mutate(request(changed(changes)), policy=loaded, view=NothingKnown()).document
    decision = decide(injected, policy)
    assert decision.allowed
    assert [each.rule for each in decision.warned].count("api-access") == warned
