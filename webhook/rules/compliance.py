"""Jobs with regulated data (HIPAA, PHI) use only the nodes and storage that the policy allows.

A job has regulated data if it, or one of its pod templates, has one of `markers` as label or annotation. If `markers`
is empty, every job has regulated data. Users can omit a marker, so leave `markers` empty for namespaces in which all
jobs have regulated data. These requirements are off unless they are set: `nodeLabels` that the node of every pod must
have, by nodeSelector or in every term of the required node affinity; `storageClasses` (the encrypted classes) for all
storage; annotations for the audit; no volumes on the disk of the node.

`storageClasses` excludes storage without a claim, such as NFS, and PersistentVolumeClaims that do not exist, because
their class is decided later. A claim is accepted if the service cannot tell whether it exists. A claim that is replaced
after the check is checked again only when a user resumes the job.
"""

import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Annotated

from pydantic import Field, field_validator

from webhook.api import names
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodTemplate, Volume
from webhook.cluster.resources.persistent_volume_claims import PERSISTENT_VOLUME_CLAIMS, PersistentVolumeClaim
from webhook.cluster.view import ABSENT
from webhook.kit.context import Context
from webhook.kit.settings import Labels, ObjectNames, RuleSettings, valid_entries
from webhook.rules import CauseReason, Violation, rule, shortened

_ANYTHING = ("*", "?*")
_WILD = re.compile(r"[*?\[]")
_LEGEND = ", where * is any text and ? any character"

# Labels or annotations: the same keys are valid in both.
Metadata = Annotated[dict[str, str], valid_entries(names.label_key_problem)]


class Settings(RuleSettings):
    """The affected jobs, and their requirements."""

    markers: Metadata = Field(
        {"compliance.openshift.io/hipaa": "true", "compliance.openshift.io/data-classification": "PHI"},
        description="Labels or annotations. Each of them marks a job with regulated data; case does not matter. "
        "If there are no markers, every job has regulated data.",
    )
    node_labels: Labels = Field({}, description="Labels of the nodes on which the pods must run.")
    storage_classes: ObjectNames = Field(
        (), description="Storage classes that claims and ephemeral volumes may have; an empty list allows all."
    )
    csi_drivers: ObjectNames = Field(
        (),
        description="With storageClasses: CSI drivers whose inline volumes are allowed, such as "
        "secrets-store.csi.k8s.io.",
    )
    require_memory_empty_dir: bool = Field(False, description="Require medium: Memory for every emptyDir.")
    refuse_host_path: bool = Field(False, description="Reject hostPath volumes.")
    job_annotations: Metadata = Field(
        {},
        description='Annotations that the job must have, with a pattern for each value: "*" is any text, "?*" any text '
        "except the empty text.",
    )
    pod_annotations: Metadata = Field(
        {}, description="Annotations that both pod templates must have, with patterns as in jobAnnotations."
    )

    @field_validator("job_annotations", "pod_annotations")
    @classmethod
    def _patterns(cls, annotations: dict[str, str]) -> dict[str, str]:
        for key, pattern in annotations.items():
            if not pattern:
                raise ValueError(f'"{key}" has an empty pattern: "*" is any text')
        return annotations


@rule("compliance", Settings, since="0.1")
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    if not _regulated(job, settings.markers):
        return
    yield from _annotations("metadata", job.annotations, settings.job_annotations)
    for _, path, replica in job.replicas:
        template = replica.template
        yield from _annotations(f"{path}.template.metadata", template.annotations, settings.pod_annotations)
        yield from _nodes(f"{path}.template.spec", template, settings.node_labels)
        for index, volume in enumerate((template.spec and template.spec.volumes) or ()):
            where = f"{path}.template.spec.volumes[{index}]"
            yield from _on_the_node(where, volume, settings)
            if settings.storage_classes:
                yield from _storage(where, volume, settings, ctx)


def _regulated(job: MPIJob, markers: Mapping[str, str]) -> bool:
    places = [job.labels, job.annotations]
    for _, _, replica in job.replicas:
        places += [replica.template.labels, replica.template.annotations]
    return not markers or any(
        key in place and place[key].casefold() == value.casefold() for key, value in markers.items() for place in places
    )


def _annotations(path: str, present: Mapping[str, str], required: Mapping[str, str]) -> Iterator[Violation]:
    for key, pattern in required.items():
        value = present.get(key)
        if value is not None and fnmatchcase(value, pattern):
            continue
        where = f"{path}.annotations[{key}]"
        fix = (
            "Set it to any text."
            if pattern in _ANYTHING
            else f'Set it to "{pattern}"{_LEGEND if _WILD.search(pattern) else ""}.'
        )
        if value is None:
            yield Violation(where, "is missing, and regulated data needs it", fix=fix, reason=CauseReason.REQUIRED)
        else:
            yield Violation(where, f'"{shortened(value)}" is not what regulated data needs', fix=fix)


def _nodes(path: str, template: PodTemplate, required: Mapping[str, str]) -> Iterator[Violation]:
    for key, value in required.items():
        if not template.requires_node(key, value):
            where = f"{path}.nodeSelector[{key}]"
            fault = f"regulated data may only go to nodes with {key}={value}"
            yield Violation(where, fault, fix=f'Set it to "{value}".', reason=CauseReason.REQUIRED)


def _on_the_node(path: str, volume: Volume, settings: Settings) -> Iterator[Violation]:
    if settings.refuse_host_path and volume.host_path is not None:
        yield Violation(
            f"{path}.hostPath",
            "regulated data may not go to a path on the node",
            fix="Use a PersistentVolumeClaim, or an emptyDir in memory.",
            reason=CauseReason.FORBIDDEN,
        )
    scratch = volume.scratch
    # Both kinds of huge pages, and tmpfs, are memory.
    if settings.require_memory_empty_dir and scratch and not (scratch.medium or "").startswith(("Memory", "HugePages")):
        yield Violation(
            f"{path}.emptyDir.medium",
            "regulated data may not go to the disk of the node",
            fix="Set it to Memory (it counts against the memory limit).",
            reason=CauseReason.REQUIRED,
        )


def _storage(path: str, volume: Volume, settings: Settings, ctx: Context) -> Iterator[Violation]:
    allowed = _allowed_classes(settings)
    if volume.ephemeral is not None:
        template = volume.ephemeral.volume_claim_template
        name = template.storage_class if template else None
        if name not in settings.storage_classes:
            where = f"{path}.ephemeral.volumeClaimTemplate.spec.storageClassName"
            fault = f'"{shortened(name)}" is not for' if name else "is missing, and the default may not be for"
            yield Violation(where, f"{fault} regulated data", fix=f"Use {allowed}.", reason=CauseReason.FORBIDDEN)
    elif volume.persistent_volume_claim is not None:
        where = f"{path}.persistentVolumeClaim.claimName"
        yield from _claim(where, volume.persistent_volume_claim.claim_name, settings, ctx)
    else:
        csi = volume.csi is not None and volume.csi.driver not in settings.csi_drivers
        if kind := "csi" if csi else volume.without_claim:
            yield Violation(
                f"{path}.{kind}",
                f"a volume of type {kind} has no storage class, so it is not for regulated data",
                fix=f"Use a PersistentVolumeClaim with {allowed}.",
                reason=CauseReason.FORBIDDEN,
            )


def _claim(path: str, name: str, settings: Settings, ctx: Context) -> Iterator[Violation]:
    claim = ctx.view.get(PERSISTENT_VOLUME_CLAIMS, (ctx.namespace, name))
    allowed = _allowed_classes(settings)
    shown = f'PersistentVolumeClaim "{shortened(name)}"'
    follows = path if claim is ABSENT else ""
    if follows:
        fault, fix = "does not exist, so its storage class is unknown", f"Create it first, with {allowed}."
    elif isinstance(claim, PersistentVolumeClaim) and claim.storage_class not in settings.storage_classes:
        has = f'storage class "{claim.storage_class}"' if claim.storage_class else "no storage class"
        fault, fix = f"has {has}, which is not for regulated data", f"Use a claim with {allowed}."
    else:
        return
    yield Violation(path, f"{shown} {fault}", fix=fix, reason=CauseReason.FORBIDDEN, follows=follows)


def _allowed_classes(settings: Settings) -> str:
    return f"storage class {' or '.join(settings.storage_classes)}"
