"""The outcomes of the jobs in tests/corpus, and the page about them. `python -m tests.support.corpus` writes both.

The name of a job's folder is the job's subject. NAME.outcome has the verdicts and the injected values for the job in
NAME.yaml: without a cluster, and in each namespace of tests/corpus/cluster.yaml.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from tests.support.paths import DOCS, ROOT
from webhook.api import crd_schema, yaml
from webhook.cli import files, job_check
from webhook.cli.job_verdict import Verdict
from webhook.cli.job_world import JobWorld
from webhook.cluster.snapshot import Snapshot
from webhook.policy.in_force import PolicySet

CORPUS: Final = ROOT / "tests" / "corpus"
PAGE: Final = DOCS / "reference" / "real-jobs.md"
COMMAND: Final = "make corpus"
SCHEMA: Final = crd_schema.packaged()


@dataclass(frozen=True, slots=True)
class Setting:
    title: str
    cluster: str = ""
    """A file in tests/corpus, or an empty text if there is no cluster."""
    namespace: str = "default"
    policy: str = ""
    """A file in tests/corpus, or an empty text for the built-in policy."""


SETTINGS: Final = (
    Setting("nothing known"),
    Setting("open", "cluster.yaml", "open"),
    Setting("queued", "cluster.yaml", "queued"),
    Setting("restricted", "cluster.yaml", "restricted"),
    Setting("quota", "cluster.yaml", "quota"),
    Setting("openshift", "cluster.yaml", "openshift"),
    Setting("policy", "cluster.yaml", "queued", policy="policy.yaml"),
)


@dataclass(frozen=True, slots=True)
class Job:
    path: Path
    manifest: files.Manifest = field(repr=False)
    verdicts: Mapping[str, Verdict] = field(repr=False)
    """The decisions by title of the setting."""

    @property
    def subject(self) -> str:
        return self.path.parent.name

    @property
    def comment(self) -> str:
        """The comment at the top of the job's file."""
        lines = self.path.read_text(encoding="utf-8").splitlines()
        return " ".join(line.removeprefix("# ") for line in lines[: lines.index("apiVersion: kubeflow.org/v2beta1")])

    @property
    def golden(self) -> Path:
        return self.path.with_suffix(".outcome")

    def outcome(self) -> str:
        lines = [f"# Outcomes for {self.path.name}. Written by `{COMMAND}`: changes here are lost."]
        shown: dict[tuple[str, str], str] = {}
        for title, verdict in self.verdicts.items():
            lines += ["", f"{title}: {'admitted' if verdict.allowed else 'rejected'}"]
            for cause in verdict.as_json()["causes"]:
                lines.append(f"  rejected: {cause['field']}: {cause['message']} [{cause['rule']}]")
            lines += [f"  warning: {warning}" for warning in verdict.warnings]
            for author, added in _injected(verdict).items():
                text = "".join(f"\n    {place}: {value}" for place, value in added)
                before = shown.setdefault((author, text), title)
                lines.append(f"  {author}:{text}" if before == title else f"  {author}: as in {before!r}")
        return "\n".join(lines) + "\n"


@cache
def jobs() -> tuple[Job, ...]:
    """Every job of the corpus, sorted by path."""
    return tuple(_job(path) for path in sorted(CORPUS.glob("*/*.yaml")))


def page() -> str:
    """The page about the corpus: tests/corpus/page.md with a table for each `<!-- jobs: FOLDER -->`, then causes.md."""
    template, causes = ((CORPUS / name).read_text(encoding="utf-8") for name in ("page.md", "causes.md"))
    text = re.sub(r"<!-- jobs: (.+) -->", lambda mark: "\n".join(_table(mark[1])), template)
    return f"<!-- Written by `{COMMAND}` out of tests/corpus: changes here are lost. -->\n{text}{causes}"


def write() -> None:
    expected = {job.golden for job in jobs()}
    for path in CORPUS.glob("*/*.outcome"):
        if path not in expected:
            path.unlink()
    for job in jobs():
        job.golden.write_text(job.outcome(), encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


def _job(path: Path) -> Job:
    (manifest,), errors = files.load([str(path)])
    assert errors == []
    return Job(path, manifest, {setting.title: _verdict(manifest, setting) for setting in SETTINGS})


def _verdict(manifest: files.Manifest, setting: Setting) -> Verdict:
    world = JobWorld(_cluster(setting.cluster), schema=SCHEMA, instead=_policy(setting.policy))
    return job_check.check(manifest, world, namespace=setting.namespace)


@cache
def _policy(name: str) -> PolicySet:
    return job_check.load_policies(CORPUS / name) if name else PolicySet()


@cache
def _cluster(name: str) -> Snapshot:
    manifests, errors = files.load([str(CORPUS / name)] if name else [])
    assert errors == []
    return Snapshot(manifest.document for manifest in manifests)


def _injected(verdict: Verdict) -> dict[str, list[tuple[str, str]]]:
    """The values that each injection adds, as (path, YAML). The annotation that lists the injections is left out."""
    values: dict[str, list[tuple[str, str]]] = {}
    for author, operation in zip(verdict.mutation.authors, verdict.mutation.patch, strict=False):
        place = str(operation["path"]).removeprefix("/spec/mpiReplicaSpecs")
        values.setdefault(author, []).append((place, yaml.dump_inline(operation["value"])))
    return values


def _table(folder: str) -> Iterator[str]:
    yield f"| Job | {' | '.join(setting.title for setting in SETTINGS)} |"
    yield f"|{' --- |' * (len(SETTINGS) + 1)}"
    for job in jobs():
        if job.subject == folder:
            path = job.path.relative_to(ROOT)
            cells = [f"[{job.path.stem}](../../{path}): {job.comment}", *map(_cell, job.verdicts.values())]
            yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _cell(verdict: Verdict) -> str:
    """The verdict in a word, with the ids of the rules."""
    named = {"rejected": verdict.validation.denied, "warned": verdict.validation.warned}
    rules = {word: sorted({finding.rule for finding in findings}) for word, findings in named.items()}
    return "; ".join(f"{word}: {', '.join(ids)}" for word, ids in rules.items() if ids) or "admitted"


if __name__ == "__main__":
    write()
