"""Checks of policies."""

from collections.abc import Iterator
from typing import Final

from webhook import PROGRAM
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts
from webhook.installation.doctor.unread import Unread
from webhook.policy import store

POLICY_BROKEN: Final = DiagnosisKind("policy-broken", Severity.PROBLEM)
POLICY_UNLABELLED: Final = DiagnosisKind("policy-unlabelled", Severity.WARNING)
POLICY_MISPLACED: Final = DiagnosisKind("policy-misplaced", Severity.WARNING)
POLICY_ELSEWHERE: Final = DiagnosisKind("policy-elsewhere", Severity.WARNING)


def policies(facts: Facts) -> Iterator[Diagnosis]:
    if isinstance(facts.policies, Unread):
        yield not_known("the policies", facts.policies.reason)
        return
    namespace = facts.location.namespace
    for name, (state, error) in facts.policies.broken.items():
        instead = "its last good document is in force"
        if state != "last-good":
            instead = "it has no effect, and replicas that start do not become ready"
        yield POLICY_BROKEN(
            f'policy "{name}" is broken, {instead}: {"; ".join(error.splitlines())}',
            fix=f"kubectl -n {namespace} get configmap {name} -o yaml | {PROGRAM} policy validate -",
        )
    for name in facts.policies.unlabelled:
        yield POLICY_UNLABELLED(
            f'ConfigMap "{name}" has a policy without effect: it has no label {store.LABEL}: "true"',
            fix=f"kubectl -n {namespace} label configmap {name} --overwrite {store.LABEL}=true; before, check the "
            f"effect: kubectl -n {namespace} get configmap {name} -o yaml | {PROGRAM} policy replay --policy -",
        )
    for name, key in facts.policies.misplaced.items():
        yield POLICY_MISPLACED(
            f'ConfigMap "{name}" has a policy under {key} without effect: it needs the key '
            f'{store.KEY} and the label {store.LABEL}: "true"',
            fix=f"apply it again with both; {PROGRAM} policy validate FILE checks them",
        )
    if isinstance(facts.policies.elsewhere, Unread):
        yield not_known("whether there are policies in other namespaces", facts.policies.elsewhere.reason)
        return
    for place, name in facts.policies.elsewhere:
        yield POLICY_ELSEWHERE(
            f'policy "{name}" in namespace {place} has no effect: the service reads only policies in {namespace}',
            fix=f"apply it with -n {namespace}; to apply it only to jobs of {place}, use `namespaces` in the document. "
            f"Then kubectl -n {place} delete configmap {name}",
        )
    yield ok(f"{facts.policies.count} in force" if facts.policies.count else "none: the built-in defaults apply")
