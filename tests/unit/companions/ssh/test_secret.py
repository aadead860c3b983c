from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import strategies
from tests.support.jobs import REMOVE
from tests.support.secret_reviews import OPERATORS, keys_of, patched, request, secret
from webhook.admission.decision import Decision
from webhook.companions.ssh import pair as ssh_pair
from webhook.companions.ssh.pair import INSTANT
from webhook.companions.ssh.secret import Wanted, what_is_needed

OWNER = "metadata__ownerReferences__0__"
NOT_OURS = "not the SSH keys of an MPIJob"


def wanted(new, keys="ed25519", **fields) -> Wanted:
    found = what_is_needed(request(new, **fields), keys)
    assert isinstance(found, Wanted)
    return found


def skipped(new, keys="ed25519", **fields) -> str:
    found = what_is_needed(request(new, **fields), keys)
    assert isinstance(found, Decision)
    assert (found.patch, found.denied, found.warnings) == ([], [], [])
    return found.skipped


def filled(new, keys="ed25519", **fields):
    need = wanted(new, keys, **fields)
    return patched(new, need.filled(ssh_pair.generate(need.algorithm)).patch)


# What gets a pair


@pytest.mark.parametrize("keys", sorted(INSTANT))
def test_the_operators_secret_gets_a_pair(keys):
    need = wanted(OPERATORS, keys)
    assert need == Wanted("train-ssh", "mpijob/team-a/train", keys, is_update=False)
    pair = ssh_pair.generate(need.algorithm)
    decision = need.filled(pair)
    stored = patched(OPERATORS, decision.patch)
    assert keys_of(stored) == (pair.private, pair.public + b" mpijob/team-a/train\n")
    assert {**stored, "data": None} == {**OPERATORS, "data": None}
    assert (decision.allowed, decision.warnings) == (True, [])
    answer = decision.response("u")
    assert answer.audit_annotations == {"injected": "ssh-keys", "ssh-key-fingerprint": pair.fingerprint}
    assert answer.patch_type == "JSONPatch"


def test_rsa_is_asked_for_by_default():
    assert wanted(OPERATORS, "rsa-4096").algorithm == "rsa-4096"


@pytest.mark.parametrize(
    ("keys", "algorithm"), [("rsa-4096", "ecdsa-p521"), *((name, name) for name in sorted(INSTANT))]
)
def test_a_dry_run_takes_no_time(keys, algorithm):
    assert wanted(OPERATORS, keys, dryRun=True).algorithm == algorithm


@pytest.mark.parametrize(
    "new",
    [
        secret(data=REMOVE),
        secret(data={}),
        secret(data={"ssh-privatekey": "", "other": "YQ=="}),
        secret(data={"ssh-privatekey": "no base64!"}),
        secret(immutable=True),
        secret(metadata__labels=REMOVE),
        secret(**{OWNER + "apiVersion": "kubeflow.org/v3"}),
        secret(
            metadata__ownerReferences=[{"kind": "ConfigMap", "name": "x"}, *OPERATORS["metadata"]["ownerReferences"]]
        ),
    ],
)
def test_whatever_is_in_it_is_replaced(new):
    keys_of(filled(new))


CHANGED = secret(data={"ssh-privatekey": "bWluZQ==", "ssh-publickey": "bWluZQ=="})


def test_an_update_of_the_data_gets_a_new_pair_and_says_so():
    need = wanted(CHANGED, old=filled(OPERATORS))
    decision = need.filled(ssh_pair.generate(need.algorithm))
    assert decision.warnings == ["ssh-keys: a new ed25519 key pair replaced the one written"]
    keys_of(patched(CHANGED, decision.patch))


# What stays as it is


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
def test_other_secrets_are_left_alone(changes):
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
def test_what_is_no_secret_is_left_to_the_api_server(new):
    assert skipped(new) == "not a Secret that can be read"


def test_other_kinds_are_left_alone():
    assert skipped(OPERATORS, kind={"group": "", "version": "v1", "kind": "ConfigMap"}) == NOT_OURS
    assert skipped(OPERATORS, kind={"group": "example.com", "version": "v1", "kind": "Secret"}) == NOT_OURS


@pytest.mark.parametrize("fields", [{"operation": "DELETE"}, {"operation": "CONNECT"}, {"subResource": "status"}])
def test_other_operations_are_left_alone(fields):
    assert skipped(OPERATORS, **fields) == "not a CREATE or UPDATE of a Secret"


def test_the_policy_may_leave_it_to_the_operator():
    assert skipped(OPERATORS, "operator") == "the policy leaves SSH keys to the operator"


def test_an_update_of_anything_else_keeps_the_keys():
    assert skipped(secret(metadata__labels={"app": "b"}), old=OPERATORS) == "the keys stay as they are"


# The same request again


@pytest.mark.parametrize("keys", sorted(INSTANT))
def test_a_pair_of_ours_stays(keys):
    stored = filled(OPERATORS, keys)
    found = what_is_needed(request(stored), keys)
    assert isinstance(found, Decision)
    assert (found.skipped, found.patch) == ("it has a key pair of ours", [])
    fingerprint = ssh_pair.fingerprint(keys_of(stored)[1])
    assert found.response("u").audit_annotations["ssh-key-fingerprint"] == fingerprint
    assert skipped(stored, keys, old=OPERATORS) == "it has a key pair of ours"


def test_an_rsa_pair_of_ours_stays():
    need = wanted(OPERATORS, "rsa-4096")
    assert skipped(patched(OPERATORS, need.filled(ssh_pair.generate("rsa-4096")).patch), "rsa-4096")


def encoded(private: bytes, public: bytes, **more: str) -> dict[str, str]:
    return {"ssh-privatekey": b64encode(private).decode(), "ssh-publickey": b64encode(public).decode(), **more}


PAIR, OTHER = ssh_pair.generate("ed25519"), ssh_pair.generate("ed25519")
LINE = PAIR.authorized_key("mpijob/team-a/train")


@pytest.mark.parametrize(
    "data",
    [
        encoded(PAIR.private, PAIR.authorized_key("mpijob/team-a/another")),
        encoded(PAIR.private, PAIR.authorized_key("mpijob/team-b/train")),
        encoded(PAIR.private, PAIR.public + b"\n"),
        encoded(PAIR.private, LINE + LINE),
        encoded(PAIR.private, OTHER.public + b"\n" + LINE),
        encoded(PAIR.private, b'command="x" ' + LINE),
        encoded(PAIR.private, b"x mpijob/team-a/train\n"),
        encoded(PAIR.private, b"ssh-ed25519 !! mpijob/team-a/train\n"),
        encoded(OTHER.private, LINE),
        encoded(b"", LINE),
        encoded(PAIR.private, LINE, other="YQ=="),
        {"ssh-publickey": b64encode(LINE).decode(), "other": "YQ=="},
        {**encoded(PAIR.private, LINE), "ssh-privatekey": "%%%"},
        {**encoded(PAIR.private, LINE), "ssh-privatekey": "é"},
    ],
)
def test_what_only_looks_like_ours_is_replaced(data):
    wanted(secret(data=data))


def test_it_would_have_stayed():
    assert skipped(secret(data=encoded(PAIR.private, LINE))) == "it has a key pair of ours"


def test_another_algorithm_is_replaced():
    wanted(secret(data=encoded(PAIR.private, LINE)), "ecdsa-p256")


# Whatever comes


@strategies.PROPERTY
@given(strategies.json_values(), strategies.json_values())
def test_any_json_is_allowed(new, old):
    found = what_is_needed(request(new, operation="UPDATE", old=old), "ed25519")
    assert isinstance(found, Decision)
    assert found.allowed


@strategies.PROPERTY
@given(st.dictionaries(st.sampled_from(["ssh-privatekey", "ssh-publickey", "x"]), st.text()))
def test_any_data_ends_as_one_pair_of_ours(data):
    stored = filled(secret(data=data))
    private, public = keys_of(stored)
    assert ssh_pair.belongs(private, public, "ed25519")
    assert skipped(stored) == "it has a key pair of ours"
