import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import strategies
from tests.support.jobs import REMOVE
from tests.support.secret_reviews import OPERATORS, is_pair, keys_of, patched, request, secret
from webhook.admission.decision import Decision
from webhook.controllers.ssh import pool
from webhook.controllers.ssh.pool import INSTANT
from webhook.controllers.ssh.secret import NeededKey, needed_key

OWNER = "metadata__ownerReferences__0__"
NOT_OURS = "not the SSH keys of an MPIJob"


def wanted(new, keys="ed25519", **fields) -> NeededKey:
    need = needed_key(request(new, **fields), keys)
    assert isinstance(need, NeededKey)
    return need


def skipped(new, keys="ed25519", **fields) -> str:
    decision = needed_key(request(new, **fields), keys)
    assert isinstance(decision, Decision)
    assert (decision.patch, decision.denied, decision.warnings) == ([], [], [])
    return decision.skipped


def filled(new, keys="ed25519", **fields):
    need = wanted(new, keys, **fields)
    return patched(new, need.filled(pool.generate(need.algorithm)).patch)


@pytest.mark.parametrize("keys", sorted(INSTANT))
def test_secret_of_the_operator_gets_a_key_pair(keys):
    need = wanted(OPERATORS, keys)
    assert need == NeededKey("train-ssh", "mpijob/team-a/train", keys)
    pair = pool.generate(need.algorithm)
    decision = need.filled(pair)
    stored = patched(OPERATORS, decision.patch)
    assert keys_of(stored) == (pair.private, pair.public + b" mpijob/team-a/train\n")
    assert {**stored, "data": None} == {**OPERATORS, "data": None}
    assert (decision.allowed, decision.warnings) == (True, [])
    answer = decision.response("u")
    assert answer.audit_annotations == {"injected": "ssh-keys", "ssh-key-fingerprint": pair.fingerprint}
    assert answer.patch_type == "JSONPatch"


def test_rsa_is_requested_by_default():
    assert wanted(OPERATORS, "rsa-4096").algorithm == "rsa-4096"


@pytest.mark.parametrize(
    ("keys", "algorithm"), [("rsa-4096", "ecdsa-p521"), *((name, name) for name in sorted(INSTANT))]
)
def test_dry_run_gets_a_pair_of_a_fast_algorithm(keys, algorithm):
    assert wanted(OPERATORS, keys, dryRun=True).algorithm == algorithm


@pytest.mark.parametrize(
    "new",
    [
        secret(data=REMOVE),
        secret(data={}),
        secret(data={"ssh-privatekey": "", "other": "YQ=="}),
        secret(data={"ssh-privatekey": "no base64!"}),
        secret(data=filled(OPERATORS)["data"]),
        secret(immutable=True),
        secret(metadata__labels=REMOVE),
        secret(**{OWNER + "apiVersion": "kubeflow.org/v3"}),
        secret(
            metadata__ownerReferences=[{"kind": "ConfigMap", "name": "x"}, *OPERATORS["metadata"]["ownerReferences"]]
        ),
    ],
)
def test_any_content_of_the_secret_is_replaced(new):
    keys_of(filled(new))


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "Opaque"},
        {"type": REMOVE},
        {"type": "kubernetes.io/dockercfg"},
        {"metadata__ownerReferences": REMOVE},
        {"metadata__ownerReferences": []},
        {"metadata__ownerReferences": None},
        {"metadata__name": "other-ssh"},
        {"metadata__name": "train"},
        {"metadata__name": REMOVE},
        {OWNER + "kind": "Job"},
        {OWNER + "controller": False},
        {OWNER + "controller": REMOVE},
        {OWNER + "controller": None},
        {OWNER + "apiVersion": "example.com/v1"},
        {OWNER + "apiVersion": "kubeflow.org.example.com/v1"},
        {OWNER + "apiVersion": "v1"},
        {OWNER + "apiVersion": REMOVE},
        {OWNER + "name": "another"},
        {OWNER + "name": REMOVE},
        {"metadata__name": "a\nb-ssh", OWNER + "name": "a\nb"},
        {"metadata__name": "-ssh", OWNER + "name": ""},
    ],
)
def test_secret_that_is_not_for_the_ssh_keys_of_an_mpijob_is_not_changed(changes):
    assert skipped(secret(**changes)) == NOT_OURS


@pytest.mark.parametrize(
    "new",
    [
        None,
        [],
        "text",
        1,
        secret(data=[]),
        secret(data={"ssh-privatekey": 1}),
        secret(type=5),
        secret(metadata=[]),
        secret(metadata__ownerReferences={}),
        secret(**{OWNER + "controller": "yes"}),
    ],
)
def test_invalid_secret_is_not_changed(new):
    assert skipped(new) == "not a Secret that can be read"


def test_object_that_is_not_a_secret_is_not_changed():
    assert skipped(OPERATORS, kind={"group": "", "version": "v1", "kind": "ConfigMap"}) == NOT_OURS
    assert skipped(OPERATORS, kind={"group": "example.com", "version": "v1", "kind": "Secret"}) == NOT_OURS


@pytest.mark.parametrize(
    "fields", [{"operation": "DELETE"}, {"operation": "CONNECT"}, {"subResource": "status"}, {"old": OPERATORS}]
)
def test_secret_in_a_request_other_than_a_create_is_not_changed(fields):
    assert skipped(OPERATORS, **fields) == "not a CREATE of a Secret"


def test_secret_is_not_changed_if_the_policy_leaves_ssh_keys_to_the_operator():
    assert skipped(OPERATORS, "operator") == "the policy leaves SSH keys to the operator"


@strategies.PROPERTY
@given(strategies.json_values())
def test_any_json_is_allowed(new):
    decision = needed_key(request(new), "ed25519")
    assert isinstance(decision, Decision)
    assert decision.allowed


@strategies.PROPERTY
@given(st.dictionaries(st.sampled_from(["ssh-privatekey", "ssh-publickey", "x"]), st.text()))
def test_any_data_is_replaced_by_one_pair(data):
    assert is_pair(*keys_of(filled(secret(data=data))), "ed25519")
