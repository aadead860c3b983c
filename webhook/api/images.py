"""Parses image references with the grammar and the Docker Hub defaults that kubelet and container runtimes apply.

https://github.com/distribution/reference/blob/v0.6.0/normalize.go (`ParseNormalizedNamed`), with two differences:

* a reference of more than 1024 characters is rejected (upstream limits the repository to 255 but not the registry);
* a dotted first segment that is a valid path segment but not a host name (`my_hub.example/app`) is a registry.
  Container runtimes agree; upstream reports an empty registry.

CRI-O may pull a short name (`ubuntu`) from a registry other than Docker Hub: the node's registries.conf decides.
"""

import json
import re
from functools import lru_cache
from typing import Final

import msgspec

from webhook.api.limits import MAX_IMAGE_CHARACTERS

DOCKER_HUB: Final = "docker.io"
REPOSITORY_MAX_LENGTH: Final = 255
TAG_MAX_LENGTH: Final = 128

_HOST_PART = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_PATH_PART = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_REGISTRY: Final = re.compile(rf"(?:{_HOST_PART}(?:\.{_HOST_PART})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?|{_PATH_PART}")
_REPOSITORY: Final = re.compile(rf"{_PATH_PART}(?:/{_PATH_PART})*")
_FOREIGN: Final = re.compile(r"[^!-~]")
_TAG: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# The id of an image on the node. containerd accepts a prefix of the id after `sha256:` if no image on the node has this
# name (containerd v1.7.28 `pkg/cri/server/helpers.go` localResolve, go-digest `digestset` Set.Lookup).
_IMAGE_ID: Final = re.compile(r"[a-f0-9]{64}|sha256:[a-f0-9]+")
_HEX: Final = re.compile(r"[a-f0-9]*")
# https://github.com/opencontainers/go-digest/blob/v1.0.0/algorithm.go
_DIGEST_LENGTHS: Final = {"sha256": 64, "sha384": 96, "sha512": 128}
PATTERN: Final = "<registry>/<name>:<tag>"
"""The form of an image name in messages. The text itself is not a valid name, so a job that copies it is rejected."""
_HELP: Final = f"write it as {PATTERN}"


class ImageError(ValueError):
    """The text is not an image reference. The message is one sentence for the user."""


class ImageReference(msgspec.Struct, frozen=True):
    """A reference with defaults: `ubuntu` has registry `docker.io`, repository `library/ubuntu`, no tag, no digest."""

    registry: str
    repository: str
    tag: str | None = None
    digest: str | None = None

    @property
    def effective_tag(self) -> str | None:
        """The pulled tag: `latest` if there is neither a tag nor a digest, None if there is a digest."""
        if self.digest is not None:
            return None
        return self.tag or "latest"

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        digest = f"@{self.digest}" if self.digest else ""
        return f"{self.registry}/{self.repository}{tag}{digest}"


def parse(text: str) -> ImageReference:
    """ImageError if the text is not an image reference."""
    if len(text) > MAX_IMAGE_CHARACTERS:
        raise ImageError(f"an image reference has at most {MAX_IMAGE_CHARACTERS} characters, this one has {len(text)}")
    return _parse(text)


@lru_cache(maxsize=2048)
def _parse(text: str) -> ImageReference:
    if not text:
        raise ImageError(f"the image reference is empty: {_HELP}")
    if "://" in text:
        raise ImageError(f"{_show(text)} starts with a scheme: remove everything up to and including ://")
    if _FOREIGN.search(text):
        raise ImageError(f"{_show(text)} contains a blank or a character outside ASCII: {_HELP}")
    if _IMAGE_ID.fullmatch(text):
        raise ImageError(f"{_show(text)} is an image id, not a name: {_HELP}")
    registry, rest = _split_registry(text)
    named, at, digest = rest.partition("@")
    repository, colon, tag = named.partition(":")
    _check_name(registry, repository)
    if colon:
        _check_tag(tag)
    if at:
        _check_digest(digest)
    return ImageReference(registry, repository, tag if colon else None, digest if at else None)


def _split_registry(text: str) -> tuple[str, str]:
    first, slash, rest = text.partition("/")
    if not slash or not _is_host(first):
        first, rest = DOCKER_HUB, text
    elif first == "index.docker.io":
        first = DOCKER_HUB
    if first == DOCKER_HUB and "/" not in rest:
        rest = f"library/{rest}"
    return first, rest


def _is_host(segment: str) -> bool:
    """Docker's rule: a first segment without dot, port or upper case is an organisation on Docker Hub."""
    return segment == "localhost" or "." in segment or ":" in segment or segment != segment.lower()


def _check_name(registry: str, repository: str) -> None:
    if not _REGISTRY.fullmatch(registry):
        raise ImageError(f"{_show(registry)} is not the host name of a registry: {_HELP}")
    if not _REPOSITORY.fullmatch(repository):
        shown = _show(repository.removeprefix("library/"))
        if repository != repository.lower():
            raise ImageError(f"{shown} has upper case letters, an image name is lower case: {_HELP}")
        raise ImageError(
            f"{shown} is not an image name: between slashes use lower case letters and digits, "
            f'with single ".", "_", "__" or any "-" inside'
        )
    if len(repository) > REPOSITORY_MAX_LENGTH:
        raise ImageError(f"an image name has at most {REPOSITORY_MAX_LENGTH} characters, not {len(repository)}")


def _check_tag(tag: str) -> None:
    if len(tag) > TAG_MAX_LENGTH:
        raise ImageError(f"a tag has at most {TAG_MAX_LENGTH} characters, this one has {len(tag)}")
    if not _TAG.fullmatch(tag):
        raise ImageError(
            f'{_show(tag)} is not a tag: allowed are letters, digits, "_", "." and "-", the last two not at the start'
        )


def _check_digest(digest: str) -> None:
    algorithm, _, encoded = digest.partition(":")
    length = _DIGEST_LENGTHS.get(algorithm)
    if length is None:
        raise ImageError(f"{_show(digest)} is not a digest: start it with one of {':, '.join(_DIGEST_LENGTHS)}:")
    if len(encoded) != length or not _HEX.fullmatch(encoded):
        raise ImageError(f"a {algorithm} digest has {length} characters out of 0-9 and a-f, not {_show(encoded)}")


def _show(text: str, limit: int = 80) -> str:
    return json.dumps(text if len(text) <= limit else f"{text[:limit]}...")


def registry_problem(prefix: str) -> str | None:
    """The reason why `prefix` is not valid for `in_registry`, as a predicate on one line; None if it is valid."""
    if "://" in prefix:
        return "starts with a scheme: remove everything up to and including ://"
    host, slash, path = prefix.partition("/")
    if (
        len(prefix) > MAX_IMAGE_CHARACTERS
        or not _REGISTRY.fullmatch(host)
        or (slash and not _REPOSITORY.fullmatch(path))
    ):
        return 'is not a registry with an optional path, such as "quay.io" or "registry.example.com:5000/team"'
    if not _is_host(host):
        return f'does not start with a registry: for an organisation on Docker Hub write "{DOCKER_HUB}/{prefix}"'
    return None


def in_registry(reference: ImageReference, prefix: str) -> bool:
    """Whether the image is in `prefix`: a registry (`quay.io`), or a registry with a path (`quay.io/team`).

    A path matches whole segments, case does not matter in hosts, and ports must be equal.
    """
    host, slash, path = prefix.partition("/")
    host = host.lower()
    if (DOCKER_HUB if host == "index.docker.io" else host) != reference.registry.lower():
        return False
    return not slash or reference.repository == path or reference.repository.startswith(f"{path}/")
