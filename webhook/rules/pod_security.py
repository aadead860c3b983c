"""The namespace's Pod Security level admits launcher and workers.

Pod Security admission checks only pods: it admits a job that breaks the level, and then rejects each of its pods. This
rule makes the same checks of both pod templates, with the namespace's labels (`pod-security.kubernetes.io/enforce`,
`audit`, `warn`, each with a `-version`) and with the messages of Pod Security. A violation of the enforced level
rejects the job, a violation of the `warn` level is a warning, and a violation of the `audit` level is written to the
audit log. On OpenShift the templates are checked after their SCC has filled in its values: see the rule `scc`. The rule
reads invalid labels like Pod Security: `enforce` as `restricted`, `audit` and `warn` as `privileged`, and a version as
`latest`.

The setting `floor` is a level in addition to the labels. If the namespace enforces this or a stricter level, the
version in the namespace's label applies.

The checks depend on the version of the API server: for example, with `hostUsers: false` root is allowed only from 1.35
on, and API servers before 1.33 drop the field. The service reads the version together with its policies. If the
version is unknown, for example because `check` reads only files, the newest checks apply unless `clusterVersion` is
set. After an upgrade the old version applies until a policy changes or the service restarts.

`floor` applies only to the pods of jobs. For pods that a user creates directly, only the labels apply.
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

_APPLIES: Final = {"enforce": "restricted", "audit": "privileged", "warn": "privileged"}


def _readable(version: str) -> str:
    parse_version(version)  # raises ValueError
    return version


VersionText = Annotated[str, AfterValidator(_readable)]


class Settings(RuleSettings):
    """Levels in addition to the labels."""

    floor: Level = Field(
        Level.PRIVILEGED, description="The level that jobs must satisfy, whatever the namespace's labels are."
    )
    floor_version: VersionText = Field(
        "latest", description="The version of the floor: latest, or a version such as v1.30."
    )
    cluster_version: VersionText = Field(
        "latest",
        description="The version of Kubernetes, such as v1.30, that Pod Security in the cluster uses as latest. "
        "With latest, the service uses the version of the API server.",
    )
    exempt_runtime_classes: tuple[str, ...] = Field(
        (), description="Runtime classes that the API server's own Pod Security configuration exempts."
    )

    def on(self, cluster_version: str) -> Self:
        """These settings with the cluster's version, unless the policy sets a version."""
        version = cluster_version if self.cluster_version == "latest" else self.cluster_version
        return self.model_copy(update={"cluster_version": version})


class _Namespace(msgspec.Struct, frozen=True):
    """The levels of the namespace. `labelled` has the levels of its labels, `policy` also includes the floor."""

    name: str
    policy: labels.NamespaceLevels
    labelled: labels.NamespaceLevels
    floor: Level


def admits(settings: Settings) -> Admitted:
    """The version of a `restricted` floor: the injection `security-context` adds what this version requires."""
    restricted = settings.floor is Level.RESTRICTED
    return Admitted(restricted_since=parse_version(settings.floor_version).minor if restricted else None)


@rule("pod-security", Settings, since="0.1", importance=Importance.FAILS, admits=admits)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    namespace = ctx.view.get(NAMESPACES, ctx.namespace)
    labelled, errors = labels.read(namespace.labels if isinstance(namespace, Namespace) else {})
    yield from map(_unreadable, errors)
    policy = labelled
    if settings.floor.strictness > labelled.enforce.level.strictness:
        policy = labelled._replace(enforce=LevelVersion(settings.floor, parse_version(settings.floor_version)))
    if policy.enforce.level is policy.audit.level is policy.warn.level is Level.PRIVILEGED:
        return
    levels = _Namespace(ctx.namespace, policy, labelled, settings.floor)
    newest = min(parse_version(settings.cluster_version), NEWEST)
    try:
        of_scc = outcomes(job, ctx)
        for role, path, written in templates(ctx.document):
            admitted_as = of_scc.get(role)
            template = filled_in(written, admitted_as, ctx)
            rejected = {rejection.path for rejection in admitted_as.rejections} if admitted_as else set()
            if not template.spec or template.spec.runtime_class_name not in settings.exempt_runtime_classes:
                yield from _judge(path, template, levels, newest, rejected, compared=ctx.operation == "UPDATE")
    except ShapeError as error:
        yield Violation(error.path, error.message, fix="Correct the type.")


def _judge(
    path: str, template: PodTemplate, namespace: _Namespace, newest: Version, reported: set[str], *, compared: bool
) -> Iterator[Violation]:
    """`reported`: fields that the rule `scc` reports; `compared`: the violations are compared with those of the stored
    job.
    """
    enforce, audit, warn = namespace.policy
    limits: tuple[dict[str, bool], ...] = ({}, {"advisory": True}, {"audit_only": True})
    for mode, limit in zip((enforce, warn, audit), limits, strict=True):
        results = _faults(mode, template, newest)
        if not compared:  # the comparison of an update with the stored job needs every fault
            results = of_root.without_consequences(results, template)
        broken = places(mode, template, newest=newest) if compared and results else {}
        for result in results:
            degree = _degree(path, result, broken)
            if not limit:
                # Checks of two levels may report the same field. It is reported once.
                reported.update(result.paths)
                reason = "This namespace starts no root containers. " if result.check == of_root.CHECK else ""
                fix = f"{advice(result, template)} {reason}{_permission(result, template, namespace, newest)}"
                yield _violation(path, result, messages.denial(mode, [result]), fix, degree)
            elif not reported.issuperset(result.paths):
                text, fix = messages.warning(mode, [result]), advice(result, template)
                yield _violation(path, result, text, fix, degree, **limit)


def _faults(level: LevelVersion, template: PodTemplate, newest: Version) -> list[Result]:
    """The violations of the level, except ports that are host ports only because of hostNetwork."""
    results = evaluate(*level, template, newest=newest)
    return [result for result in results if not only_by_host_network(result, template)]


def _violation(path: str, result: Result, message: str, fix: str, degree: Degree | None, **limit: Any) -> Violation:
    shown = shortened(message, MAX_POD_SECURITY_CHARACTERS)
    # A path of a container is preferred to a path of an init container, which may be a copy of the container (injection
    # `launcher-wait`).
    first = min(result.paths, key=lambda place: place.startswith("spec.initContainers"))
    return Violation(f"{path}.{first}", shown, fix=fix, reason=CauseReason.FORBIDDEN, degree=degree, **limit)


def _degree(path: str, result: Result, places: Mapping[str, frozenset[str]]) -> Degree | None:
    wrong = places.get(result.check)
    return Degree(f"{path} {result.check}", frozenset(f"{path}.{place}" for place in wrong)) if wrong else None


def _permission(result: Result, template: PodTemplate, namespace: _Namespace, newest: Version) -> str:
    """How an administrator could allow the pod."""
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
    applied = "latest" if version else _APPLIES[mode]
    value = shortened(error.value)
    return Violation(
        "metadata.namespace",
        f'its label {error.label} is "{value}", so {applied} applies',
        fix=f"Have an administrator correct it: it {error.problem}.",
        advisory=True,
    )
