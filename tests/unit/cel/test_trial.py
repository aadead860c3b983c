"""A trial in a separate process rejects expressions that need too much time or memory for the largest job."""

import pytest

from webhook.cel import limits, trial
from webhook.cel.evaluation import NOT_INSTALLED
from webhook.cel.trial import TOO_MUCH_MEMORY, TOO_SLOW, Trial, TrialFailed, try_expressions
from webhook.cel.trial_jobs import largest
from webhook.kit.custom_rules import Outcome

SPEC = "object.spec.mpiReplicaSpecs.Worker.template.spec"
CONTAINERS = f"{SPEC}.containers"
SLOW = "split('').exists(a, [[a]].flatten().sort().distinct() == [])"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        (f"{CONTAINERS}[0].image.{SLOW}", TOO_SLOW),
        (f"object.metadata.labels[?'team'].orValue('').{SLOW}", TOO_SLOW),
        (f"oldObject == null || oldObject.metadata.labels.team.{SLOW}", TOO_SLOW),
        (f"{CONTAINERS}.exists(c, {CONTAINERS}.exists(d, quantity(d.resources.limits.cpu).isInteger()))", TOO_SLOW),
        ("['" + "a" * 1000 + "']" + ".map(x, x + x + x + x)" * 10 + "[0].size() > 0", TOO_MUCH_MEMORY),
    ],
    ids=["text of an image", "text of a label", "old object", "loops", "doubling"],
)
def test_expression_that_needs_too_much_is_rejected(source: str, why: str) -> None:
    good, bad = try_expressions(Trial(["true", source]))
    assert (good, bad) == (Outcome(), Outcome(fault=why, written_wrong=True))


@pytest.mark.parametrize(
    "text",
    [
        "object.metadata.name",
        "object.metadata.annotations.map(key, key).join()",
        f"{SPEC}.volumes[0].name",
        f"{SPEC}.tolerations[0].key",
        f"{SPEC}.nodeSelector['example.com/0']",
        f"{SPEC}.schedulerName",
        f"{CONTAINERS}[0].name",
        f"{CONTAINERS}[0].workingDir",
        f"{CONTAINERS}[0].env[0].name",
        f"{CONTAINERS}[0].volumeMounts[0].mountPath",
        "job.images[0]",
        "job.queue",
    ],
)
def test_each_text_of_the_largest_job_has_the_maximum_length(text: str) -> None:
    (outcome,) = try_expressions(Trial([f"{text}.{SLOW}"]))
    assert outcome.fault in {TOO_SLOW, TOO_MUCH_MEMORY}


USUAL = (
    f"{CONTAINERS}.all(c, c.image.startsWith('registry.example.com/'))",
    f"{CONTAINERS}.map(c, c.name).distinct().size() == {CONTAINERS}.size()",
    f"{CONTAINERS}[0].?env.orValue([]).all(e, e.name != 'B')",
    f"{CONTAINERS}[0].image.split('/')[0] == 'registry.example.com'",
    f"{CONTAINERS}.all(c, c.image.matches('^[a-z.]+/train:[0-9]+$'))",
    f"{CONTAINERS}.all(c, quantity(string(c.resources.limits.memory)).compareTo(quantity(params.most)) <= 0)",
    "object.metadata.labels.all(key, !key.startsWith('kueue'))",
)


def test_usual_rules_pass_the_trial() -> None:
    assert try_expressions(Trial(USUAL, {"most": "64Gi"})) == [Outcome()] * len(USUAL)


def test_faulty_expression_does_not_end_the_trial() -> None:
    assert try_expressions(Trial(["1 + 'a' == 2", "object.spec.nothing", "true"])) == [
        Outcome(fault="column 3: found no matching overload for '_+_' applied to '(int, string)'", written_wrong=True),
        Outcome(fault='Key not found in map : "nothing"'),
        Outcome(),
    ]


def test_every_expression_is_rejected_if_the_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "installed", lambda: False)
    assert try_expressions(Trial(["true"])) == [Outcome(fault=NOT_INSTALLED, written_wrong=True)]


@pytest.mark.parametrize(("python", "why"), [("/nothing", "No such file"), ("false", "the process ended with 1")])
def test_failed_trial_raises_and_blames_no_expression(python: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial.sys, "executable", python)
    with pytest.raises(TrialFailed, match=f"the custom rules could not be tried: .*{why}"):
        try_expressions(Trial(["true"]))


def test_trial_stops_at_the_time_limit() -> None:
    with pytest.raises(TimeoutError):
        try_expressions(Trial(["true"]), seconds=0)


def test_lists_and_texts_of_the_largest_job_have_the_maximum_size() -> None:
    job = largest("object.metadata.?labels[?'example.com/team'].orValue('') != ''")
    container = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]
    assert len(container["args"]) > limits.MAX_JOB_VALUES
    assert len(job["metadata"]["labels"]["example.com/team"]) == limits.MAX_JOB_BYTES
