"""What is remembered of a template is what would be worked out anew."""

import json

import msgspec
import pytest

from webhook.api import mpijob, written
from webhook.api.pod import PodTemplate
from webhook.api.remembered import remembered


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


def _template(image: str, **fields: object) -> PodTemplate:
    template = {"spec": {"containers": [{"image": image, **fields}]}}
    job, _ = written.decode(json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"template": template}}}}).encode())
    assert job.worker is not None
    assert job == mpijob.decode(json.dumps({"spec": {"mpiReplicaSpecs": {"Worker": {"template": template}}}}).encode())
    return job.worker.template
