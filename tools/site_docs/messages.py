"""The messages of the rules about the tests' bad jobs."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from tests.support.bad_jobs.breaks import BREAKS
from tests.support.bad_jobs.cases import Cause, cases, causes
from tests.support.jobs import REMOVE
from webhook.api import yaml

# A message that more mistakes cause comes from the unchanged job. Such a message is shown without a mistake.
MAX_MISTAKES = 3
MAX_SHOWN_CHARACTERS = 2_000
SHOWN_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class Message:
    cause: Cause
    mistake: str
    """The description of the mistake. Empty if more than MAX_MISTAKES mistakes cause the message."""

    def as_markdown(self) -> str:
        text = f"```text\n{self.cause.path}: {self.cause.message}\n```\n\n"
        return f"{text}**What to do:** {self.cause.fix or 'nothing can be said in general.'}\n"


@cache
def messages() -> dict[str, list[Message]]:
    by_kind: dict[tuple[str, str, str], dict[str, Cause]] = {}
    for case in cases():
        for cause in causes(case):
            by_kind.setdefault(cause.kind, {}).setdefault(case.mistake, cause)
    by_rule: dict[str, list[Message]] = {}
    for by_mistake in by_kind.values():
        mistake, cause = next(iter(by_mistake.items()))
        by_rule.setdefault(cause.rule, []).append(Message(cause, mistake if len(by_mistake) <= MAX_MISTAKES else ""))
    return by_rule


def examples(rule: str) -> Iterator[str]:
    by_mistake: dict[str, list[Message]] = {}
    for message in messages().get(rule, []):
        by_mistake.setdefault(message.mistake, []).append(message)
    for mistake, shown in by_mistake.items():
        changes = BREAKS.get(mistake, {})
        yaml_changes = {path: "(removed)" if value is REMOVE else _cut(value) for path, value in changes.items()}
        yield f"### {mistake[:1].upper()}{mistake[1:]}\n" if mistake else "### Other messages\n"
        if yaml_changes:
            yield f"```yaml\n{yaml.dump(yaml_changes)}```\n"
        yield "\nOr, with another policy, cluster or job:\n\n".join(message.as_markdown() for message in shown)


def _cut(value: object) -> object:
    text = str(value)
    return f"{text[:SHOWN_CHARACTERS]} ... ({len(text):,} characters)" if len(text) > MAX_SHOWN_CHARACTERS else value


def catalogue() -> Iterator[str]:
    yield "# What the rules say\n"
    yield "One message of each kind from real rejections and warnings. The page of each rule shows the mistakes.\n"
    for rule, of_rule in sorted(messages().items()):
        yield f"\n## {rule}\n\nThe rule [{rule}](rules/{rule}.md).\n\n| Message | What to do |\n| --- | --- |"
        for cause in (message.cause for message in of_rule):
            yield f"| {_path(cause)}: {_cell(cause.message)} | {_cell(cause.fix)} |"


def _path(cause: Cause) -> str:
    """The field's path with optional line breaks for narrow screens."""
    return re.sub(r"(?=\.|\\\[)", "<wbr>", _cell(cause.path))


def _cell(text: str) -> str:
    escaped = re.sub(r"([\\`*_{}\[\]<>|#$~])", r"\\\1", text)
    return escaped.replace("\n", " ")
