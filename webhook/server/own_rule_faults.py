"""Own rules of policies that could not be evaluated, for the administrator: in the log once each, and in `/readyz`."""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from webhook.server.limits import MAX_RULES_WITH_FAULTS
from webhook.server.metric_set import MetricSet

# What is quoted may be a value out of a job.
_QUOTED: Final = re.compile(r""""[^"]*"|'[^']*'""")


class OwnRuleFaults:
    """The last fault of each rule, since the policies changed."""

    def __init__(self, log: Any, metrics: MetricSet) -> None:
        self._log = log
        self._metrics = metrics
        self._faults: dict[str, str] = {}

    def note(self, faults: Mapping[str, str]) -> None:
        """What came of a review."""
        for rule, fault in faults.items():
            self._metrics.add("own_rule_faults_total", rule)
            told = _QUOTED.sub("...", fault)
            if self._faults.get(rule) != told and (rule in self._faults or len(self._faults) < MAX_RULES_WITH_FAULTS):
                self._faults[rule] = told
                self._log.warning("own rule not evaluated", rule=rule, fault=told)

    def follow(self, rules: Iterable[str]) -> None:
        """Other policies are in force, with these own rules."""
        self._faults.clear()
        for rule in rules:
            self._metrics.add("own_rule_faults_total", rule, amount=0)

    def concerns(self) -> dict[str, str]:
        """For `/readyz`: reviews are answered all the same."""
        return {
            f"own-rule-{rule}": f"the policy's rule {rule} could not be evaluated: {fault}"
            for rule, fault in self._faults.items()
        }
