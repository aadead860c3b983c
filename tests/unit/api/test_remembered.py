"""What is remembered of a template is what would be worked out anew."""

import json
from itertools import count
from typing import Final

import msgspec
import pytest

from webhook.api import mpijob, written
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodTemplate
from webhook.api.remembered import remembered

_NUMBERS: Final = count(10)


def test_it_is_worked_out_once_for_each_template_and_what_else_is_given() -> None:
    asked: list[tuple[object, ...]] = []

    @remembered
    def users(template: PodTemplate, path: str) -> str:
        asked.append((template, path))
        return f"{path}: {template.user}"

    first, second = (msgspec.convert({"spec": {"securityContext": {"runAsUser": 1}}}, PodTemplate) for _ in range(2))
    assert [users(first, "a"), users(first, "a"), users(first, "b"), users(second, "b")] == ["a: 1"] * 2 + ["b: 1"] * 2
    assert len(asked) == 3
    assert users(first, "a") == "a: 1"  # the last of what was given is kept, and no more
    assert len(asked) == 4


def test_two_functions_of_one_name_in_two_places_are_two() -> None:
    def made(result: int) -> object:
        return remembered(lambda _: result)(template)

    template = PodTemplate()
    assert made(1) == 1

    @remembered
    def other(_: PodTemplate) -> int:
        return 2

    assert other(template) == 2


def test_a_template_that_comes_again_is_the_same_until_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(written, "_MOST_IN_ALL", 20_000)
    first = _template("app:1")
    assert _template("app:1") is first
    assert _template("app:2") is not first
    for number in range(100):
        _template(f"other:{number}")
    again = _template("app:1")
    assert again is not first
    assert again == first


@pytest.mark.parametrize("fields", [{"name": "a" * 70_000}, {"env": [{"name": "a"}] * 512}, {"args": ["-x"] * 1900}])
def test_a_template_that_takes_much_memory_is_read_each_time(fields: dict[str, object]) -> None:
    assert _template("app:1", **fields) is not _template("app:1", **fields)


@pytest.mark.parametrize(("fields", "same"), [({}, True), ({"name": "a" * 70_000}, False)])
def test_a_spec_that_comes_again_is_the_same_unless_it_takes_much_memory(fields: dict[str, object], same: bool) -> None:
    first, second = (_job("app:1", number=1, **fields) for _ in range(2))
    assert (first.spec is second.spec) is same
    assert first.spec == second.spec
    assert _job("app:1", number=2, **fields).spec != first.spec


def _template(image: str, **fields: object) -> PodTemplate:
    """Of a job that is like no other."""
    job = _job(image, number=next(_NUMBERS), **fields)
    assert job.worker is not None
    return job.worker.template


def _job(image: str, *, number: int, **fields: object) -> MPIJob:
    replicas = {"Worker": {"template": {"spec": {"containers": [{"image": image, **fields}]}}}}
    text = json.dumps({"spec": {"slotsPerWorker": number, "mpiReplicaSpecs": replicas}}).encode()
    job, _ = written.decode(text)
    assert job == mpijob.decode(text)
    return job
