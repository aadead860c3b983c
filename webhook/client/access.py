"""The cluster and the identity that a client uses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

# The default of kubectl.
DEFAULT_NAMESPACE: Final = "default"


class KubeconfigError(ValueError):
    """The kubeconfig uses an unsupported feature. The message names the feature."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """The user to impersonate; no impersonation if `user` is empty.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    """

    user: str = ""
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Further attributes of the user, as an authenticator would set them."""

    def over(self, below: "Impersonation") -> "Impersonation":
        """Merge `self` and `below`, field by field. Fields of `self` win, like options of kubectl."""
        return replace(
            below,
            user=self.user or below.user,
            groups=self.groups or below.groups,
            uid=self.uid or below.uid,
            extra=self.extra or below.extra,
        )

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of every request; KubeconfigError if they cannot be sent."""
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
    """Overrides the impersonation of the kubeconfig."""
