"""What the user reads of values of the Namespace that cannot be used: the default holds, which may surprise him.

Only when a job is created: an update of a running one changes nothing about it.
"""

from webhook.admission.decision import Decision
from webhook.admission.messages import Finding
from webhook.injections import Caution
from webhook.kit.context import Context
from webhook.kit.settings import Action
from webhook.policy.in_force import Policy
from webhook.policy.parameters import FIX
from webhook.rules import Violation


def warn_of_rules(decision: Decision, policy: Policy, ctx: Context) -> None:
    """Add a finding for each value that a rule was to have."""
    if ctx.operation == "CREATE":
        for wrong in policy.wrong:
            if wrong.asked.section == "rules":
                violation = Violation("metadata.namespace", wrong.message, fix=FIX, advisory=True)
                decision.add(Finding(wrong.asked.entry, violation), Action.WARN.at_most(policy.document.ceiling))


def warn_of_injections(decision: Decision, policy: Policy) -> None:
    """Add a caution for each value that an injection was to have."""
    for wrong in policy.wrong:
        if wrong.asked.section == "injections":
            caution = Caution(f"metadata.namespace: {wrong.message}. {FIX}")
            decision.told.setdefault(wrong.asked.entry, []).append(caution)
