import pytest

from tests.support.policies import HEADER
from webhook.cluster.view import ABSENT
from webhook.policy import store
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.store import Loaded, PolicySource

GOOD = HEADER + "rules: {gpus: {max: 4}}"
BROKEN = HEADER + "rules: {gpus: {max: four}}"


def load(texts: dict[str, str | None], remembered: dict[str, str] | None = None) -> Loaded:
    sources = [PolicySource(name, f"uid-{name}", "1", text) for name, text in texts.items()]
    return store.load(sources, remembered or {}, policy_model())


def most_gpus(loaded: Loaded) -> int:
    document = PolicySet(loaded.layers).for_namespace(ABSENT).document
    most: int = document.settings_of_rule("gpus").model_dump()["max"]
    return most


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ({"policy.yaml": GOOD, "b.yaml": GOOD}, ""),
        ({"a": "x", "base.yaml": GOOD}, "base.yaml"),
        ({"base.json": '{"apiVersion": "x", "kind": "MPIJobPolicy"}'}, "base.json"),
        ({"base.json": '{\n  "kind":"MPIJobPolicy"\n}'}, "base.json"),
        ({"notes": "kind: MPIJobPolicyX\nabout a kind MPIJobPolicy", "n": 1}, ""),
        ({}, ""),
    ],
)
def test_a_document_under_another_key_is_found(data: dict[str, object], key: str) -> None:
    assert store.misplaced(data) == key


def test_good_documents_are_in_force_and_remembered() -> None:
    loaded = load({"b": HEADER, "a": GOOD})
    assert [layer.name for layer in loaded.layers] == ["a", "b"]
    assert loaded.states == {"a": "current", "b": "current"}
    assert loaded.errors == {}
    assert loaded.last_good == {"a": GOOD, "b": HEADER}
    assert most_gpus(loaded) == 4


def test_a_broken_one_leaves_its_last_good_one_in_force() -> None:
    first = load({"a": GOOD})
    second = load({"a": BROKEN}, dict(first.last_good))
    assert second.states == {"a": "last-good"}
    assert "rules.gpus.max" in second.errors["a"]
    assert second.last_good == {"a": GOOD}
    assert most_gpus(second) == 4


@pytest.mark.parametrize("remembered", [{}, {"a": BROKEN}, {"other": GOOD}])
def test_without_a_last_good_one_the_rest_holds(remembered: dict[str, str]) -> None:
    loaded = load({"a": BROKEN, "b": HEADER}, remembered)
    assert loaded.states == {"a": "unusable", "b": "current"}
    assert loaded.last_good == {"b": HEADER}
    assert most_gpus(loaded) == 16


def test_a_deleted_one_is_forgotten() -> None:
    assert load({}, {"a": GOOD}) == Loaded(last_good={})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "the document: is missing: it belongs under the key policy.yaml of data"),
        ("x" * (256 * 1024 + 1), "has 262,145 characters, at most 262,144 are read"),
        ("a: &a [*a]", "the alias *a refers to nothing before it, or to itself"),
        (
            "\n".join(
                ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
                + [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
            ),
            "aliases repeat",
        ),
        ("[" * 100_000, "nested deeper than"),
        (HEADER + "mode: warn\nmode: warn", 'the key "mode" is there twice'),
        ("\x00", "is not text"),
    ],
)
def test_hostile_texts(text: str | None, message: str) -> None:
    loaded = load({"a": text}, {"a": GOOD})
    assert message in loaded.errors["a"]
    assert most_gpus(loaded) == 4
