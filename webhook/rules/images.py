"""Container images are named in a way that a node can pull, from registries that are allowed.

Kubernetes itself only checks that the name is not empty, so a typo shows only on the node, as `InvalidImageName`, one
pod after the other. Init containers count too. An image id (64 hexadecimal digits, or any after `sha256:`) is rejected:
it runs whatever image of that id a node has stored, from any registry.

Off unless set: `allowedRegistries` (a registry, or one with a path: `registry.example.com/team`), `requireDigest`, and
`pullSecretsFor`, registries that need a pull secret. That one only warns, because the secret may come with the service
account. An image without a tag, or with the tag `latest`, is a warning, once for each image: nodes may run different
versions of it. `refuseLatest` rejects or admits it. On OpenShift, an image with a tag whose registry is mirrored by
digest only is a warning too: no mirror ever serves the tag.

Not guaranteed: without `requireDigest` the registry decides what a tag is when a pod starts. A command in a container
can fetch programs from elsewhere.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, NamedTuple

from pydantic import Field

from webhook.api import images
from webhook.api.images import ImageError, ImageReference
from webhook.api.limits import MAX_IMAGE_CHARACTERS
from webhook.api.mpijob import MPIJob
from webhook.api.pod import PodSpec, PodTemplate
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.settings import RuleSettings, each
from webhook.predict import image_mirrors
from webhook.predict.image_mirrors import TagSource
from webhook.rules import CauseReason, Degree, Violation, rule, shortened
from webhook.rules.limits import MAX_SHOWN_REGISTRIES

_TAG_OR_DIGEST = re.compile("[:@]")
_BLANKS = re.compile(r"\s*([:/@])\s*")
# A tag that is still a placeholder.
_PLACEHOLDER = re.compile(r":(?:<[^<>]*>|\$\{?\w+\}?|\{\{.*\}\})?\Z")

# Each with or without a path: `registry.example.com/team`.
Registries = Annotated[tuple[str, ...], each(images.registry_problem)]


class Settings(RuleSettings):
    """The allowed images."""

    allowed_registries: Registries = Field(
        (), description="Registries, or paths in them, that images may come from; none means all."
    )
    require_digest: bool = Field(False, description="Whether every image must be named by its digest.")
    refuse_latest: bool | None = Field(
        None,
        description="The tag latest, also if it is only implied: true rejects it, false admits it, null warns.",
    )
    pull_secrets_for: Registries = Field(
        (), description="Registries, or paths in them, whose images need an imagePullSecret."
    )


@rule("images", Settings, since="0.1", importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    """Each container's image, and once for each template the pull secrets; then the images that may change."""
    warned: dict[tuple[str, ...], dict[str, Violation]] = {}  # the first in each template
    unpinned = _unpinned(job, ctx.old) if settings.require_digest else {}
    for _, path, replica in job.replicas():
        found, moving, tagged = _of_template(replica.template, f"{path}.template", settings, unpinned)
        yield from found
        for image, violation in moving:
            warned.setdefault((image,), {}).setdefault(path, violation)
        for field, image, reference in tagged if image_mirrors.any_digests(ctx.view) else ():
            if pulled := image_mirrors.tag_source(reference, ctx.view):
                fault = "is mirrored by digest only" if pulled is TagSource.ITSELF else "no node can pull this tag"
                mirrored = _caution(field, image, fault, "Name the digest.", "mirrored")
                warned.setdefault((image, "mirrored"), {}).setdefault(path, mirrored)
    for first, *others in map(dict.values, warned.values()):
        again = f" (in {len(others) + 1} places)" if others else ""
        yield replace(first, message=f"{first.message}{again}")


class _Found(NamedTuple):
    """For a template: its faults, the images that may change with the violation, and the images that a tag names."""

    wrong: Sequence[Violation]
    moving: Sequence[tuple[str, Violation]]
    tagged: Sequence[tuple[str, str, ImageReference]]


def _unpinned(job: MPIJob, stored: MPIJob | None) -> Mapping[str, int]:
    """Numbers the images without a digest by field, those of each repository from 1 on and first the `stored` job's."""
    places = _tagged(job)
    known = _tagged(stored) if stored else {}
    counts: Counter[str] = Counter()
    numbers = {}
    for field in sorted(places, key=lambda field: known.get(field) != places[field]):
        counts[places[field]] += 1
        numbers[field] = counts[places[field]]
    return numbers


def _tagged(job: MPIJob) -> dict[str, str]:
    found = {}
    for _, path, replica in job.replicas():
        for field, image in _images(replica.template, f"{path}.template"):
            with suppress(ImageError):
                reference = images.parse(image or "")
                if reference.digest is None:
                    found[field] = _source(reference)
    return found


def _source(reference: ImageReference) -> str:
    return f"{reference.registry}/{reference.repository}"


def _of_template(template: PodTemplate, path: str, settings: Settings, unpinned: Mapping[str, int]) -> _Found:
    """The findings about the images of the template at `path` that do not depend on the cluster."""
    found: list[Violation] = []
    moving: list[tuple[str, Violation]] = []
    tagged: list[tuple[str, str, ImageReference]] = []
    references = []
    is_bounded = settings.allowed_registries or settings.require_digest or settings.refuse_latest
    for field, image in _images(template, path):
        if not image:
            fix = f"Write its name, as {images.PATTERN}."
            found.append(Violation(field, "is missing", fix=fix, reason=CauseReason.REQUIRED))
            continue
        try:
            reference = images.parse(image)
        except ImageError as error:
            found.append(_unreadable(field, image, error))
            continue
        references.append(reference)
        refused = [*_policy(field, image, reference, settings, unpinned)] if is_bounded else []
        found += refused
        if settings.refuse_latest is None and not refused and reference.effective_tag == "latest":
            fault = f"has {'the tag latest' if reference.tag else 'no tag'}, so it may change"
            moving.append((image, _caution(field, image, fault, "Name a version.", "latest")))
        if not refused and reference.digest is None:
            tagged.append((field, image, reference))
    if settings.pull_secrets_for:
        found += _pull_secrets(path, template.spec, references, settings)
    return _Found(found, moving, tagged)


def _images(template: PodTemplate, path: str) -> Iterator[tuple[str, str | None]]:
    """(field, image) of each container, then of volumes; a container without an image is the API server's to reject."""
    for kind, index, container in template.each_container:
        yield f"{path}.spec.{kind}[{index}].image", container.image
    for index, volume in enumerate((template.spec and template.spec.volumes) or ()):
        if volume.image is not None and volume.image.reference:
            yield f"{path}.spec.volumes[{index}].image.reference", volume.image.reference


def _caution(where: str, image: str, fault: str, fix: str, kind: str) -> Violation:
    """A possible fault of the image at `where`."""
    return Violation(where, fault, fix, advisory=True, degree=Degree(kind, frozenset({image})))


def _unreadable(field: str, image: str, error: ImageError) -> Violation:
    """The error, with the corrected reference as advice if there is one."""
    fault, _, advice = str(error).rpartition(": ")
    if not fault:
        fault, advice = advice, f"write it as {images.PATTERN}"
    if likely := _likely_reference(image):
        tag = ", with your tag" if likely.endswith(":1.0") and image[-3:] != "1.0" else ""
        advice = f'write "{shortened(likely)}"{tag}'
    return Violation(field, fault, fix=f"{advice[0].upper()}{advice[1:]}.")


def _likely_reference(image: str) -> str | None:
    """The reference without blanks around it and without a scheme, its name in lower case, if that is a valid one."""
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
        shown = ", ".join(allowed[:MAX_SHOWN_REGISTRIES]) + (", ..." if len(allowed) > MAX_SHOWN_REGISTRIES else "")
        yield Violation(
            where,
            f'"{shortened(source)}" is not from an allowed registry',
            fix=f"Use an image from {shown}.",
            reason=CauseReason.FORBIDDEN,
            degree=Degree(f"{where} registry", frozenset({source})),
        )
    if settings.require_digest and reference.digest is None:
        yield Violation(
            where,
            f'"{shortened(image)}" has no digest, so it may change',
            fix="Add the digest: name@sha256:... (skopeo inspect and crane digest print it).",
            reason=CauseReason.FORBIDDEN,
            # An update may change the tag or the container's name, but not add such a container.
            degree=Degree(f"digest {source}", unpinned[where]),
        )
    elif settings.refuse_latest and reference.effective_tag == "latest":
        said = "has the tag" if reference.tag else "has no tag, which means"
        yield Violation(
            where,
            f'"{shortened(image)}" {said} latest, which changes over time',
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
