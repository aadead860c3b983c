"""What a panel is, and the shapes of queries. Grafana fills in `$namespace`, `$__rate_interval` and `$__range`."""

from dataclasses import dataclass
from typing import Final, Literal

from webhook.kit.importance import Importance
from webhook.rules import REGISTRY


@dataclass(frozen=True)
class Query:
    expr: str
    legend: str
    empty: str = ""
    """Why it has no answer in a healthy cluster."""


@dataclass(frozen=True)
class Panel:
    title: str
    text: str
    queries: tuple[Query, ...]
    unit: str = "short"
    kind: Literal["lines", "stacked", "bars"] = "lines"


@dataclass(frozen=True)
class Row:
    title: str
    panels: tuple[Panel, ...]


P: Final = "mpijob_webhook_"
J: Final = "training_operator_mpijob_"
IN: Final = 'namespace=~"$namespace"'
# A team may have jobs of which no replica that runs has judged one, or refusals and no job.
NAMESPACES: Final = (
    f'{{__name__=~"{P}(namespace_reviews_total|audit_jobs)|{J}(created_total|deadline_remaining_seconds)"}}'
)
REFUSED: Final = f'action="deny",{IN}'
HOOK: Final = 'name=~".*[.]mpijob[.]training[.]openshift[.]io"'
CERTAIN: Final = "|".join(rule.id for rule in REGISTRY.values() if rule.importance is Importance.FAILS)


def each(metric: str, by: str, where: str = "", *, minutes: bool = True) -> str:
    """How many there are in a minute, or in a second."""
    selected = f"{metric}{{{where}}}".replace("{}", "")
    return f"{'60 * ' if minutes else ''}sum by ({by}) (rate({selected}[$__rate_interval]))"


def in_all(metric: str, by: str, where: str = "") -> str:
    """How many there were in the time that is looked at.

    `increase` would not see the first of a series that was not there before, and of what is rare that is much. Only it
    sees what was counted before a process was started again in its pod.
    """
    selected = f"{metric}{{{where}}}".replace("{}", "")
    most = f"max_over_time({selected}[$__range])"
    again = f"increase({selected}[$__range]) and resets({selected}[$__range]) > 0"
    return f"sum by ({by}) ({again} or {most} - ({selected} offset $__range or {most} * 0))".replace("by () ", "")


def quantile(part: float, metric: str, by: str, where: str = "", *, of: str = "sum") -> str:
    selected = f"{metric}_bucket{{{where}}}".replace("{}", "")
    return f"histogram_quantile({part}, {of} by ({by}, le) (rate({selected}[$__rate_interval])))"


def filled(expr: str, window: str) -> str:
    """As Grafana would ask it for all namespaces, with this for its intervals."""
    for name, value in (("$namespace", ".*"), ("$__rate_interval", window), ("$__range", window)):
        expr = expr.replace(name, value)
    return expr
