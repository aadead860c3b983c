"""The outcomes of the expressions of custom rules, also for a too large job and for a too slow evaluation."""

import re

import msgspec
import pytest

from tests.support.custom_rules import outcomes, variables
from tests.support.jobs import REMOVE, changed
from webhook.api import mpijob
from webhook.cel import evaluation, limits
from webhook.cel.environment import MAX_FAULT
from webhook.cel.evaluation import NOT_INSTALLED, TOO_SLOW, evaluate, with_defaults
from webhook.kit.custom_rules import Expression, Outcome, Variables


def with_label(value: bytes) -> Variables:
    """Variables for a job in which a label's value is this JSON text. Python may be unable to write such a value."""
    placeholder = variables(changed({"metadata.labels": {"x": "VALUE"}}))
    return msgspec.structs.replace(
        placeholder, object=msgspec.Raw(bytes(placeholder.object).replace(b'"VALUE"', value))
    )


@pytest.mark.parametrize("value", [b"1e400", b"1" * 400])
def test_expression_cannot_be_evaluated_for_an_unreadable_job(value: bytes) -> None:
    (outcome,) = evaluate([Expression("true")], with_label(value))
    assert outcome.fault.startswith("the job cannot be read: ")


def test_expression_cannot_be_evaluated_if_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "installed", lambda: False)
    assert outcomes("true") == [Outcome(fault=NOT_INSTALLED, written_wrong=True)]


def test_slow_expression_is_a_fault_and_is_evaluated_again_in_the_next_review(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(limits, "MAX_REVIEW_SECONDS", -1)
        assert outcomes("true", "false") == [Outcome(fault=TOO_SLOW)] * 2
    assert outcomes("true", "false") == [Outcome(), Outcome(holds=False)]


MANY = {f"k{number}": "" for number in range(limits.MAX_JOB_VALUES)}
LONG = {"x": "y" * limits.MAX_JOB_BYTES}


@pytest.mark.parametrize(
    ("labels", "problem"),
    [
        (MANY, r"too large for custom rules: 1,\d\d\d values, the maximum is 1,000"),
        (LONG, r"too large for custom rules: 26\d,\d\d\d bytes, the maximum is 262,144"),
    ],
)
def test_job_that_is_too_large_is_not_evaluated(labels: dict[str, str], problem: str) -> None:
    large = changed({"metadata.labels": labels})
    (created,) = outcomes("true", submitted=large)
    assert re.fullmatch(problem, created.too_large)
    assert [outcomes("true", submitted=large, old=old)[0].standing for old in (changed(), large)] == [False, True]


def test_managed_fields_are_removed_and_not_counted() -> None:
    job = changed({"metadata.managedFields": [MANY]})
    assert outcomes("!has(object.metadata.managedFields)", submitted=job) == [Outcome()]


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**63, 10**30])
def test_number_beyond_64_bits_is_a_double(number: int) -> None:
    sources = ("object.metadata.name == 'x'", f"object.metadata.labels.x == {float(number)!r}")
    result = evaluate([*map(Expression, sources)], with_label(str(number).encode()))
    assert result == (Outcome(holds=False), Outcome())


@pytest.mark.parametrize(
    "source", ["quantity(object.metadata.name) == quantity('1')", "object.spec[object.metadata.name]"]
)
def test_fault_with_a_quoted_value_is_short(source: str) -> None:
    (outcome,) = outcomes(source, submitted=changed({"metadata.name": "x" * 200_000}))
    assert 0 < len(outcome.fault) <= MAX_FAULT


def test_expressions_can_read_every_variable() -> None:
    result = outcomes(
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
    assert result == [Outcome()] * 6


@pytest.mark.parametrize(
    ("source", "fault"),
    [
        ("1 + 'a' == 2", "column 3: found no matching overload for '_+_' applied to '(int, string)'"),
        ("true &&\n  nothing", "its line 2, column 3: undeclared reference to 'nothing'"),
        ("'yes'", "is of the type string, and must be true or false"),
        ("math.greatest(1, 2) == 2", "column 1: undeclared reference to 'math'"),
        ("cel.bind(a, 1, a == 1)", "column 10: undeclared reference to 'a'"),
    ],
)
def test_invalid_expression_is_reported_with_its_position(source: str, fault: str) -> None:
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
def test_expression_that_cannot_be_evaluated_for_this_job_is_reported(source: str, fault: str) -> None:
    assert outcomes(source) == [Outcome(fault=fault)]


def test_rule_applies_only_to_jobs_that_match() -> None:
    assert outcomes(
        Expression("false", "object.metadata.name == 'other'"),
        Expression("false", "object.metadata.name == 'train'"),
        Expression("false", "object.metadata.nothing"),
    ) == [Outcome(), Outcome(holds=False), Outcome(fault='Key not found in map : "nothing"')]


def test_outcome_is_marked_as_standing_if_the_stored_job_has_it_too() -> None:
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


FIELDS = ("slotsPerWorker", "runPolicy", "sshAuthMountPath", "mpiImplementation", "launcherCreationPolicy")
BARE = dict.fromkeys((*(f"spec.{field}" for field in FIELDS), "Worker.replicas", "Launcher.replicas"), REMOVE)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        BARE,
        {"spec.runPolicy": None, "spec.slotsPerWorker": None, "spec.mpiImplementation": ""},
        {"spec.runPolicy": {"cleanPodPolicy": None}, "Worker.restartPolicy": "Always", "Worker.replicas": None},
        {"Worker": REMOVE},
        {"Launcher": None},
        {"spec.mpiReplicaSpecs": None},
    ],
)
def test_defaults_equal_those_of_the_decoded_job(changes: dict[str, object]) -> None:
    data = msgspec.json.encode(changed(changes))
    typed = mpijob.apply_operator_defaults(mpijob.decode(data))
    filled = mpijob.decode(msgspec.json.encode(with_defaults(msgspec.json.decode(data))))
    assert filled == typed


@pytest.mark.parametrize("job", [{}, {"spec": None}])
def test_job_without_a_spec_is_unchanged(job: dict[str, object]) -> None:
    assert with_defaults(dict(job)) == job
