"""Texts are the same where they differ in nothing but what does not count, and are read alike by everybody."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webhook.api.same_text import same_text

OBJECT: dict[str, Any] = {
    "kind": "MPIJob",
    "metadata": {
        "annotations": {"uid": "7ac-0", "note": '"uid":"7ac-1"', "managedFields": "[]"},
        "creationTimestamp": "2026-03-02T09:30:00Z",
        "managedFields": [{"manager": "kubectl", "time": "2026-03-02T09:30:00Z"}],
        "name": "train",
        "uid": "7ac-1",
    },
    "spec": {"uid": "7ac-1"},
}


def text(**metadata: Any) -> bytes:
    return json.dumps(OBJECT | {"metadata": OBJECT["metadata"] | metadata}, separators=(",", ":")).encode()


LATER = "2026-03-02T09:30:07Z"


@pytest.mark.parametrize(
    ("change", "always", "anew"),
    [
        ({}, True, True),
        ({"managedFields": [{"manager": "kubectl", "time": LATER}]}, True, True),
        ({"uid": "9bd-2"}, False, True),
        ({"creationTimestamp": LATER}, False, True),
        ({"uid": "9bd-22"}, False, False),
        ({"uid": '9"d-2'}, False, False),
        ({"uid": 1234567}, False, False),
        ({"creationTimestamp": "2026-03-02T09:30:0\\"}, False, False),
        ({"managedFields": []}, False, False),
        ({"name": "trein"}, False, False),
        ({"annotations": {"uid": "7ac-2", "note": '"uid":"7ac-1"', "managedFields": "[]"}}, False, False),
    ],
    ids=str,
)
def test_what_counts(change: dict[str, Any], always: bool, anew: bool) -> None:
    for asked, expected in ((False, always), (True, anew)):
        known = same_text(text(), anew=asked)
        assert known is not None
        assert known.matches(text(**change)) is expected


@pytest.mark.parametrize("other", [b'[{"manager":"kubectl","time":"2026-03-02T09:30:00Z"}', b'{"a":1}', b"[],[]"])
def test_in_the_place_of_managed_fields_is_one_list(other: bytes) -> None:
    written = json.dumps(OBJECT["metadata"]["managedFields"], separators=(",", ":")).encode()
    forged = text().replace(written, other.ljust(len(written)))
    known = same_text(text(), anew=True)
    assert known is not None
    assert len(forged) == len(text())
    assert not known.matches(forged)


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"[]",
        b'{"metadata":5}',
        b'{"spec":{}}',
        b'{"metadata":{"uid":5}}',
        b'{"metadata":{"uid":"a\\u0041"}}',
        b'{"metadata":{"uid":""}}',
        b'{"metadata":{"managedFields":{}}}',
        b'{"metadata":{"uid":"a","uid":"a"}}',
        text()[:-1],
        text(annotations={"uid": "7ac-1"}),
    ],
    ids=str,
)
def test_what_cannot_be_told_for_certain(broken: bytes) -> None:
    assert same_text(broken, anew=True) is None


def test_without_what_does_not_count_all_of_it_counts() -> None:
    bare = b'{"metadata":{"name":"train"},"spec":{}}'
    known = same_text(bare, anew=True)
    assert known is not None
    assert known.matches(bare)
    assert not known.matches(bare.replace(b"train", b"trein"))


VALUES = st.sampled_from(
    [
        b'"7ac-1"',
        b'"9bd-2"',
        b"1234567",
        b'"a\\"b7"',
        b'"a","b"',
        b"[12345]",
        b"[1,2,3]",
        b"[1],[2]",
        b'{"uid"}',
        b'{"a":1}',
    ]
)
KEYS = st.sampled_from([b"uid", b"managedFields", b"creationTimestamp", b"name", b"labels", b'"'])
PAIRS = st.lists(st.tuples(KEYS, VALUES), max_size=5)


def built(pairs: list[tuple[bytes, bytes]]) -> bytes:
    return b'{"metadata":{' + b",".join(b'"' + key + b'":' + value for key, value in pairs) + b'},"spec":{}}'


@given(pairs=PAIRS, other=PAIRS, anew=st.booleans())
def test_texts_that_match_are_the_same_object_but_for_what_does_not_count(pairs: Any, other: Any, anew: bool) -> None:
    one = built(pairs)
    # Mostly the same, so that some match.
    both = enumerate(zip(pairs, other, strict=False))
    two = built([(key, value if at % 2 else found) for at, ((key, value), (_, found)) in both])
    known = same_text(one, anew=anew)
    if known is None or not known.matches(two):
        return
    anew_too = {"uid", "creationTimestamp"} if anew else set()
    read = [json.loads(each, object_pairs_hook=list) for each in (one, two)]
    fields = [value for found in read for key, value in found if key == "metadata"]
    for (key, mine), (same_key, theirs) in zip(*fields, strict=True):
        assert key == same_key
        if mine != theirs:
            assert key in {"managedFields", *anew_too}
            assert type(mine) is type(theirs) is (list if key == "managedFields" else str)
