"""The copies of the last good documents, one for each version."""

import json

import pytest

from webhook.policy.store import remembered_texts, with_remembered


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
    ids=["none", "of others", "own", "newest", "own is empty", "own is damaged"],
)
def test_a_version_starts_from_its_own_copy_or_the_newest(data: dict[str, str], expected: dict[str, str]) -> None:
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
def test_writing_keeps_the_newest_other_copy(data: dict[str, str], kept: dict[str, str]) -> None:
    assert with_remembered(data, {"a": "own"}, "2.0") == kept | copies(**{"2.0": "own"})
