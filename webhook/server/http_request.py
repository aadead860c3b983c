"""A review as an HTTP request: its hook, its deadline, the checks before its body is read, and its reply."""

import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import lru_cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qs

from webhook.cluster.resource import ByNamespace
from webhook.cluster.resources.namespaces import Namespace
from webhook.kit.optional_parts import parts
from webhook.server.limits import MAX_BODY_BYTES, MAX_DURATION_CHARACTERS, MAX_QUOTED_CHARACTERS

JSON = "application/json"
OF_PARTS: Final = {hook.name: hook for part in parts() for hook in part.hooks}
HOOKS: Final[Mapping[str, str]] = {
    "/mutate-mpijob": "mutate",
    "/validate-mpijob": "validate",
    "/mutate-ssh-secret": "ssh-keys",
    "/validate-policy": "policy",
    **{hook.path: hook.name for hook in OF_PARTS.values()},
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_WHOLE = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


# the API server sends the same few request lines again and again
@lru_cache(maxsize=64)
def parse(raw: str) -> tuple[str | None, float | None]:
    """The hook and the client's timeout in seconds of a request line such as `/mutate-mpijob?timeout=5s`.

    The hook is None for an unknown path. The timeout is None if it is missing or invalid.
    """
    path, _, query = raw.partition("?")
    values = parse_qs(query).get("timeout", [])
    return HOOKS.get(path), _duration(values[0]) if values else None


def _duration(text: str) -> float | None:
    """`text` in seconds; None if it is not a duration above zero."""
    if len(text) > MAX_DURATION_CHARACTERS or not _WHOLE.fullmatch(text):
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(text)) or None


class Refused(Exception):
    """The request gets no decision. `detail` is not logged because it may quote the client.

    A request that is `shed` because of overload is counted but not logged: a log line would add to the load.
    """

    def __init__(self, status: HTTPStatus, reason: str, detail: str = "", *, shed: bool = False) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.detail = detail[:MAX_QUOTED_CHARACTERS]
        self.shed = shed


@dataclass(eq=False, slots=True)
class Request:
    """A request. Its body is read only after `ReviewHandler.expect` has accepted its head."""

    target: str = ""
    method: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    """aiohttp's mapping, which ignores the case of names."""
    length: int | None = None
    peer: str = ""
    certificate: Mapping[str, Any] = field(default_factory=dict)
    """The client's certificate, verified by TLS; empty if there is none."""
    started: float = 0.0
    """The time when the head was complete."""
    deadline: float = 0.0
    """The time when the service stops working on the reply."""
    hook: str | None = None
    """None for an unknown path."""
    body: bytes = b""
    namespace: Namespace | None = None
    """The object's Namespace if it was read for this request; None if the cache has it."""
    missing_grants: set[ByNamespace] = field(default_factory=set)
    """Accounts whose SCCs the decision needs."""

    def too_late(self) -> Refused:
        return Refused(HTTPStatus.GATEWAY_TIMEOUT, f"no verdict within {self.deadline - self.started:.3g} s")


@dataclass(frozen=True, slots=True)
class Reply:
    """An HTTP reply."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": JSON})


def expect_client(request: Request, names: Set[str]) -> None:
    """Raise Refused if the client's certificate has none of `names`."""
    certificate = request.certificate
    subject = {value for part in certificate.get("subject", ()) for kind, value in part if kind == "commonName"}
    subject |= {value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"}
    if not subject & names:
        raise Refused(
            HTTPStatus.FORBIDDEN, "the client certificate names a different client", ", ".join(sorted(subject))
        )


def expect_review(request: Request) -> None:
    """Raise Refused if the request cannot be a review."""
    if request.hook is None:
        raise Refused(HTTPStatus.NOT_FOUND, "there is no such path here")
    if request.method != "POST":
        raise Refused(HTTPStatus.METHOD_NOT_ALLOWED, "reviews are sent with POST")
    kind = request.headers.get("Content-Type", "")
    if kind != JSON and kind.partition(";")[0].strip().lower() != JSON:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, f"the content type must be {JSON}")
    if "Content-Encoding" in request.headers:
        raise Refused(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "the body must not be compressed")
    if request.length is None:
        raise Refused(HTTPStatus.LENGTH_REQUIRED, "the body needs a Content-Length")
    if request.length > MAX_BODY_BYTES:
        raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"the body is larger than {MAX_BODY_BYTES} bytes")


def broken_off() -> Refused:
    """The refusal of a body that ended early."""
    return Refused(HTTPStatus.BAD_REQUEST, "the body is incomplete")
