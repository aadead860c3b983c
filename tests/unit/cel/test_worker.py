"""The real worker: as a process with its bounds, and what comes of expressions in it."""

from collections.abc import Iterator

import msgspec
import pytest

from tests.support.jobs import changed
from tests.support.own_rules import question
from webhook.cel.engine import Engine
from webhook.cel.worker import answer
from webhook.kit.own_rules import Expression, Outcome, encode

SLOW = "'" + "a" * 40 + "'.find('(a+)+b') == ''"
LARGE = "['" + "a" * 1000 + "']" + ".map(x, x + x + x + x)" * 10 + "[0].size() > 0"


def outcomes(*sources: str | Expression, **about: object) -> list[Outcome]:
    return msgspec.json.decode(answer(encode(question(*sources, **about))), type=list[Outcome])


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
