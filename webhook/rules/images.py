"""Names of container images are valid, and the images are from allowed registries.

Kubernetes only checks that the name is not empty, so a typo appears only on the node, as `InvalidImageName` for each
pod. An image id (64 hexadecimal digits, or any digits after `sha256:`) is rejected: a node runs any image that it has
stored under this id, from any registry.

These checks are off by default: `allowedRegistries` (registries, also with a path such as `registry.example.com/team`),
`requireDigest`, and `pullSecretsFor` (registries that need a pull secret). A missing pull secret is a warning, because
the service account may have the secret.

An image without a tag, or with the tag `latest`, is a warning, because nodes may run different versions of it. With
`refuseLatest: true` the image is rejected, with `false` it is admitted. On OpenShift, an image with a tag is a warning
if its registry is mirrored by digest only: the mirror does not serve tags.

This rule has two limits. Without `requireDigest` the registry decides which image a tag means when a pod starts. A
command in a container can download programs.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from webhook.api import images
from webhook.api.images import ImageError, ImageReference
from webhook.api.limits import MAX_IMAGE_CHARACTERS
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodSpec, PodTemplate
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings, valid_entries
from webhook.predict import image_mirrors
from webhook.predict.image_mirrors import TagSource
from webhook.rules import CauseReason, Degree, Violation, first_of, rule, shortened
from webhook.rules.limits import MAX_SHOWN_REGISTRIES

_TAG_OR_DIGEST = re.compile("[:@]")
_BLANKS = re.compile(r"\s*([:/@])\s*")
# A placeholder instead of a tag.
_PLACEHOLDER = re.compile(r":(?:<[^<>]*>|\$\{?\w+\}?|\{\{.*\}\})?\Z")

# Registries, also with a path such as `registry.example.com/team`.
Registries = Annotated[tuple[str, ...], valid_entries(images.registry_problem)]


class Settings(RuleSettings):
    """The allowed images."""

    allowed_registries: Registries = Field(
        (), description="Registries, or paths in them, that images may come from; an empty list allows all."
    )
    require_digest: bool = Field(False, description="Require a digest for every image.")
    refuse_latest: bool | None = Field(
        None,
        description="The tag latest, also if it is only implied: true rejects it, false admits it, null warns.",
    )
    pull_secrets_for: Registries = Field(
        (), description="Registries, or paths in them, whose images need an imagePullSecret."
    )


@rule("images", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    # For each image and reason, the first violation in each template.
    warned: dict[tuple[str, ...], dict[str, Violation]] = {}
    unpinned = _unpinned(job, ctx.old) if settings.require_digest else {}
    is_bounded = settings.allowed_registries or settings.require_digest or settings.refuse_latest
    are_mirrored = image_mirrors.any_digests(ctx.view)
    for _, path, replica in job.replicas:
        references = []
        tagged = []
        for field, image in _images(replica.template, f"{path}.template"):
            if not image:
                fix = f"Write its name, as {images.PATTERN}."
                yield Violation(field, "is missing", fix=fix, reason=CauseReason.REQUIRED)
                continue
            try:
                reference = images.parse(image)
            except ImageError as error:
                yield _unreadable(field, image, error)
                continue
            references.append(reference)
            rejected = [*_policy(field, image, reference, settings, unpinned)] if is_bounded else []
            yield from rejected
            if rejected or reference.digest is not None:
                continue
            tagged.append((field, image, reference))
            if settings.refuse_latest is None and reference.effective_tag == "latest":
                fault = f"has {'the tag latest' if reference.tag else 'no tag'}, so it may change"
                moving = _caution(field, image, fault, "Name a version.", "latest")
                warned.setdefault((image,), {}).setdefault(path, moving)
        if settings.pull_secrets_for:
            yield from _pull_secrets(f"{path}.template", replica.template.spec, references, settings)
        for field, image, reference in tagged if are_mirrored else ():
            if pulled := image_mirrors.tag_source(reference, ctx.view):
                fault = "is mirrored by digest only" if pulled is TagSource.ITSELF else "no node can pull this tag"
                mirrored = _caution(field, image, fault, "Name the digest.", "mirrored")
                warned.setdefault((image, "mirrored"), {}).setdefault(path, mirrored)
    for first, *others in map(dict.values, warned.values()):
        again = f" (in {len(others) + 1} places)" if others else ""
        yield replace(first, message=f"{first.message}{again}")


def _unpinned(job: MPIJob, stored: MPIJob | None) -> Mapping[str, int]:
    """The position of each image without a digest among such images of its repository, by field.

    The first position is 1. Unchanged fields come first.
    """
    sources = _tagged(job)
    stored_sources = _tagged(stored) if stored else {}
    counts: Counter[str] = Counter()
    numbers = {}
    for field in sorted(sources, key=lambda field: stored_sources.get(field) != sources[field]):
        counts[sources[field]] += 1
        numbers[field] = counts[sources[field]]
    return numbers


def _tagged(job: MPIJob) -> dict[str, str]:
    sources = {}
    for _, path, replica in job.replicas:
        for field, image in _images(replica.template, f"{path}.template"):
            with suppress(ImageError):
                reference = images.parse(image or "")
                if reference.digest is None:
                    sources[field] = _source(reference)
    return sources


def _source(reference: ImageReference) -> str:
    return f"{reference.registry}/{reference.repository}"


def _images(template: PodTemplate, path: str) -> list[tuple[str, str | None]]:
    """(field, image) of each container and image volume."""
    of_containers = [
        (f"{path}.spec.{kind}[{index}].image", container.image) for kind, index, container in template.each_container
    ]
    return of_containers + [
        (f"{path}.spec.volumes[{index}].image.reference", volume.image.reference)
        for index, volume in enumerate((template.spec and template.spec.volumes) or ())
        if volume.image is not None and volume.image.reference
    ]


def _caution(where: str, image: str, fault: str, fix: str, kind: str) -> Violation:
    return Violation(where, fault, fix, advisory=True, degree=Degree(kind, frozenset({image})))


def _unreadable(field: str, image: str, error: ImageError) -> Violation:
    fault, _, advice = str(error).rpartition(": ")
    if not fault:
        fault, advice = advice, f"write it as {images.PATTERN}"
    if likely := _likely_reference(image):
        tag = ", with your tag" if likely.endswith(":1.0") and image[-3:] != "1.0" else ""
        advice = f'write "{shortened(likely)}"{tag}'
    return Violation(field, fault, fix=f"{advice[0].upper()}{advice[1:]}.")


def _likely_reference(image: str) -> str | None:
    """The reference without blanks and scheme, in lower case; None if that is not valid either."""
    text = _BLANKS.sub(r"\1", image[: 2 * MAX_IMAGE_CHARACTERS].strip()).rpartition(" pull ")[2]
    text = _PLACEHOLDER.sub(":1.0", text.rpartition("://")[2])
    path, slash, last = text.rpartition("/")
    name = _TAG_OR_DIGEST.split(last, maxsplit=1)[0]
    candidate = f"{path}{slash}{name}".lower() + last[len(name) :]
    try:
        images.parse(candidate)
    except ImageError:
        return None
    return candidate


def _policy(
    where: str, image: str, reference: ImageReference, settings: Settings, unpinned: Mapping[str, int]
) -> Iterator[Violation]:
    allowed = settings.allowed_registries
    source = _source(reference)
    if allowed and not any(images.in_registry(reference, entry) for entry in allowed):
        yield Violation(
            where,
            f'"{shortened(source)}" is not from an allowed registry',
            fix=f"Use an image from {first_of(allowed, MAX_SHOWN_REGISTRIES)}.",
            reason=CauseReason.FORBIDDEN,
            degree=Degree(f"{where} registry", frozenset({source})),
        )
    if settings.require_digest and reference.digest is None:
        yield Violation(
            where,
            f'"{shortened(image)}" has no digest, so it may change',
            fix="Add the digest: name@sha256:... (skopeo inspect and crane digest print it).",
            reason=CauseReason.FORBIDDEN,
            # An update may change the tag or the container's name, but not add an image without a digest.
            degree=Degree(f"digest {source}", unpinned[where]),
        )
    elif settings.refuse_latest and reference.effective_tag == "latest":
        tag = "has the tag" if reference.tag else "has no tag, which means"
        yield Violation(
            where,
            f'"{shortened(image)}" {tag} latest, which changes over time',
            fix="Name the tag of a version, or a digest.",
            reason=CauseReason.FORBIDDEN,
            degree=Degree(f"{where} tag", frozenset({image})),
        )


def _pull_secrets(
    path: str, pod: PodSpec | None, references: list[ImageReference], settings: Settings
) -> Iterator[Violation]:
    entries = settings.pull_secrets_for
    private = [entry for entry in entries if any(images.in_registry(reference, entry) for reference in references)]
    if private and pod is not None and not pod.image_pull_secrets:
        shown = shortened(", ".join(private), 30)
        yield Violation(
            f"{path}.spec.imagePullSecrets",
            f"none for {shown}",
            fix="Add one.",
            reason=CauseReason.REQUIRED,
            advisory=True,
        )
