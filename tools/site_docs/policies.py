"""Writes a page for each ready-made policy: its section of docs/policies.md, its tests, and its file."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tools.site_docs.sources import ROOT
from webhook.api import yaml
from webhook.cli.policy import suite_run
from webhook.cli.policy.suite import PolicyTest, Suite, load
from webhook.cli.policy.suite_document import Case
from webhook.policy.in_force import PolicySet
from webhook.rules import Violation

FOLDER: Final = "manifests/policies"
NAMES: Final = sorted({path.stem for path in (ROOT / FOLDER).glob("*.yaml")} - {"kustomization"})
_PROSE: Final = ROOT / "docs" / "policies.md"


def pages() -> Iterator[tuple[str, str]]:
    """(path, text) of each page. Links are relative to the path, as if the page were in the repository."""
    yield from ((f"docs/policies/{name}.md", _page(name)) for name in NAMES)


def _page(name: str) -> str:
    title, prose = _prose(name)
    suites = _suites(name)
    tests = " and ".join(f"[{file}](../../{file})" for file in map(_file, suites))
    about = f"Each case is a test of {tests}: its changes to a job, and the result."
    met = "\n".join(part for suite in suites for test in suite.tests for part in _case(suite, test))
    file = (ROOT / FOLDER / f"{name}.yaml").read_text(encoding="utf-8")
    return f"# {title}\n\n{prose}\n\n## What jobs meet\n\n{about}\n\n{met}\n## The file\n\n```yaml\n{file}```\n"


def _prose(name: str) -> tuple[str, str]:
    """The title and text of the policy's section in docs/policies.md, with links for a page in a subfolder."""
    for section in _PROSE.read_text(encoding="utf-8").split("\n### ")[1:]:
        title, _, text = section.partition("\n\n")
        text = text.partition("\n## ")[0].strip()
        if f"(../{FOLDER}/{name}.yaml)" in text.partition("\n\n")[0]:
            return title, re.sub(r"\]\((?!https?:|#)", "](../", text)
    raise ValueError(f"no section of {_PROSE.name} is about {name}.yaml")


def _file(suite: Suite) -> str:
    return Path(suite.file).relative_to(ROOT).as_posix()


def _suites(name: str) -> list[Suite]:
    return [suite for suite in load([str(ROOT / FOLDER / "tests")]).suites if name in _tested(suite)]


def _tested(suite: Suite) -> set[str]:
    """The policies that a suite tests. A suite that has the name of a policy tests this policy alone."""
    stem = Path(suite.file).stem
    return {stem} if stem in NAMES else {Path(path).stem for path in suite.document.policies}


def _case(suite: Suite, test: PolicyTest) -> Iterator[str]:
    case = test.case
    verdict = suite_run.judged(suite.document, test, PolicySet(suite.policies))
    decided = verdict.validation
    counted = suite.document.rules
    messages: dict[str, list[Violation]] = {}
    for how, findings in (("Refused", decided.denied), ("Warned", decided.warned), ("Audited", decided.audited)):
        for finding in findings:
            if counted is None or finding.rule in counted:
                messages.setdefault(how, []).append(finding.violation)
    yield f"### {case.name[:1].upper()}{case.name[1:]}\n"
    yield _written(suite, case)
    for how, violations in messages.items():
        yield f"{how}:\n"
        for violation in violations:
            yield f"```text\n{violation.path}: {violation.message}\n```\n"
            yield f"**What to do:** {violation.fix or 'nothing can be said in general.'}\n"
    for caution in verdict.mutation.cautions:
        yield f"Warned:\n\n```text\n{caution}\n```\n"
    if not messages and not verdict.mutation.cautions:
        yield "Admitted.\n"
    if case.stored:
        yield f"Stored as:\n\n{_block(case.stored, absent='(not there)')}"


def _written(suite: Suite, case: Case) -> str:
    where = case.namespace or suite.document.namespace
    marks = {**where.labels, **where.annotations} if where else {}
    place = (
        f"In a namespace with {', '.join(f'`{key}: {value}`' for key, value in marks.items())}:\n\n" if marks else ""
    )
    return place + (_block(case.change, absent="(removed)") if case.change else "The job as it is.\n")


def _block(fields: dict[str, Any], *, absent: str) -> str:
    shown = {path: absent if value is None else value for path, value in fields.items()}
    return f"```yaml\n{yaml.dump(shown)}```\n"
