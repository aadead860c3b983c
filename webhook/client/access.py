"""Which cluster a client is for, and as whom."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from urllib.parse import quote

# Where kubectl is when nobody says where.
DEFAULT_NAMESPACE: Final = "default"


class KubeconfigError(ValueError):
    """The kubeconfig asks for what is not supported here; the message says what."""


@dataclass(frozen=True, slots=True)
class Impersonation:
    """As whom to act; without `user` as oneself.

    https://kubernetes.io/docs/reference/access-authn-authz/authentication/#user-impersonation
    """

    user: str = ""
    """Who it is."""
    groups: tuple[str, ...] = ()
    """The groups that the user is in."""
    uid: str = ""
    """The user's uid."""
    extra: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """What else an authenticator would say of the user."""

    def over(self, below: "Impersonation") -> "Impersonation":
        """Both, where this one wins: as kubectl's options win over its kubeconfig, one by one."""
        return replace(
            below,
            user=self.user or below.user,
            groups=self.groups or below.groups,
            uid=self.uid or below.uid,
            extra=self.extra or below.extra,
        )

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of every request; KubeconfigError where they cannot be sent."""
        if not self.user and (self.groups or self.uid or self.extra):
            raise KubeconfigError("it names groups, a uid or extra to impersonate, but no user: add --as or `as`")
        headers = [
            *([("Impersonate-User", self.user)] if self.user else ()),
            *(("Impersonate-Group", group) for group in self.groups),
            *([("Impersonate-Uid", self.uid)] if self.uid else ()),
            *(
                (f"Impersonate-Extra-{quote(key, safe='')}", one)
                for key, values in self.extra.items()
                for one in values
            ),
        ]
        if not all(value.isprintable() for _, value in headers):
            raise KubeconfigError("whom to impersonate is not text that can be sent")
        return headers


ONESELF: Final = Impersonation()


@dataclass(frozen=True, slots=True)
class Access:
    """Which cluster, and as whom."""

    kubeconfig: Path | None = None
    """Its kubeconfig; None for the one that kubectl would take."""
    context: str | None = None
    """One of the kubeconfig's; None for its current one."""
    impersonation: Impersonation = ONESELF
    """What wins over that of the kubeconfig."""
