"""AdmissionReview `admission.k8s.io/v1`: the request and the response.

https://kubernetes.io/docs/reference/access-authn-authz/extensible-admission-controllers/
"""

from contextlib import suppress
from typing import Literal

import msgspec

from webhook.api.limits import MAX_UID_CHARACTERS

API_VERSION = "admission.k8s.io/v1"


class ReviewError(ValueError):
    """The body is not a valid AdmissionReview. `uid` is empty if it could not be read."""

    def __init__(self, message: str, uid: str = "") -> None:
        super().__init__(message)
        self.uid = uid


class GroupVersionKind(msgspec.Struct, gc=False):
    group: str = ""
    version: str = ""
    kind: str = ""


class UserInfo(msgspec.Struct, gc=False):
    username: str = ""
    groups: list[str] | None = None
    uid: str = ""
    extra: dict[str, list[str]] | None = None


class AdmissionRequest(msgspec.Struct, rename="camel", gc=False):
    """A request. `object` and `old_object` stay encoded, because their types depend on the kind."""

    uid: str
    operation: Literal["CREATE", "UPDATE", "DELETE", "CONNECT"]
    kind: GroupVersionKind = msgspec.field(default_factory=GroupVersionKind)
    sub_resource: str = ""
    name: str = ""
    namespace: str = ""
    user_info: UserInfo = msgspec.field(default_factory=UserInfo)
    object: msgspec.Raw = msgspec.Raw(b"null")
    old_object: msgspec.Raw = msgspec.Raw(b"null")
    dry_run: bool | None = None
    options: msgspec.Raw = msgspec.Raw(b"null")
    """The metav1.UpdateOptions of an update."""

    @property
    def field_manager(self) -> str:
        with suppress(msgspec.DecodeError, UnicodeDecodeError):
            return msgspec.json.decode(self.options, type=_Options).field_manager
        return ""


class _Options(msgspec.Struct, rename="camel", gc=False):
    field_manager: str = ""


class AdmissionReview(msgspec.Struct, rename="camel", gc=False):
    api_version: str
    kind: str
    request: AdmissionRequest


class StatusCause(msgspec.Struct, gc=False):
    """A violation in a form for programs. `reason` is a CauseType of Kubernetes, `field` a path in the object."""

    reason: str
    message: str
    field: str


class StatusDetails(msgspec.Struct, omit_defaults=True, gc=False):
    name: str = ""
    group: str = ""
    kind: str = ""
    causes: list[StatusCause] = []


class ResponseStatus(msgspec.Struct, omit_defaults=True, gc=False):
    """The metav1.Status of a denial."""

    message: str
    reason: str
    code: int
    details: StatusDetails | None = None


class AdmissionResponse(msgspec.Struct, rename="camel", omit_defaults=True, gc=False):
    """The API server requires `patch` and `patch_type` together."""

    uid: str
    allowed: bool
    status: ResponseStatus | None = None
    patch: bytes | None = None
    """JSON. The encoder writes it in base64."""
    patch_type: Literal["JSONPatch"] | None = None
    audit_annotations: dict[str, str] = {}
    warnings: list[str] = []


class _Reply(msgspec.Struct, rename="camel", gc=False):
    response: AdmissionResponse
    api_version: str = API_VERSION
    kind: str = "AdmissionReview"


class _UidOnly(msgspec.Struct, gc=False):
    class Request(msgspec.Struct, gc=False):
        uid: str = ""

    request: Request | None = None


_FAULTS = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
_review = msgspec.json.Decoder(AdmissionReview)
_uid = msgspec.json.Decoder(_UidOnly)  # the body may be large, so nothing else is decoded
_encoder = msgspec.json.Encoder()


def decode(body: bytes) -> AdmissionRequest:
    """The request in `body`; ReviewError if the body is invalid, with the uid if the uid is readable."""
    try:
        review = _review.decode(body)
    except _FAULTS as error:
        raise ReviewError(f"not an AdmissionReview: {error}", uid=_uid_of(body)) from None
    if review.api_version != API_VERSION or review.kind != "AdmissionReview":
        got = f"{review.api_version} {review.kind}"
        raise ReviewError(f"expected {API_VERSION} AdmissionReview, got {got[:100]}", uid=review.request.uid)
    if not review.request.uid:
        raise ReviewError("the AdmissionReview has an empty request.uid")
    if len(review.request.uid) > MAX_UID_CHARACTERS:
        raise ReviewError(f"request.uid has more than {MAX_UID_CHARACTERS} characters")
    return review.request


def encode(response: AdmissionResponse) -> bytes:
    return _encoder.encode(_Reply(response))


def encode_patch(operations: list[dict[str, object]]) -> bytes:
    return _encoder.encode(operations)


def _uid_of(body: bytes) -> str:
    try:
        request = _uid.decode(body).request
    except _FAULTS:
        return ""
    return request.uid if request else ""
