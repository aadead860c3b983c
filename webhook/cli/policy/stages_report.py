"""What policies enforce by and by, and the namespaces in which that is so."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from webhook.cli.terminal import printable
from webhook.cluster.resources.namespaces import Namespace
from webhook.policy import layers
from webhook.policy.in_force import stages_of
from webhook.policy.layers import Layer
from webhook.policy.staging import Stage


@dataclass(frozen=True, slots=True)
class StageReport:
    """A stage, and where it has come to its end or will."""

    stage: Stage
    come: bool
    """Whether its day has come."""
    selected: Sequence[str] | None
    """The namespaces that the policy is for; None where they are not known."""

    @property
    def drawn(self) -> list[str]:
        """Those of them that are in the share."""
        return [name for name in self.selected or () if self.stage.includes(name)]

    def as_text(self) -> str:
        """For people, on a line."""
        stage = self.stage
        whom = "the mode" if stage.rules is None else ", ".join(sorted(stage.rules))
        when = f" {'since' if self.come else 'from'} {stage.written}" if stage.written else ""
        where = ""
        if self.selected is not None:
            where = f" in {len(self.drawn)} of {len(self.selected)} namespaces"
        share = f" ({stage.share} %)" if stage.share is not None else ""
        return printable(f"{stage.policy}: {whom}: enforced{when}{where}{share}, {stage.until} before and elsewhere")

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "policy": self.stage.policy,
            "rules": None if self.stage.rules is None else sorted(self.stage.rules),
            "until": str(self.stage.until),
            "enforceFrom": self.stage.written or None,
            "enforceShare": self.stage.share,
            "hasCome": self.come,
            "namespaces": None if self.selected is None else len(self.selected),
            "enforced": None if self.selected is None else self.drawn,
        }


def report(found: Sequence[Layer], namespaces: Sequence[Namespace] | None, *, now: datetime) -> list[StageReport]:
    """The stages of these policies at a moment, in the order in which policies are laid over each other."""
    reports = []
    for layer in layers.in_order(found):
        selected = None
        if namespaces is not None:
            selected = sorted(each.name for each in namespaces if layer.selects(each.labels))
        reports += [StageReport(stage, stage.has_come(now), selected) for stage in stages_of(layer)]
    return reports
