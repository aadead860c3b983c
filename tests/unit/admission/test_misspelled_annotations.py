"""An annotation without an effect is reported if it is similar to a known annotation."""

import pytest

from tests.support.injecting import hold, mpijob, policy_of
from webhook.admission.mutate import misspelled_annotations
from webhook.api import annotations

PREFIX = "training.openshift.io/"


def cautions(**metadata: dict[str, str]) -> list[str]:
    return [text for text in hold(mpijob(metadata=metadata)).cautions if text.startswith(PREFIX)]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("timout", "timeout"),
        ("timeoutaction", "timeout-action"),
        ("queu", "queue"),
        ("rmda", "rdma"),
        ("network", "networks"),
        ("gpu-products", "gpu-product"),
        ("exempts", "exempt"),
        ("exempt_reason", "exempt-reason"),
        ("queued-at", ""),
        ("team", ""),
        ("tier", ""),
        ("", ""),
    ],
)
def test_annotation_is_reported_if_it_resembles_a_known_annotation(written: str, meant: str) -> None:
    said = [f"{PREFIX}{written}: has no effect; did you mean {PREFIX}{meant}?"] if meant else []
    assert cautions(annotations={f"{PREFIX}{written}": "x"}) == said


def test_annotation_for_which_there_is_a_field_is_reported() -> None:
    said = f"{PREFIX}log-retention: has no effect; did you mean spec.runPolicy.ttlSecondsAfterFinished?"
    assert cautions(annotations={f"{PREFIX}log-retention": "30d"}) == [said]


def test_known_annotation_causes_no_warning() -> None:
    for key in misspelled_annotations.KNOWN - {annotations.INJECTED}:
        assert [text for text in cautions(annotations={key: "1"}) if "has no effect, did" in text] == []
    assert cautions(annotations={"timout": "x"}, labels={"timout": "x", f"{PREFIX}tier": "gold"}) == []


def test_label_in_place_of_an_annotation_is_reported() -> None:
    said = f"{annotations.QUEUE}: has no effect as a label, make it an annotation"
    assert cautions(labels={annotations.QUEUE: "a", f"{PREFIX}tier": "gold"}) == [said]


@pytest.mark.parametrize(("value", "caution"), [("true", True), ("2222", True), ("false", False)])
def test_worker_readiness_annotation_is_reported_if_its_injection_is_off(value: str, caution: bool) -> None:
    key = annotations.WORKER_READINESS
    off = policy_of({"launcher-wait": {"enabled": False}})
    found = hold(mpijob(metadata={"annotations": {key: value}}), off).cautions
    assert (f"{key}: has no effect, the policy has launcher-wait off" in found) is caution


def test_only_the_first_few_annotations_are_reported() -> None:
    assert len(cautions(annotations={f"{PREFIX}queue{letter}": "x" for letter in "abcdefgh"})) == 5


def test_annotation_without_an_effect_is_reported_in_one_line() -> None:
    key = f"{PREFIX}gpu-producs"
    (warning,) = [text for text in hold(mpijob(metadata={"annotations": {key: "x"}})).warnings if key in text]
    assert warning == f"{key}: has no effect; did you mean {annotations.GPU_PRODUCT}?"
