"""Launcher and workers are pods that the namespace's Pod Security level admits.

Pod Security admission judges pods only: a job that breaks the level is accepted, and then none of its pods is. Here
both pod templates, injections included, are judged by the same checks against the same labels of the namespace
(`pod-security.kubernetes.io/enforce`, `audit`, `warn`, each with a `-version`): what the namespace enforces rejects the
job, what it warns about becomes a warning, what it audits goes to the audit log. The words are those of Pod Security.

On OpenShift the pods are judged as their SCC leaves them: see the rule `scc`.

An invalid label counts as in Pod Security: enforce as restricted, audit and warn as privileged, any version as latest.
`floor` is a level that holds whatever the labels say. If the namespace enforces that level or a stricter one, its own
version counts.

The service reads the version of the API server with its policies: `hostUsers: false` excuses root only from 1.35 on,
and API servers before 1.33 drop the field. Where no version can be read, as in `check` of files, the newest checks
count unless `clusterVersion` says otherwise. After an upgrade of the API server the old version counts until a policy
changes or the service restarts.

Not guaranteed: `floor` is for the pods of jobs alone. For a user who may create Pods, only the labels count.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Self

import msgspec
from pydantic import AfterValidator, Field

from webhook.api.mpijob import MPIJob
from webhook.api.shape import ShapeError
from webhook.cluster.resources.namespaces import NAMESPACES, Namespace
from webhook.kit.advice_bounds import Admitted
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings
from webhook.predict.pod_security import (
    NEWEST,
    Level,
    LevelVersion,
    PodTemplate,
    Result,
    Version,
    evaluate,
    labels,
    messages,
    of_root,
)
from webhook.predict.pod_security.advice import advice, permitting
from webhook.predict.pod_security.checks import only_by_host_network
from webhook.predict.pod_security.levels import parse_version
from webhook.predict.pod_security.places import places
from webhook.predict.pod_security.pod import templates
from webhook.predict.scc.outcome import filled_in, outcomes
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.limits import MAX_POD_SECURITY_CHARACTERS

_COUNTS: Final = {"enforce": "restricted", "audit": "privileged", "warn": "privileged"}


def _readable(version: str) -> str:
    parse_version(version)  # raises ValueError
    return version


VersionText = Annotated[str, AfterValidator(_readable)]


class Settings(RuleSettings):
    """Levels in addition to the labels."""

    floor: Level = Field(
        Level.PRIVILEGED, description="The level that jobs must meet regardless of the namespace's labels."
    )
    floor_version: VersionText = Field("latest", description="The version of the floor: latest, or as v1.30.")
    cluster_version: VersionText = Field(
        "latest",
        description="The version of Kubernetes, as v1.30, which the cluster's own Pod Security takes for latest. "
        "With latest, the service takes the version of the API server.",
    )
    exempt_runtime_classes: tuple[str, ...] = Field(
        (), description="Runtime classes that the API server's own Pod Security configuration exempts."
    )

    def on(self, cluster_version: str) -> Self:
        """With that version if the policy names none."""
        version = cluster_version if self.cluster_version == "latest" else self.cluster_version
        return self.model_copy(update={"cluster_version": version})


class _Namespace(msgspec.Struct, frozen=True):
    """The namespace's levels: `policy` with the floor, `labelled` without."""

    name: str
    policy: labels.NamespaceLevels
    labelled: labels.NamespaceLevels
    floor: Level


def admits(settings: Settings) -> Admitted:
    """Only pods at the floor or above, if that is what the injection `security-context` fills in."""
    restricted = settings.floor is Level.RESTRICTED
    return Admitted(restricted_since=parse_version(settings.floor_version).minor if restricted else None)


@rule("pod-security", Settings, since="0.1", importance=Importance.FAILS, admits=admits)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Invalid labels; then, for each template, what is enforced, warned about and audited."""
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    labelled, errors = labels.read(namespace.labels if isinstance(namespace, Namespace) else {})
    yield from map(_unreadable, errors)
    policy = labelled
    if settings.floor.strictness > labelled.enforce.level.strictness:
        policy = labelled._replace(enforce=LevelVersion(settings.floor, parse_version(settings.floor_version)))
    if all(level is Level.PRIVILEGED for level, _ in policy):
        return
    asked = _Namespace(ctx.namespace, policy, labelled, settings.floor)
    newest = min(parse_version(settings.cluster_version), NEWEST)
    try:
        of_scc = outcomes(job, ctx)
        for role, path, written in templates(ctx.document):
            found = of_scc.get(role)
            template = filled_in(written, found, ctx)
            rejected = {each.path for each in found.rejections} if found else set()
            if not template.spec or template.spec.runtime_class_name not in settings.exempt_runtime_classes:
                yield from _judge(path, template, asked, newest, rejected, compared=ctx.operation == "UPDATE")
    except ShapeError as error:
        yield Violation(error.path, error.message, fix="Correct the type.")


def _judge(
    path: str, template: PodTemplate, namespace: _Namespace, newest: Version, known: set[str], *, compared: bool
) -> Iterator[Violation]:
    """`known` are fields that the rule `scc` reports; `compared`: the violations will be compared with those of another
    template.
    """
    enforce, audit, warn = namespace.policy
    limits: tuple[dict[str, bool], ...] = ({}, {"advisory": True}, {"audit_only": True})
    for mode, limit in zip((enforce, warn, audit), limits, strict=True):
        results = _faults(mode, template, newest)
        if not compared:  # an update is compared fault by fault
            results = of_root.without_consequences(results, template)
        broken = places(mode, template, newest=newest) if compared and results else {}
        for result in results:
            degree = _degree(path, result, broken)
            if not limit:
                # A fault is reported once: restricted has other checks than baseline for the same fields.
                known.update(result.paths)
                why = "This namespace starts no root containers. " if result.check == of_root.CHECK else ""
                fix = f"{advice(result, template)} {why}{_permission(result, template, namespace, newest)}"
                yield _violation(path, result, messages.denial(mode, [result]), fix, degree)
            elif not known.issuperset(result.paths):
                text, fix = messages.warning(mode, [result]), advice(result, template)
                yield _violation(path, result, text, fix, degree, **limit)


def _faults(asked: LevelVersion, template: PodTemplate, newest: Version) -> list[Result]:
    """Every fault at its cause: ports that are host ports only because of hostNetwork are left out."""
    return [
        result for result in evaluate(*asked, template, newest=newest) if not only_by_host_network(result, template)
    ]


def _violation(path: str, result: Result, message: str, fix: str, degree: Degree | None, **limit: Any) -> Violation:
    shown = (
        message if len(message) <= MAX_POD_SECURITY_CHARACTERS else f"{message[: MAX_POD_SECURITY_CHARACTERS - 3]}..."
    )
    # An init container may be a copy that follows the first container, as that of launcher-wait.
    first = min(result.paths, key=lambda place: place.startswith("spec.initContainers"))
    return Violation(f"{path}.{first}", shown, fix=fix, reason=CauseReason.FORBIDDEN, degree=degree, **limit)


def _degree(path: str, result: Result, places: Mapping[str, frozenset[str]]) -> Degree | None:
    found = places.get(result.check)
    return Degree(f"{path} {result.check}", frozenset(f"{path}.{place}" for place in found)) if found else None


def _permission(result: Result, template: PodTemplate, namespace: _Namespace, newest: Version) -> str:
    """Who could allow it, and how."""
    version = min(namespace.policy.enforce.version, newest)
    needed = permitting(result, version, template)
    ways = []
    if namespace.labelled.enforce.level.strictness > needed.strictness:
        ways.append(f'label the namespace "{namespace.name}" {labels.PREFIX}enforce={needed}')
    if namespace.floor.strictness > needed.strictness:
        ways.append("exempt the job from the rule pod-security")
    return f"To allow it, an administrator would have to {' and to '.join(ways)}."


def _unreadable(error: labels.LabelError) -> Violation:
    mode, _, version = error.label.removeprefix(labels.PREFIX).partition("-")
    counts = "latest" if version else _COUNTS[mode]
    value = shortened(error.value)
    return Violation(
        "metadata.namespace",
        f'its label {error.label} is "{value}", so {counts} applies',
        fix=f"Have an administrator correct it: it {error.problem}.",
        advisory=True,
    )
