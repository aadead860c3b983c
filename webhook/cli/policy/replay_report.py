"""What would become of the jobs in a cluster under other policies."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from webhook.admission.replay import NEWLY, NO_LONGER, OTHERWISE, Replay, Replayer
from webhook.cli.policy.cluster import ClusterPolicies
from webhook.cli.policy.records import Records
from webhook.cli.progress import counted_off
from webhook.cli.terminal import bad, caution, counted, good, heading, printable
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
    notes: Sequence[str] = ()
    """What else has to be known to understand the outcome."""
    on: str = ""
    """The day on which they would be judged; empty for now."""

    @property
    def now_in_words(self) -> str:
        """The policies in force."""
        return f"{_listed(self.before)} ({self.origin})"

    @property
    def then_in_words(self) -> str:
        """Those that would be, and which of them are new or changed."""
        return (", ".join(self._then()) or "the built-in defaults") + (f", on {self.on}" if self.on else "")

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
        yield from (f"{caution('note')}: {printable(note)}" for note in self.notes)
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
        if self.result.not_reproduced:
            yield heading("judged otherwise now, by the policies that decided it then")
            for job, how in sorted(self.result.not_reproduced.items()):
                yield f"  {printable(f'{job}: {how}')}"
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
            "notes": list(self.notes),
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
            "notReproduced": dict(sorted(self.result.not_reproduced.items())),
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
MOST: Final = 10
"""Names of jobs on a line."""


def _some(jobs: Sequence[str]) -> str:
    more = f", ... and {len(jobs) - MOST:,} more" if len(jobs) > MOST else ""
    return ", ".join(sorted(jobs)[:MOST]) + more


def replay(
    cluster: ClusterPolicies,
    after: Sequence[Layer],
    *,
    now: datetime,
    on: datetime | None = None,
    records: Records | None = None,
) -> ReplayReport:
    """Judge every job of `cluster`, or every review of `records`, under its policies now, and under `after` at `on`."""
    replayer = Replayer(
        before=PolicySet(cluster.layers).at(now),
        after=PolicySet(after).at(on or now),
        view=cluster.view,
        today=now.date(),
    )
    notes = []
    if records is None:
        for job in counted_off(cluster.jobs, "jobs", len(cluster.jobs)):
            replayer.add([job])
    else:
        for review in counted_off(records, "reviews"):
            replayer.add_recorded([review])
        notes.append(records.coverage)
        if count := replayer.result.by_other_policies:
            notes.append(f"{counted(count, 'review')} decided by other policies than those in force cannot be compared")
    shown = f"{on:%Y-%m-%dT%H:%M:%SZ}" if on is not None else ""
    return ReplayReport(cluster.origin, cluster.layers, after, replayer.result, notes, shown)


def _listed(found: Sequence[Layer]) -> str:
    return ", ".join(layer.name for layer in found) or "the built-in defaults"


def _content(layer: Layer) -> dict[str, Any]:
    """What its author wrote: a value that is set to its default still wins over documents of lower priority."""
    return layer.document.model_dump(exclude_unset=True)
