"""A job skips the injections that its annotation names, if the policy allows this."""

import pytest

from tests.support.injecting import DEFAULTS, hold, mpijob, mutate, policy_of
from webhook import injections
from webhook.api.annotations import SKIP


def skipping(text):
    return mpijob(metadata={"annotations": {SKIP: text}})


def cautions(text, policy=DEFAULTS):
    decision = hold(skipping(text), policy)
    return [note.removeprefix(f"{SKIP}: ") for note in decision.notes if note.startswith(SKIP)]


@pytest.mark.parametrize("text", ["istio", "istio,labels", " istio , labels,,istio", "labels,\n istio"])
def test_named_injection_is_skipped(text):
    decision = hold(skipping(text))
    assert "istio" not in decision.authors
    assert ("labels" in decision.authors) == ("labels" not in text)
    assert "api-access" in decision.authors
    assert cautions(text) == []


def test_all_skippable_injections_are_skipped():
    decision = hold(skipping(",".join(injections.REGISTRY)))
    assert set(decision.authors) == {"created-by", "job-timeout"}


LISTED = "`mpijob-webhook rules` lists them"


@pytest.mark.parametrize("text", ["", ",", "  "])
def test_empty_list_skips_nothing(text):
    assert hold(skipping(text)).authors == hold(mpijob()).authors
    assert cautions(text) == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("isto", '"isto"; did you mean istio?'),
        ("Istio,istio,x", f'"Istio", "x"; did you mean istio? {LISTED}'),
        ("a,b,c,d,e", f'"a", "b", "c" and 2 more; {LISTED}'),
        ("\x1b[31m" + "x" * 300, f'"?[31mxxxx..."; {LISTED}'),
    ],
)
def test_unknown_injection_is_reported(text, shown):
    assert cautions(text) == [f"no injection is called {shown}"]


def test_rule_in_the_list_of_injections_to_skip_is_reported():
    caution = '"worker-count" is a rule; use the annotation training.openshift.io/exempt'
    assert cautions("worker-count, isto") == [caution, 'no injection is called "isto"; did you mean istio?']


@pytest.mark.parametrize("required", ["deny", "warn", "audit"])
def test_attempt_to_skip_a_required_injection_fails_and_is_reported(required):
    policy = policy_of({"istio": {"required": required}, "labels": {"required": required}})
    decision = hold(skipping("istio,api-access,labels"), policy)
    assert {"istio", "labels"} <= set(decision.authors)
    assert "api-access" not in decision.authors
    assert cautions("istio,labels", policy) == ['"istio", "labels" cannot be skipped']
    assert decision.warnings[0] == f'{SKIP}: "istio", "labels" cannot be skipped'


def test_time_limit_cannot_be_skipped():
    decision = hold(skipping("job-timeout"))
    assert decision.document["spec"]["runPolicy"]["activeDeadlineSeconds"] == 86400
    assert decision.warnings[0] == f'{SKIP}: "job-timeout" cannot be skipped'


def test_skipping_a_disabled_injection_is_not_reported():
    assert cautions("istio", policy_of({"istio": {"enabled": False, "required": "deny"}})) == []


def test_only_the_start_of_a_very_long_list_is_read():
    assert "istio" in mutate(skipping("x," * 1000 + "istio")).authors
    (caution,) = cautions("x," * 1000 + ",".join(map(str, range(1000))))
    assert caution.startswith('no injection is called "x"; ')
