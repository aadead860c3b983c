"""The outcomes of expressions, also for jobs that are too large or take too long."""

import json
import re

import msgspec
import pytest

from tests.support.jobs import REMOVE, changed
from tests.support.own_rules import outcomes, variables
from webhook.api import mpijob
from webhook.cel import evaluation, limits
from webhook.cel.environment import MAX_FAULT
from webhook.cel.evaluation import NOT_INSTALLED, TOO_SLOW, evaluate, with_defaults
from webhook.kit.custom_rules import Expression, Outcome, Variables


def with_label(value: bytes) -> Variables:
    """For a job with this JSON as a label, which Python may be unable to write."""
    found = variables(changed({"metadata.labels": {"x": "VALUE"}}))
    return msgspec.structs.replace(found, object=msgspec.Raw(bytes(found.object).replace(b'"VALUE"', value)))


@pytest.mark.parametrize("value", [b"1e400", b"1" * 400])
def test_a_job_that_cannot_be_read_gives_no_value(value: bytes) -> None:
    (found,) = evaluate([Expression("true")], with_label(value))
    assert found.fault.startswith("the job cannot be read: ")


def test_without_the_package_no_expression_has_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluation, "installed", lambda: False)
    assert outcomes("true") == [Outcome(fault=NOT_INSTALLED, written_wrong=True)]


def test_a_slow_evaluation_has_no_value_and_the_rule_stays_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_a_job_that_is_too_large_is_not_evaluated(labels: dict[str, str], problem: str) -> None:
    large = changed({"metadata.labels": labels})
    (created,) = outcomes("true", submitted=large)
    assert re.fullmatch(problem, created.too_large)
    assert [outcomes("true", submitted=large, old=old)[0].standing for old in (changed(), large)] == [False, True]


def test_managed_fields_are_not_counted_and_not_there() -> None:
    job = changed({"metadata.managedFields": [MANY]})
    assert outcomes("!has(object.metadata.managedFields)", submitted=job) == [Outcome()]


@pytest.mark.parametrize("number", [-(2**63) - 1, 2**63, 10**30])
def test_a_number_beyond_64_bits_is_a_double_as_for_the_api_server(number: int) -> None:
    sources = ("object.metadata.name == 'x'", f"object.metadata.labels.x == {float(number)!r}")
    found = evaluate([*map(Expression, sources)], with_label(str(number).encode()))
    assert found == (Outcome(holds=False), Outcome())


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


BARE = {
    "spec.slotsPerWorker": REMOVE,
    "spec.runPolicy": REMOVE,
    "spec.sshAuthMountPath": REMOVE,
    "spec.mpiImplementation": REMOVE,
    "spec.launcherCreationPolicy": REMOVE,
    "Worker.replicas": REMOVE,
    "Launcher.replicas": REMOVE,
}


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
def test_both_fill_in_the_same(changes: dict[str, object]) -> None:
    data = msgspec.json.encode(changed(changes))
    typed = mpijob.apply_operator_defaults(mpijob.decode(data))
    filled = mpijob.decode(msgspec.json.encode(with_defaults(msgspec.json.decode(data))))
    assert filled == typed


@pytest.mark.parametrize("job", [{}, {"spec": None}])
def test_what_has_no_spec_stays_as_it_is(job: dict[str, object]) -> None:
    assert with_defaults(dict(job)) == job


@pytest.mark.parametrize(
    ("text", "expression", "found"),
    [
        ("abc\n", "c$", ""),
        ("a$\n", "a[$]", "a$"),
        ("a$", r"a\$", "a$"),
        ("x\ny", "(?m)^x$", "x"),
        ("x\n", "[]$]|x$", ""),
        ("ab", "(?P<name>a)", "a"),
        ("AB", "(?i)b", "B"),
    ],
)
def test_what_is_found(text: str, expression: str, found: str) -> None:
    (outcome,) = outcomes(f"{json.dumps(text)}.find({json.dumps(expression)}) == {json.dumps(found)}")
    assert (outcome.holds, outcome.fault) == (True, "")


@pytest.mark.parametrize(
    ("text", "most", "found"), [("baaab", -1, ["", "aaa", ""]), ("aab", 2, ["aa", ""]), ("b", 0, [])]
)
def test_nothing_directly_after_a_match_is_none(text: str, most: int, found: list[str]) -> None:
    (outcome,) = outcomes(f"{json.dumps(text)}.findAll('a*', {most}) == {json.dumps(found)}")
    assert (outcome.holds, outcome.fault) == (True, "")


@pytest.mark.parametrize(
    "expression",
    ["(?x)a b", "(?a)a", "(?:(?ix)a)", r"a\Z", r"\N{DIGIT ONE}", r"\u0061", "a{,3}", "[[:alpha:]]", "(?i)é"],
)
def test_what_means_something_else_in_python_has_no_value(expression: str) -> None:
    (outcome,) = outcomes(f"'a'.find({json.dumps(expression)}) == ''")
    assert outcome.fault
