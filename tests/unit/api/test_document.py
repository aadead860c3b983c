import json
import time
from contextlib import suppress
from typing import Any

import msgspec
import pytest

from tests.support.jobs import changed
from webhook.api import document, mpijob, untyped, written
from webhook.api.shape import ShapeError
from webhook.cel import evaluation
from webhook.work_limit import TooExpensive


def parts(job: mpijob.MPIJob) -> tuple[object, ...]:
    return job.api_version, job.kind, job.metadata, job.spec, bytes(job.raw_status)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b'{"metadata": {"labels": {"a": 1}}}',
        b'{"metadata": {"managedFields": 1}}',
        b'{"spec": {"mpiReplicaSpecs": {"Worker": {"replicas": true}}}}',
        b'{"spec": {"slotsPerWorker": 2147483648}}',
        b'{"spec": {"foo": 99999999999999999999, "bar": 1e999}}',
        b'{"spec": {"foo": "\xff"}}',
        b'{"spec": {"runPolicy": {"schedulingPolicy": {"minResources": {"cpu": 1.5, "memory": null}}}}}',
    ],
)
def test_any_document_is_decoded_or_raises_a_documented_error(data: bytes) -> None:
    with suppress(ShapeError, msgspec.DecodeError, UnicodeDecodeError):
        document.decode(data)


def test_decoded_mapping_lacks_only_the_managed_fields() -> None:
    stored = changed({"metadata.uid": "0b1c", "status": {"startTime": None}})
    sent = changed({"metadata.managedFields": [{"manager": "kubectl"}]}, stored)
    job, whole = document.decode(json.dumps(sent).encode())
    assert whole == stored
    assert bytes(job.raw_status) == b'{"startTime": null}'


def test_change_of_the_decoded_mapping_does_not_change_the_typed_job() -> None:
    job, whole = document.decode(json.dumps(changed({"metadata.labels": {"team": "a"}})).encode())
    whole["metadata"]["labels"]["team"] = "b"
    worker = whole["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    worker["containers"].append({"name": "other"})
    worker["containers"][0]["resources"]["limits"]["nvidia.com/gpu"] = 0
    assert parts(job) == parts(mpijob.decode(json.dumps(changed({"metadata.labels": {"team": "a"}})).encode()))


def test_templates_equal_the_templates_in_the_document() -> None:
    job = changed({"Worker": {"restartPolicy": "Never"}, "spec.mpiReplicaSpecs.Other": None})
    text = json.dumps(job, indent=3).encode()
    templates = written.templates(text)
    assert list(templates) == ["Launcher"]
    assert templates["Launcher"] in text
    assert json.loads(templates["Launcher"]) == job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]


@pytest.mark.parametrize("specs", [None, {}, {"Worker": None}])
def test_job_without_templates_has_an_empty_mapping_of_templates(specs: object) -> None:
    assert written.templates(json.dumps({"spec": {"mpiReplicaSpecs": specs}}).encode()) == {}


@pytest.mark.parametrize(
    "read", [lambda data: untyped.decode(data)["value"], lambda data: evaluation.read(msgspec.Raw(data))["value"]]
)
class TestNumbers:
    @pytest.mark.parametrize(
        "text",
        ["1.5", "-0.0", "1e3", "1E-7", "1e+308", "-1.7976931348623157e308", "5e-324", "1e-400", "0.1", "123456.789e-3"],
    )
    def test_numbers_equal_the_results_of_the_default_decoder(self, read: Any, text: str) -> None:
        value, expected = read(f'{{"value":{text}}}'.encode()), msgspec.json.decode(text)
        assert (type(value), repr(value)) == (float, repr(expected))

    @pytest.mark.parametrize("text", ["1e309", "-1e400", "1e+999999999"])
    def test_number_beyond_a_double_is_invalid(self, read: Any, text: str) -> None:
        with pytest.raises(msgspec.DecodeError):
            msgspec.json.decode(text)
        with pytest.raises(msgspec.DecodeError, match="out of range"):
            read(f'{{"value":{text}}}'.encode())

    @pytest.mark.parametrize("text", ["NaN", "Infinity", "1.", ".5", "1e", "+1.0", "1_0.5"])
    def test_invalid_json_number_is_an_error(self, read: Any, text: str) -> None:
        with pytest.raises(msgspec.DecodeError):
            read(f'{{"value":{text}}}'.encode())


def test_whole_numbers_stay_whole() -> None:
    assert [*map(type, untyped.decode(b"[1, 9223372036854775808, 1.0]"))] == [int, int, float]


def test_many_large_numbers_take_little_time() -> None:
    data = b"[" + b",".join([b"1e+308"] * 10_000) + b"]"
    began = time.thread_time()
    untyped.decode(data)
    assert time.thread_time() - began < 0.05  # without the hook for numbers: 100 ms


def test_decoder_does_not_catch_the_exception_of_the_limit_on_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(_: str) -> float:
        raise TooExpensive

    decoder = msgspec.json.Decoder(float_hook=interrupted)
    with pytest.raises(TooExpensive):
        decoder.decode(b"[1.5]")
