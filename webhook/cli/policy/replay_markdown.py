"""The report of a replay in Markdown: who would be hit, by rule and namespace, for an issue or a pull request."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from webhook.admission.replay import Hit
from webhook.cli.limits import MAX_NAMES_IN_ROW
from webhook.cli.terminal import printable
from webhook.kit.settings import Action

if TYPE_CHECKING:
    from webhook.cli.policy.replay_report import ReplayReport

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>|#])")
_TITLES: Final = {Action.DENY: "Refused", Action.WARN: "Warned about"}


def lines(report: "ReplayReport") -> Iterator[str]:
    """The report."""
    result = report.result
    yield "# What other policies would mean for jobs"
    yield ""
    yield f"- now: {_plain(report.now_in_words)}"
    yield f"- then: {_plain(report.then_in_words)}"
    for gone in report.gone:
        yield f"- gone: {_plain(gone)}"
    yield ""
    yield f"**{_plain(result.summary())}**"
    for action, title in _TITLES.items():
        hits = [(rule, namespace, hit) for (of, rule, namespace), hit in result.hits.items() if of is action]
        if not hits:
            continue
        yield from ("", f"## {title}, by rule and namespace", "")
        yield from _table(("Rule", "Namespace", "New", "Gone", "As now", "Jobs newly hit"), _rows(hits))
    if line := result.injections_summary():
        yield from ("", "## Injected", "", f"{_plain(line)}.")


def _rows(hits: Iterable[tuple[str, str, Hit]]) -> Iterator[tuple[str, ...]]:
    """The most new ones first."""
    for rule, namespace, hit in sorted(hits, key=lambda each: (-len(each[2].new), -len(each[2].gone), each[:2])):
        names = sorted(job.removeprefix(f"{namespace}/") for job in hit.new)
        more = f", and {len(names) - MAX_NAMES_IN_ROW:,} more" if len(names) > MAX_NAMES_IN_ROW else ""
        counts = (f"{len(jobs):,}" for jobs in (hit.new, hit.gone, hit.stays))
        yield (rule, _plain(namespace), *counts, _plain(", ".join(names[:MAX_NAMES_IN_ROW])) + more)


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---", "---", "---:", "---:", "---:", "---"), *rows):
        yield f"| {' | '.join(row)} |"


def _plain(text: str) -> str:
    """Text with Markdown escaped: users choose the names."""
    return _SPECIAL.sub(r"\\\1", printable(text))
