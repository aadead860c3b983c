"""The cluster and the identity that a client uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import quote

# As in kubectl.
DEFAULT_NAMESPACE: Final = "default"


class KubeconfigError(ValueError):
    """The kubeconfig is invalid or uses an unsupported feature."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """A user to impersonate.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further attributes of the user."""

    def over(self, base: "Impersonation") -> "Impersonation":
        """`self` with the fields of `base` in place of empty fields, as in kubectl, where options override the file."""
        return Impersonation(
            self.user or base.user, self.groups or base.groups, self.uid or base.uid, self.extra or base.extra
        )

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of every request; KubeconfigError if the fields are invalid."""
        if not self.user and (self.groups or self.uid or self.extra):
            raise KubeconfigError("it names groups, a uid or extra to impersonate, but no user: add --as or `as`")
        headers = [
            *([("Impersonate-User", self.user)] if self.user else ()),
            *(("Impersonate-Group", group) for group in self.groups),
            *([("Impersonate-Uid", self.uid)] if self.uid else ()),
            *(
                (f"Impersonate-Extra-{quote(key, safe='')}", value)
                for key, values in self.extra.items()
                for value in values
            ),
        ]
        if not all(value.isprintable() for _, value in headers):
            raise KubeconfigError("the user, group, uid or extra to impersonate contains control characters")
        return headers


NO_IMPERSONATION: Final = Impersonation()


@dataclass(frozen=True, slots=True)
class Access:
    """A cluster and an identity."""

    kubeconfig: Path | None = None
    """None for kubectl's default."""
    context: str | None = None
    """A context of the kubeconfig; None for the current context."""
    impersonation: Impersonation = NO_IMPERSONATION
    """Its fields override the impersonation of the kubeconfig."""
