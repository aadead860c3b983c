"""The policy ConfigMaps."""

from collections.abc import Iterator
from typing import Final

from webhook import PROGRAM
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import Facts
from webhook.installation.doctor.unread import Unread

POLICY_BROKEN: Final = DiagnosisKind("policy-broken", Severity.PROBLEM)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say which policies are broken, and what is in force of them."""
    if isinstance(facts.policies, Unread):
        yield not_known("the policies", facts.policies.reason)
        return
    namespace = facts.location.namespace
    for name, (state, error) in facts.policies.broken.items():
        instead = "its last good document is" if state == "last-good" else "nothing of it is"
        yield POLICY_BROKEN(
            f'policy "{name}" is broken, {instead} in force: {"; ".join(error.splitlines())}',
            fix=f"kubectl -n {namespace} get configmap {name} -o yaml | {PROGRAM} policy validate -",
        )
    yield ok(f"{facts.policies.count} in force" if facts.policies.count else "none: the built-in defaults hold")
