"""What is kept of a verdict, and how jobs are counted."""

from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.companions.audit.outcome import IN_ORDER, broken, counts
from webhook.companions.job_metrics import BEYOND, Labels
from webhook.kit.settings import Action
from webhook.rules import Violation


def finding(rule: str, message: str = "is wrong") -> Finding:
    return Finding(rule, Violation("spec", message, fix="Mend it."))


def test_a_rule_counts_once_for_a_job() -> None:
    decision = Decision(
        denied=[finding("gpus"), finding("gpus", "is wrong too")],
        warned=[finding("gpus"), finding("images")],
        audited=[finding("slots")],
        exempted=[(finding("gang"), "a benchmark")],
    )
    expected = {("gpus", Action.DENY), ("gpus", Action.WARN), ("images", Action.WARN), ("slots", Action.AUDIT)}
    assert set(broken(decision)) == expected
    assert len(broken(decision)) == len(expected)
    assert broken(Decision()) is IN_ORDER


def test_jobs_are_counted_by_namespace() -> None:
    both = (("gpus", Action.DENY), ("images", Action.WARN))
    outcomes = [
        (("a", "one"), both),
        (("a", "two"), (("gpus", Action.DENY), ("slots", Action.DENY))),
        (("a", "three"), IN_ORDER),
        (("b", "one"), (("images", Action.WARN),)),
    ]
    found = counts(outcomes, Labels(10))
    assert found.jobs == {"a": 3, "b": 1}
    assert found.refused == {"a": 2, "b": 0}
    assert found.violations == {
        ("a", "gpus", "deny"): 2,
        ("a", "slots", "deny"): 1,
        ("a", "images", "warn"): 1,
        ("b", "images", "warn"): 1,
    }


def test_namespaces_beyond_the_bound_are_one() -> None:
    found = counts([((f"n{number}", "job"), (("gpus", Action.DENY),)) for number in range(5)], Labels(2))
    assert found.jobs == {"n0": 1, "n1": 1, BEYOND: 3}
    assert found.violations[BEYOND, "gpus", "deny"] == 3
