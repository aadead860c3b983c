"""Whether our mutating hook comes before Kueue's, which must see the queue that we inject.

The API server calls configurations in the order of their names (kubernetes/apiserver,
`pkg/admission/configuration/mutating_webhook_manager.go`).
"""

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.client.objects import KubernetesObject
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, not_known, ok
from webhook.installation.doctor.facts import KUEUE_HOOK, Facts, configuration, hooks
from webhook.installation.doctor.unread import Unread

CONFIGURATION_ORDER: Final = DiagnosisKind("configuration-order", Severity.PROBLEM)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Compare the names of the configurations."""
    if isinstance(facts.mutating, Unread):
        yield not_known("the order of the webhooks", facts.mutating.reason)
        return
    yield from after_kueue(facts.mutating)
    names = [f"before {name}" for name, _ in _kueue(facts.mutating)]
    yield ok(f"called {' and '.join(names)}" if names else "no Kueue to come before")


def after_kueue(mutating: Sequence[KubernetesObject]) -> Iterator[Diagnosis]:
    """Kueue's hook is called before ours; fine if it is called again after ours."""
    ours = configuration(mutating)
    if ours is None:
        return
    for name, policy in _kueue(mutating):
        if ours["metadata"]["name"] > name and policy != "IfNeeded":
            yield CONFIGURATION_ORDER(
                f"{ours['metadata']['name']} is called after {name}: Kueue does not see the queue that is injected",
                fix="install the configuration under the name of the manifests, or set Kueue's Helm value "
                "mutatingWebhook.reinvocationPolicy to IfNeeded",
            )


def _kueue(mutating: Sequence[KubernetesObject]) -> Iterator[tuple[str, str]]:
    """(configuration, reinvocationPolicy) of Kueue's hook for MPIJobs."""
    for found in mutating:
        for hook in hooks(found):
            if hook["name"] == KUEUE_HOOK:
                yield found["metadata"]["name"], hook.get("reinvocationPolicy") or "Never"
