"""Checks pods in files against a Pod Security level, without injections."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from webhook.api.mpijob import GROUP, LAUNCHER, WORKER, replica_path
from webhook.api.shape import ShapeError
from webhook.cli.ci_reports import Problem
from webhook.cli.files import Manifest
from webhook.cli.terminal import bad, counted, good, printable
from webhook.predict.pod_security import LATEST, LevelVersion, evaluate, messages
from webhook.predict.pod_security.advice import advice
from webhook.predict.pod_security.levels import parse_level, parse_version
from webhook.predict.pod_security.pod import convert

_TEMPLATE: Final = ("spec", "template")
TEMPLATES: Final[Mapping[tuple[str, str], tuple[tuple[str, ...], ...]]] = {
    ("", "Pod"): ((),),
    ("", "PodTemplate"): (("template",),),
    ("", "ReplicationController"): (_TEMPLATE,),
    **{("apps", kind): (_TEMPLATE,) for kind in ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet")},
    ("batch", "CronJob"): (("spec", "jobTemplate", *_TEMPLATE),),
    ("batch", "Job"): (_TEMPLATE,),
    (GROUP, "MPIJob"): tuple(("spec", "mpiReplicaSpecs", role, "template") for role in (LAUNCHER, WORKER)),
}


@dataclass(frozen=True, slots=True)
class Cause:
    """A violation of the level."""

    check: str
    """The id of the Pod Security check; empty for a field of the wrong type."""
    path: str
    fault: str
    fix: str


@dataclass(frozen=True, slots=True)
class LevelVerdict:
    """The verdict on the pods of an object."""

    manifest: Manifest
    namespace: str
    level: LevelVersion
    causes: tuple[Cause, ...]
    message: str

    @property
    def title(self) -> str:
        return f"{self.manifest.kind} {self.namespace}/{self.manifest.title}"

    @property
    def allowed(self) -> bool:
        return not self.causes

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.manifest.kind,
            "name": self.manifest.title,
            "namespace": self.namespace,
            "allowed": self.allowed,
            "message": self.message,
            "causes": [
                {"rule": "pod-security", "check": c.check, "field": c.path, "message": f"{c.fault}. {c.fix}"}
                for c in self.causes
            ],
            "warnings": [],
            "patch": [],
        }

    def problems(self) -> Iterator[Problem]:
        for cause in self.causes:
            yield Problem("pod-security", f"{cause.fault}. {cause.fix}", field=cause.path)

    def as_text(self, *, short: bool = False) -> Iterator[str]:
        verdict = good("within") if self.allowed else bad("not within")
        yield f"{printable(f'{self.manifest.source}: {self.title}')}: {verdict} {self.level}"
        for number, cause in enumerate(self.causes, start=1):
            yield f"  {number}. {printable(f'{cause.path}: {cause.fault}')}"
            yield f"     {printable(cause.fix)}"
        if not short:
            yield ""


def parse(text: str) -> LevelVersion:
    """Parse `restricted` or `restricted@v1.30`; ValueError for anything else."""
    level, at, version = text.partition("@")
    part = "level"
    try:
        parsed = parse_level(level)
        part = "version"
        return LevelVersion(parsed, parse_version(version) if at else LATEST)
    except ValueError as error:
        raise ValueError(f'"{text}" is not a level such as restricted@v1.30: the {part} {error}') from None


def check(manifest: Manifest, level: LevelVersion, *, namespace: str = "default") -> LevelVerdict | None:
    """The verdict on an object; None for a kind without pods. `namespace` is used if the object names none."""
    group, slash, _ = manifest.api_version.partition("/")
    templates = TEMPLATES.get((group if slash else "", manifest.kind))
    if templates is None:
        return None
    causes, denials = [], []
    for steps in templates:
        where = _shown(steps)
        try:
            template = convert(_at(manifest.document, steps))
        except ShapeError as error:
            causes.append(Cause("", f"{where}{error.path}".rstrip("."), error.message, "Correct the type."))
            continue
        results = evaluate(*level, template)
        if results:
            denials.append(f"{where.rstrip('.')}: {messages.denial(level, results)}".removeprefix(": "))
        causes += [
            Cause(result.check, f"{where}{result.paths[0]}", messages.details([result]), advice(result, template))
            for result in results
        ]
    return LevelVerdict(manifest, manifest.namespace or namespace, level, tuple(causes), "\n".join(denials))


def summary(verdicts: Sequence[LevelVerdict]) -> Iterator[str]:
    if verdicts:
        broken = sum(not verdict.allowed for verdict in verdicts)
        yield f"{counted(len(verdicts), 'object')}: {len(verdicts) - broken} within {verdicts[0].level}, {broken} not"


def _at(document: Any, steps: tuple[str, ...]) -> Any:
    for depth, step in enumerate(steps):
        if not isinstance(document, dict):
            # Paths of errors start at the template, so the message names the parent.
            raise ShapeError("", f"{'.'.join(steps[:depth])} must be a mapping")
        document = document.get(step, {})
    return document


def _shown(steps: tuple[str, ...]) -> str:
    """The prefix of paths in a template, with a dot at the end."""
    if steps[:2] == ("spec", "mpiReplicaSpecs"):
        return f"{replica_path(steps[2])}.template."
    return "".join(f"{step}." for step in steps)
