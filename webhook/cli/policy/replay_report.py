"""The report on the jobs of a cluster under changed policies."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from webhook.admission.what_if.replay import NEWLY, NO_LONGER, OTHERWISE, Replay, Replayer
from webhook.cli.job_world import JobWorld
from webhook.cli.limits import MAX_NAMES_ON_LINE
from webhook.cli.terminal import bad, counted, good, heading, printable
from webhook.policy.in_force import PolicySet
from webhook.policy.layers import Layer


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The effect of changed policies on existing jobs."""

    origin: str
    before: Sequence[Layer]
    after: Sequence[Layer]
    result: Replay

    @property
    def policies(self) -> dict[str, str]:
        """The names of the policies before and after the change, and of removed policies."""
        before = {layer.name: _content(layer) for layer in self.before}
        after = {layer.name: _content(layer) for layer in self.after}
        marks = {name: " (new)" if name not in before else " (changed)" for name in after}
        then = [name if before.get(name) == content else f"{name}{marks[name]}" for name, content in after.items()]
        gone = ", ".join(name for name in before if name not in after)
        now = f"{', '.join(before) or BUILT_IN} ({self.origin})"
        return {"now": now, "then": ", ".join(then) or BUILT_IN} | ({"gone": gone} if gone else {})

    @property
    def safe(self) -> bool:
        return not self.result.newly_denied

    def as_text(self) -> Iterator[str]:
        yield from (printable(f"{when + ':':6}{names}") for when, names in self.policies.items())
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
            yield heading("changed injections")
            for injection, changes in sorted(self.result.injections.items()):
                for how, jobs in changes.items():
                    yield f"  {injection} {how} into {counted(len(jobs), 'job')}: {printable(_some(jobs))}"
            yield ""
        yield printable(self.result.summary())
        if line := self.result.injections_summary():
            yield line

    def as_json(self) -> dict[str, Any]:
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


BUILT_IN: Final = "the built-in defaults"
_CAMEL: Final = {NEWLY: "newly", NO_LONGER: "noLonger", OTHERWISE: "otherwise"}


def _some(jobs: Sequence[str]) -> str:
    more = f", ... and {len(jobs) - MAX_NAMES_ON_LINE:,} more" if len(jobs) > MAX_NAMES_ON_LINE else ""
    return ", ".join(sorted(jobs)[:MAX_NAMES_ON_LINE]) + more


def replay(world: JobWorld, jobs: Iterable[bytes], after: Sequence[Layer], *, today: date) -> ReplayReport:
    replayer = Replayer(before=PolicySet(world.layers), after=PolicySet(after), view=world.cluster, today=today)
    replayer.add(jobs)
    return ReplayReport(world.origin, world.layers, after, replayer.result)


def _content(layer: Layer) -> dict[str, Any]:
    """The fields that the document sets. A field with its default value also overrides policies of lower priority."""
    return layer.document.model_dump(exclude_unset=True)
