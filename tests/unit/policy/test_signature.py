"""Policies that have to be signed: what is applied, and what stays in force instead."""

from pathlib import Path

import pytest

from tests.support.policies import HEADER
from tests.support.signing import key_pair, signed
from webhook.installation.policy_keys import PublicKeys, public_keys
from webhook.policy import signature, store
from webhook.policy.in_force import policy_model
from webhook.policy.store import Loaded, PolicySource

OLD, GOOD = HEADER + "rules: {gpus: {max: 2}}", HEADER + "rules: {gpus: {max: 4}}"
BROKEN = HEADER + "mode: loud"


@pytest.fixture
def private(tmp_path: Path) -> Path:
    return key_pair(tmp_path)[0]


@pytest.fixture
def keys(private: Path, tmp_path: Path) -> PublicKeys:
    return public_keys([tmp_path / "policy.pub"])


def load(keys: PublicKeys | None, text: str, written: str, remembered: dict[str, str] | None = None) -> Loaded:
    return store.load([PolicySource("base", "u", "7", text, written)], remembered or {}, policy_model(), keys)


def remembered(private: Path, serial: int, text: str = GOOD) -> dict[str, str]:
    return {"base": text, "_signature.base": signed(private, "base", serial, text)}


def test_what_is_signed_is_applied_and_remembered_with_its_signature(private: Path, keys: PublicKeys) -> None:
    written = signed(private, "base", 5, GOOD)
    loaded = load(keys, GOOD, written)
    assert (loaded.states, loaded.unsigned, loaded.errors) == ({"base": "current"}, (), {})
    assert loaded.last_good == {"base": GOOD, "_signature.base": written}
    assert [(layer.version, layer.serial) for layer in loaded.layers] == [("7", 5)]
    again = load(keys, GOOD, written, dict(loaded.last_good))
    assert again.states == {"base": "current"}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda private: "", "is not signed: it has no annotation training.openshift.io/policy-signature"),
        (
            lambda private: "ed25519 1 abc",
            "annotation training.openshift.io/policy-signature is not `ed25519 SERIAL BASE64`",
        ),
        (lambda private: signed(private, "base", 6, OLD), "was changed after it was signed"),
        (lambda private: signed(private, "other", 6, GOOD), "was changed after it was signed"),
        (lambda private: signed(private, "base", 6, GOOD).replace(" 6 ", " 7 "), "was changed after it was signed"),
        (
            lambda private: signed(key_pair(private.parent, "thief")[0], "base", 6, GOOD),
            "is not signed by a key that the service trusts",
        ),
        (
            lambda private: signed(private, "base", 4, GOOD),
            "is an older version put back: its serial is 4, and 5 was in force; if that is what you want, sign it",
        ),
    ],
)
def test_the_last_good_one_stays(private: Path, keys: PublicKeys, change: object, fault: str) -> None:
    before = remembered(private, 5, OLD)
    loaded = load(keys, GOOD, change(private), before)  # type: ignore[operator]
    assert fault in loaded.errors["base"]
    assert (loaded.states, loaded.unsigned) == ({"base": "last-good"}, ("base",))
    assert [layer.serial for layer in loaded.layers] == [5]
    assert loaded.last_good == before


def test_without_a_last_good_one_nothing_of_it_is_in_force(keys: PublicKeys) -> None:
    loaded = load(keys, GOOD, "")
    assert (loaded.layers, loaded.states, loaded.unsigned) == ((), {"base": "unusable"}, ("base",))


def test_what_is_remembered_has_to_be_signed_too(private: Path, keys: PublicKeys) -> None:
    """Whoever can change a policy can change what the service remembers."""
    forged = {"base": OLD, "_signature.base": signed(private, "base", 5, GOOD)}
    assert load(keys, GOOD, "", forged).states == {"base": "unusable"}
    assert load(keys, GOOD, "", {"base": OLD}).states == {"base": "unusable"}


def test_a_broken_policy_is_broken_signed_or_not(private: Path, keys: PublicKeys) -> None:
    loaded = load(keys, BROKEN, signed(private, "base", 6, BROKEN), remembered(private, 5))
    assert (loaded.states, loaded.unsigned) == ({"base": "last-good"}, ())
    assert "mode" in loaded.errors["base"]


def test_the_serial_of_a_policy_that_is_gone_is_not_forgotten(private: Path, keys: PublicKeys) -> None:
    """It could be deleted, and an older version made in its place."""
    gone = store.load([], remembered(private, 5), policy_model(), keys)
    assert list(gone.last_good) == ["_signature.base"]
    back = load(keys, OLD, signed(private, "base", 4, OLD), dict(gone.last_good))
    assert (back.states, back.unsigned) == ({"base": "unusable"}, ("base",))


def test_without_keys_nothing_is_looked_at(private: Path) -> None:
    loaded = load(None, GOOD, "nonsense", {"_signature.base": "x"})
    assert (loaded.states, loaded.last_good) == ({"base": "current"}, {"base": GOOD, "_signature.base": "x"})


def test_one_of_several_keys_is_enough(private: Path, tmp_path: Path) -> None:
    _, other = key_pair(tmp_path, "next")
    both = public_keys([other, tmp_path / "policy.pub"])
    assert load(both, GOOD, signed(private, "base", 1, GOOD)).states == {"base": "current"}


@pytest.mark.parametrize("text", ["", "x", "ed25519 -1 " + "A" * 86 + "==", "ed25519 1 " + "A" * 88, "ed25519 1 \n"])
def test_what_is_no_signature(text: str) -> None:
    assert signature.parse(text) is None
