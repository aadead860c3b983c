import json
from hashlib import sha256
from textwrap import indent

import pytest

from tests.support.policies import HEADER
from webhook.cluster.view import ABSENT
from webhook.policy import store
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.limits import MAX_DOCUMENT_CHARACTERS, MAX_NAMED_DOCUMENTS
from webhook.policy.store import Loaded, PolicySource, remembered_texts, with_remembered

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
        ({"base.yaml": "#" * MAX_DOCUMENT_CHARACTERS + "\n" + GOOD}, ""),
        ({"notes": "kind: MPIJobPolicyX\nabout a kind MPIJobPolicy", "n": 1}, ""),
        ({}, ""),
    ],
)
def test_document_under_another_key_is_recognised(data: dict[str, object], key: str) -> None:
    assert store.misplaced(data) == key


def test_good_documents_are_used_and_remembered() -> None:
    loaded = load({"b": HEADER, "a": GOOD})
    assert [layer.name for layer in loaded.layers] == ["a", "b"]
    assert loaded.states == {"a": "current", "b": "current"}
    assert loaded.errors == {}
    assert loaded.last_good == {"a": GOOD, "b": HEADER}
    assert most_gpus(loaded) == 4


def test_last_good_text_is_used_if_a_document_is_broken() -> None:
    first = load({"a": GOOD})
    second = load({"a": BROKEN}, dict(first.last_good))
    assert second.states == {"a": "last-good"}
    assert "rules.gpus.max" in second.errors["a"]
    assert second.last_good == {"a": GOOD}
    assert most_gpus(second) == 4


@pytest.mark.parametrize("remembered", [{}, {"a": BROKEN}, {"other": GOOD}])
def test_broken_document_without_a_last_good_text_is_unusable(remembered: dict[str, str]) -> None:
    loaded = load({"a": BROKEN, "b": HEADER}, remembered)
    assert loaded.states == {"a": "unusable", "b": "current"}
    kept = {
        name: text for name, text in remembered.items() if name == "a"
    }  # another replica may be able to read the text
    assert loaded.last_good == {"b": HEADER} | kept
    assert most_gpus(loaded) == 16


def test_deleted_document_is_forgotten() -> None:
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
def test_hostile_text_is_rejected(text: str | None, message: str) -> None:
    loaded = load({"a": text}, {"a": GOOD})
    assert message in loaded.errors["a"]
    assert most_gpus(loaded) == 4


def test_identity_has_name_and_version_and_digest() -> None:
    good = sha256(GOOD.encode()).hexdigest()
    loaded = load({"a": GOOD, "b": BROKEN}, {"b": GOOD})
    assert [(layer.version, layer.digest) for layer in loaded.layers] == [("1", good), ("", good)]
    policy = PolicySet(loaded.layers).for_namespace(ABSENT)
    assert policy.identity == f"a@1 sha256:{good[:12]}, b sha256:{good[:12]}"
    assert policy.layers == loaded.layers
    assert PolicySet().for_namespace(ABSENT).identity == ""


def test_identity_of_many_documents_is_shortened() -> None:
    loaded = load({f"p{number}": GOOD for number in range(10)})
    identity = PolicySet(loaded.layers).for_namespace(ABSENT).identity
    assert identity.count("sha256:") == MAX_NAMED_DOCUMENTS
    assert identity.endswith(", and 2 more")


def test_config_map_in_a_file_has_the_digest_of_its_policy() -> None:
    text = f"kind: ConfigMap\nmetadata: {{name: a}}\ndata:\n  policy.yaml: |\n{indent(GOOD, '    ')}\n"
    (layer,) = store.load_file("f", text, policy_model())
    assert layer.digest == sha256(f"{GOOD}\n".encode()).hexdigest()


def copies(**by_version: str) -> dict[str, str]:
    return {f"_{version}": json.dumps({"a": text}, separators=(",", ":")) for version, text in by_version.items()}


FOREIGN = {"a": "of a user", "_b": "of a user"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ({}, {}),
        (FOREIGN, {}),
        (FOREIGN | copies(**{"1.0": "old", "2.0": "own", "10.0": "new"}), {"a": "own"}),
        (FOREIGN | copies(**{"1.0": "old", "10.0": "new", "9.0": "newer"}), {"a": "new"}),
        (FOREIGN | copies(**{"1.0": "old"}) | {"_2.0": "{}"}, {}),
        (copies(**{"1.0": "old"}) | {"_2.0": "no JSON"}, {"a": "old"}),
    ],
    ids=["no copies", "keys of users", "own copy", "newest copy", "own copy is empty", "own copy is damaged"],
)
def test_service_starts_from_the_copy_of_its_version_or_from_the_newest_copy(
    data: dict[str, str], expected: dict[str, str]
) -> None:
    assert remembered_texts(data, "2.0") == expected


@pytest.mark.parametrize(
    ("data", "kept"),
    [
        ({}, {}),
        (FOREIGN, {}),
        (copies(**{"2.0": "before"}), {}),
        (FOREIGN | copies(**{"1.0": "old"}), copies(**{"1.0": "old"})),
        (copies(**{"1.0": "old", "10.0": "new", "9.0": "newer"}), copies(**{"10.0": "new"})),
    ],
)
def test_only_the_newest_copy_of_other_versions_is_kept(data: dict[str, str], kept: dict[str, str]) -> None:
    assert with_remembered(data, {"a": "own"}, "2.0") == kept | copies(**{"2.0": "own"})
