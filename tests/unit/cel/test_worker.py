"""The real worker: as a process with its bounds, and what comes of expressions in it."""

import os
import signal
from collections.abc import Iterator
from typing import cast

import msgspec
import pytest

from tests.support.jobs import changed
from tests.support.own_rules import outcomes, question
from webhook.cel.engine import Engine
from webhook.cel.environment import MAX_FAULT
from webhook.cel.process import Worker
from webhook.cel.worker import answer
from webhook.kit.own_rules import Expression, Outcome, encode

SLOW = "'" + "a" * 40 + "'.find('(a+)+b') == ''"
LARGE = "['" + "a" * 1000 + "']" + ".map(x, x + x + x + x)" * 10 + "[0].size() > 0"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.close()


@pytest.mark.parametrize("source", [SLOW, LARGE], ids=["slow", "large"])
def test_what_takes_too_much_costs_itself_alone(engine: Engine, source: str) -> None:
    good, bad, other = engine.evaluate(encode(question("true", source, "object.metadata.name == 'x'")))
    assert (good, other) == (Outcome(), Outcome(holds=False))
    assert bad.fault.startswith("it takes more than")


def test_a_question_of_megabytes_is_answered(engine: Engine) -> None:
    job = changed({"metadata.annotations": {"x": "y" * 1_400_000}})
    assert engine.evaluate(encode(question("size(object.metadata.annotations.x) > 1000", submitted=job, old=job))) == (
        Outcome(),
    )


def test_a_worker_that_is_killed_while_it_waits_costs_nothing(engine: Engine) -> None:
    engine.evaluate(encode(question("true")))
    worker = cast("Worker", engine._worker)
    os.kill(worker._process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, worker._process.pid, os.WEXITED | os.WNOWAIT)
    assert engine.evaluate(encode(question("true"))) == (Outcome(),)


def asked_of(value: bytes, *sources: str) -> bytes:
    """A question about a job with this JSON for a label, which Python need not be able to write."""
    job = changed({"metadata.labels": {"x": "VALUE"}})
    return encode(question(*sources, submitted=job)).replace(b'"VALUE"', value)


@pytest.mark.parametrize("value", [b"1e400", b"1" * 400])
def test_a_job_that_cannot_be_read_gives_no_value_and_ends_nothing(value: bytes) -> None:
    (found,) = msgspec.json.decode(answer(asked_of(value, "true")), type=list[Outcome])
    assert found.fault.startswith("the job cannot be read: ")


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**63, 10**30])
def test_a_number_beyond_64_bits_is_a_double_as_for_the_api_server(number: int) -> None:
    sources = ("object.metadata.name == 'x'", f"object.metadata.labels.x == {float(number)!r}")
    found = answer(asked_of(str(number).encode(), *sources))
    assert msgspec.json.decode(found, type=list[Outcome]) == [Outcome(holds=False), Outcome()]


@pytest.mark.parametrize("source", ["ip(object.metadata.name) == ip('::')", "object.spec[object.metadata.name]"])
def test_a_fault_is_short_whatever_it_quotes(source: str) -> None:
    (found,) = outcomes(source, submitted=changed({"metadata.name": "x" * 200_000}))
    assert 0 < len(found.fault) <= MAX_FAULT


def test_what_a_rule_may_read() -> None:
    found = outcomes(
        "object.spec.runPolicy.cleanPodPolicy == 'Running'",
        "oldObject == null",
        "request.operation == 'CREATE' && request.userInfo.username == 'alice'",
        "namespaceObject.metadata.labels.tier == 'gold'",
        "params.most == 4",
        "job.workers == 4 && job.images.all(image, image.startsWith('registry.'))",
        request={"operation": "CREATE", "userInfo": {"username": "alice"}},
        namespace_object={"metadata": {"name": "team-a", "labels": {"tier": "gold"}}},
        params={"most": 4},
        job={"workers": 4, "images": ["registry.example.com/a"]},
    )
    assert found == [Outcome()] * 6


def test_the_operators_defaults_are_there() -> None:
    job = {"spec": {"mpiReplicaSpecs": {"Launcher": {}, "Worker": {}}}}
    assert outcomes(
        "object.spec.slotsPerWorker == 1 && object.spec.runPolicy.cleanPodPolicy == 'None'",
        "object.spec.mpiReplicaSpecs.Launcher.replicas == 1",
        submitted=job,
    ) == [Outcome(), Outcome()]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("1 + 'a' == 2", "column 3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("true &&\n  nothing", "its line 2, column 3: undeclared reference to 'nothing'"),
        ("'yes'", "is of the type string, and must be true or false"),
        ("authorizer.x", "column 11: undeclared reference to 'authorizer.x'"),
        ("math.greatest(1, 2) == 2", "column 1: undeclared reference to 'math'"),
        ("cel.bind(a, 1, a == 1)", "column 10: undeclared reference to 'a'"),
        ("format.named('dns1123Label').hasValue()", "column 1: undeclared reference to 'format'"),
        ("object.spec.all(key, value, true)", "column 17: undeclared reference to 'key'"),
    ],
)
def test_what_can_never_be_evaluated_says_where(source: str, fault: str) -> None:
    assert outcomes(source) == [Outcome(fault=fault, written_wrong=True)]


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("object.spec.nothing == 1", 'Key not found in map : "nothing"'),
        ("object.spec.slotsPerWorker", "is of the type int here"),
        ("object.spec.slotsPerWorker + 'a' == ''", "No matching overloads found : _+_(int64, string)"),
        ("quantity(object.spec.slotsPerWorker) == quantity('1')", "No matching overloads found : quantity(int64)"),
    ],
)
def test_what_this_job_gives_no_value_says_why(source: str, fault: str) -> None:
    assert outcomes(source) == [Outcome(fault=fault)]


def test_a_rule_is_about_the_jobs_that_match() -> None:
    assert outcomes(
        Expression("false", "object.metadata.name == 'other'"),
        Expression("false", "object.metadata.name == 'train'"),
        Expression("false", "object.metadata.nothing"),
    ) == [Outcome(), Outcome(holds=False), Outcome(fault='Key not found in map : "nothing"')]


def test_what_does_not_hold_of_the_stored_job_either() -> None:
    old = changed({"spec.slotsPerWorker": 3})
    assert outcomes(
        "object.spec.slotsPerWorker == 1",
        "object.spec.slotsPerWorker == 3",
        "object.spec.nothing",
        Expression("oldObject.spec.slotsPerWorker == 1", of_change=True),
        old=old,
    ) == [
        Outcome(holds=False, standing=True),
        Outcome(holds=False),
        Outcome(fault='Key not found in map : "nothing"', standing=True),
        Outcome(holds=False),
    ]
