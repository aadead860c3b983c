"""What the service looks at by itself when it starts: what no request shows, and everybody would search for long."""

from collections.abc import Sequence

from webhook.doctor.checks.order import after_kueue
from webhook.doctor.checks.secret_hook import unguarded
from webhook.doctor.facts import Document
from webhook.doctor.finding import Finding


def concerns(mutating: Sequence[Document]) -> tuple[Finding, ...]:
    """What is wrong with the MutatingWebhookConfigurations of a cluster: ours, and as far as readable Kueue's."""
    return (*unguarded(mutating), *after_kueue(mutating))
