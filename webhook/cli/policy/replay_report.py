"""What would become of the jobs in a cluster under other policies."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from webhook.admission.replay import NEWLY, NO_LONGER, OTHERWISE, Replay, Replayer
from webhook.cli.limits import MAX_NAMES_ON_LINE
from webhook.cli.policy.cluster import ClusterPolicies
from webhook.cli.terminal import bad, counted, good, heading, printable
from webhook.policy.in_force import PolicySet
from webhook.policy.layers import Layer


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What other policies would mean for the jobs that exist."""

    origin: str
    """Where the policies in force come from."""
    before: Sequence[Layer]
    """The policies in force."""
    after: Sequence[Layer]
    """Those that would be."""
    result: Replay

    @property
    def now_in_words(self) -> str:
        """The policies in force."""
        return f"{_listed(self.before)} ({self.origin})"

    @property
    def then_in_words(self) -> str:
        """Those that would be, and which of them are new or changed."""
        return ", ".join(self._then()) or "the built-in defaults"

    @property
    def gone(self) -> list[str]:
        """The policies that would not be there any more."""
        kept = {layer.name for layer in self.after}
        return [layer.name for layer in self.before if layer.name not in kept]

    @property
    def safe(self) -> bool:
        """Whether nothing would be newly denied."""
        return not self.result.newly_denied

    def as_text(self) -> Iterator[str]:
        """For people, in lines."""
        yield printable(f"now:  {self.now_in_words}")
        yield printable(f"then: {self.then_in_words}")
        if self.gone:
            yield printable(f"gone: {', '.join(self.gone)}")
        yield ""
        if self.result.newly_denied:
            yield heading("would newly be denied")
            for name, rules in sorted(self.result.newly_denied.items()):
                yield f"  {printable(name)}: {bad(', '.join(rules))}"
            yield ""
        if self.result.newly_admitted:
            yield heading("would newly be admitted")
            yield from (f"  {good(printable(name))}" for name in sorted(self.result.newly_admitted))
            yield ""
        if self.result.injections:
            yield heading("would be injected")
            for injection, changes in sorted(self.result.injections.items()):
                for how, jobs in changes.items():
                    yield f"  {injection} {how} into {counted(len(jobs), 'job')}: {printable(_some(jobs))}"
            yield ""
        yield printable(self.result.summary())
        if line := self.result.injections_summary():
            yield line

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {
            "before": [layer.name for layer in self.before],
            "after": [layer.name for layer in self.after],
            "jobs": self.result.total,
            "hits": [
                {
                    "action": str(action),
                    "rule": rule,
                    "namespace": namespace,
                    "new": sorted(hit.new),
                    "gone": sorted(hit.gone),
                    "asNow": len(hit.stays),
                }
                for (action, rule, namespace), hit in sorted(self.result.hits.items())
            ],
            "newlyDenied": dict(sorted(self.result.newly_denied.items())),
            "newlyAdmitted": sorted(self.result.newly_admitted),
            "injections": {
                injection: {_CAMEL[how]: sorted(jobs) for how, jobs in changes.items()}
                for injection, changes in sorted(self.result.injections.items())
            },
            "summary": self.result.summary(),
            "injectionsSummary": self.result.injections_summary(),
        }

    def _then(self) -> Iterator[str]:
        before = {layer.name: _content(layer) for layer in self.before}
        for layer in self.after:
            if layer.name not in before:
                yield f"{layer.name} (new)"
            else:
                yield layer.name if _content(layer) == before[layer.name] else f"{layer.name} (changed)"


_CAMEL: Final = {NEWLY: "newly", NO_LONGER: "noLonger", OTHERWISE: "otherwise"}


def _some(jobs: Sequence[str]) -> str:
    more = f", ... and {len(jobs) - MAX_NAMES_ON_LINE:,} more" if len(jobs) > MAX_NAMES_ON_LINE else ""
    return ", ".join(sorted(jobs)[:MAX_NAMES_ON_LINE]) + more


def replay(cluster: ClusterPolicies, jobs: Iterable[bytes], after: Sequence[Layer], *, today: date) -> ReplayReport:
    """Judge these jobs of `cluster` under its policies, and under `after`."""
    replayer = Replayer(before=PolicySet(cluster.layers), after=PolicySet(after), view=cluster.view, today=today)
    replayer.add(jobs)
    return ReplayReport(cluster.origin, cluster.layers, after, replayer.result)


def _listed(found: Sequence[Layer]) -> str:
    return ", ".join(layer.name for layer in found) or "the built-in defaults"


def _content(layer: Layer) -> dict[str, Any]:
    """What its author wrote: a value that is set to its default still wins over documents of lower priority."""
    return layer.document.model_dump(exclude_unset=True)
