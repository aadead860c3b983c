"""The examples and explanations on the page of the playground."""

import pytest

from webhook.cli import explanations
from webhook.parts.playground.page_data import page_data
from webhook.parts.playground.verdicts import answer

DATA = page_data()


@pytest.mark.parametrize("pane", ["policy", "cluster"])
def test_every_example_of_a_policy_or_cluster_is_valid(pane: str) -> None:
    (good,) = (job for job in DATA["examples"]["job"] if job["name"] == "Openmpi pi")
    assert DATA["examples"][pane]
    for example in DATA["examples"][pane]:
        assert answer({"job": good["text"], pane: example["text"]})["faults"] == [], example["name"]


def test_exactly_the_example_jobs_called_bad_are_rejected() -> None:
    for example in DATA["examples"]["job"]:
        assert answer({"job": example["text"]})["jobs"][0]["allowed"] is not example["name"].startswith("Bad: ")


def test_every_rule_and_injection_is_explained() -> None:
    assert {entry.id for entry in explanations.entries()} == DATA["explanations"].keys()
