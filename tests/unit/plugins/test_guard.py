"""If a plug-in fails in a review, the review continues without the result of this plug-in."""

from pathlib import Path
from typing import Any

import pytest

from tests.support import injecting, jobs
from tests.support.jobs import GOOD
from tests.support.plugins import RULE, SAYS_NO, install, install_injection, install_rule, taken_in
from tests.support.policies import HEADER
from tests.support.rule_checks import decide
from webhook.admission.decision import Decision
from webhook.plugins import loading
from webhook.policy.document import PolicyError
from webhook.policy.in_force import load_policy

FAILING = {
    "raises": ("raise KeyError(job.metadata.name)\n    yield", "KeyError in acme_no.py:11"),
    "raises after a violation": (f"{SAYS_NO}\n    1 / 0", "ZeroDivisionError in acme_no.py:12"),
    "ends the process": ("raise SystemExit(3)\n    yield", "SystemExit in acme_no.py:11"),
    "gives nothing": ("return None", "TypeError in guard.py:"),
    "gives a text": ("return ['no']", "TypeError in guard.py:"),
    "recurses without end": (
        "check.__wrapped__(job, settings, ctx) if 0 else (lambda f: f(f))(lambda f: f(f))\n    yield",
        "Recursion",
    ),
}


@pytest.mark.parametrize(("body", "reason"), FAILING.values(), ids=list(FAILING))
def test_failing_rule_rejects_nothing_and_other_rules_are_checked(tmp_path: Path, body: str, reason: str) -> None:
    install_rule(tmp_path, body)
    job = jobs.changed({"Worker.replicas": 1})
    with taken_in(tmp_path, "acme"):
        policy = load_policy(None)
        decision = decide(job, policy)
        assert [finding.rule for finding in decision.denied] == ["worker-count"]
        (failure,) = decision.audited
        assert failure.rule == "acme-no"
        assert failure.violation.message.startswith(f"the plug-in acme failed ({reason}")
        assert "the plug-in acme failed" in decision.response("u").audit_annotations["audit-violations"]
        assert loading.FAILURES.counts == {("rule", "acme-no"): 1}
        assert decide(GOOD, policy).allowed
        assert loading.problems()["acme"].startswith(f"rule acme-no failed 2 times, last with {reason}")


def test_rule_of_a_plugin_rejects_like_a_built_in_rule(tmp_path: Path) -> None:
    install_rule(tmp_path)
    with taken_in(tmp_path, "acme"):
        assert "spec: I say no [acme-no]" in decide(GOOD, load_policy(None)).message
        warned = decide(GOOD, "rules: {acme-no: {action: warn, word: never}}")
        assert "spec: I say never. Give up. [acme-no]" in warned.warnings
        assert decide(GOOD, "rules: {acme-no: {action: 'off'}}").allowed


def test_update_without_a_new_violation_is_admitted(tmp_path: Path) -> None:
    install_rule(tmp_path)
    with taken_in(tmp_path, "acme"):
        assert decide(GOOD, load_policy(None), old=GOOD, operation="UPDATE").allowed


WRITES = """job.spec.slots_per_worker = 99
    job.spec.mpi_replica_specs["Worker"].template.containers[0].name = "taken-over"
    job.metadata.labels = {}
    if ctx.old: ctx.old.spec.mpi_replica_specs.clear()
    return []"""


def test_job_that_a_plugin_changes_is_unchanged_for_later_rules_and_reviews(tmp_path: Path) -> None:
    install_rule(tmp_path, WRITES)
    changed = jobs.changed({"metadata.labels": {"a": "b"}})
    with taken_in(tmp_path, "acme"):
        policy = load_policy(None)
        before = decide(changed, "rules: {acme-no: {action: 'off'}}")
        for _ in range(2):
            assert decide(changed, policy) == before
        assert decide(changed, policy, old=GOOD, operation="UPDATE").allowed
        assert loading.FAILURES.counts == {("rule", "acme-no"): 0}


@pytest.mark.parametrize(("install_entry", "judge"), [(install_rule, decide), (install_injection, injecting.mutate)])
def test_interrupt_of_the_process_is_not_a_failure_of_the_plugin(
    tmp_path: Path, install_entry: Any, judge: Any
) -> None:
    install_entry(tmp_path, "raise KeyboardInterrupt\n    yield")
    with taken_in(tmp_path, "acme"):
        policy = load_policy(None)
        with pytest.raises(KeyboardInterrupt):
            judge(GOOD, policy)


@pytest.mark.parametrize(
    "body",
    [
        'patch.add(("metadata", "labels", "a"), "b")\n    raise KeyError\n    yield',
        'patch.add(("metadata", "labels", "a"), "b")\n    raise SystemExit(1)\n    yield',
        'patch.add(("metadata", "labels", "a"), "b")\n    yield 7',
        'patch.add(("metadata", "labels", "a"), object())\n    yield "did it"',
    ],
)
def test_failing_injection_leaves_the_job_unchanged(tmp_path: Path, body: str) -> None:
    install_injection(tmp_path, body)
    with taken_in(tmp_path, "acme"):
        decision = injecting.mutate(GOOD, load_policy(None))
        without = injecting.mutate(GOOD, load_policy(HEADER + "injections: {acme-more: {enabled: false}}"))
        assert (decision.patch, decision.document) == (without.patch, without.document)
        assert "acme-more: failed, so nothing was injected; inform your administrator" in decision.warnings
        assert loading.FAILURES.counts == {("injection", "acme-more"): 1}
        required = "injections: {acme-more: {required: deny}}"
        assert "required-injection" not in [each.rule for each in decide(GOOD, required).denied]


def test_conflicting_injection_is_not_a_failure_and_other_injections_are_applied(tmp_path: Path) -> None:
    install_injection(
        tmp_path, 'patch.add(("metadata", "labels", "a"), "b")\n    patch.add(("kind", "x"), 1)\n    yield'
    )
    with taken_in(tmp_path, "acme"):
        decision = injecting.mutate(GOOD, load_policy(None))
        assert decision.patch
        assert "acme-more" not in decision.authors
        assert loading.FAILURES.counts == {("injection", "acme-more"): 0}


def test_injection_of_a_plugin_passes_the_checks_for_all_injections(tmp_path: Path) -> None:
    install_injection(tmp_path, 'if patch.add(("metadata", "labels", "a"), "b"):\n        yield "set a to b"')
    with taken_in(tmp_path, "acme"):
        decision = injecting.hold(GOOD, load_policy(None))
        assert decision.document is not None
        assert decision.document["metadata"]["labels"]["a"] == "b"
        assert decision.response("u").audit_annotations["injected.acme-more"] == "set a to b"


FORM = '(Form(("metadata", "labels", ITEM), lambda key, value: {}),)'


def updated(tmp_path: Path, holds: str) -> Decision:
    """The decision on an update that drops the label `a`. `holds` says which labels the plug-in may have injected."""
    install_injection(tmp_path, "yield from ()", forms=FORM.format(holds))
    stored = jobs.changed({"metadata.labels": {"a": "b"}})
    with taken_in(tmp_path, "acme"):
        return injecting.mutate(GOOD, load_policy(None), "UPDATE", stored=stored, manager="argocd-controller")


def test_update_restores_a_value_of_a_plugin(tmp_path: Path) -> None:
    assert updated(tmp_path, 'key == "a" and value == "b"').patch == [
        {"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}
    ]


@pytest.mark.parametrize("body", ["1 / 0", "exit()"])
def test_failing_form_restores_nothing(tmp_path: Path, body: str) -> None:
    decision = updated(tmp_path, body)
    assert (decision.skipped, decision.patch) == ("", [])


def test_failing_settings_are_a_fault_of_the_policy_document(tmp_path: Path) -> None:
    text = RULE.replace(
        'word: str = "no"', 'word: str = "no"\n    def model_post_init(self, _): self.word == "x" and 1 / 0'
    )
    install(
        tmp_path, "acme", {"acme_no": text.format(id="acme-no", body=SAYS_NO)}, {"rules": {"acme-no": "acme_no:check"}}
    )
    with taken_in(tmp_path, "acme"), pytest.raises(PolicyError, match="acme-no: its plug-in failed: ZeroDivisionError"):
        load_policy(HEADER + "rules: {acme-no: {word: x}}")
