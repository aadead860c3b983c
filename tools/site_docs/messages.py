"""Real messages of the rules about bad jobs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.support.bad_jobs.breaks import BREAKS
from tests.support.bad_jobs.cases import Cause, cases, causes
from tests.support.jobs import REMOVE
from webhook.api import yaml

# If more mistakes than this cause the same message, it is shown without a mistake: the unchanged job already causes it.
FEW = 3
MAX_SHOWN_CHARACTERS = 2_000
SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Message:
    said: Cause
    mistake: str
    """The description of the mistake; empty if more than FEW mistakes cause the message."""

    def as_markdown(self) -> str:
        told = f"```text\n{self.said.path}: {self.said.message}\n```\n\n"
        return f"{told}**What to do:** {self.said.fix or 'nothing can be said in general.'}\n"


@cache
def messages() -> dict[str, list[Message]]:
    """The messages by rule, one of each kind."""
    found: dict[tuple[str, str, str], dict[str, Cause]] = {}
    for case in cases():
        for cause in causes(case):
            found.setdefault(cause.kind, {}).setdefault(case.mistake, cause)
    by_rule: dict[str, list[Message]] = {}
    for said in found.values():
        mistake, cause = next(iter(said.items()))
        by_rule.setdefault(cause.rule, []).append(Message(cause, mistake if len(said) <= FEW else ""))
    return by_rule


def examples(rule: str) -> Iterator[str]:
    """Each mistake with all messages of the rule, which may differ between jobs."""
    by_mistake: dict[str, list[Message]] = {}
    for each in messages().get(rule, []):
        by_mistake.setdefault(each.mistake, []).append(each)
    for mistake, shown in by_mistake.items():
        changes = BREAKS.get(mistake, {})
        yaml_changes = {path: "(removed)" if value is REMOVE else _cut(value) for path, value in changes.items()}
        yield f"### {mistake[:1].upper()}{mistake[1:]}\n" if mistake else "### Besides\n"
        if yaml_changes:
            yield f"```yaml\n{yaml.dump(yaml_changes)}```\n"
        yield "\nOr, with another policy, cluster or job:\n\n".join(each.as_markdown() for each in shown)


def _cut(value: object) -> object:
    """The value; a long text is cut."""
    text = str(value)
    return f"{text[:SHOWN_CHARACTERS]} ... ({len(text):,} characters)" if len(text) > MAX_SHOWN_CHARACTERS else value


def catalogue() -> Iterator[str]:
    """The lines of the page with all messages."""
    yield "# What the rules say\n"
    yield "One message of each kind from real rejections and warnings. The page of each rule shows the mistakes.\n"
    for rule, told in sorted(messages().items()):
        yield f"\n## {rule}\n\nThe rule [{rule}](rules/{rule}.md).\n\n| Message | What to do |\n| --- | --- |"
        yield from (f"| {_path(each)}: {_cell(each.said.message)} | {_cell(each.said.fix)} |" for each in told)


def _path(message: Message) -> str:
    """The field's path with optional line breaks for narrow screens."""
    return re.sub(r"(?=\.|\\\[)", "<wbr>", _cell(message.said.path))


def _cell(text: str) -> str:
    escaped = re.sub(r"([\\`*_{}\[\]<>|#$~])", r"\\\1", text)
    return escaped.replace("\n", " ")
