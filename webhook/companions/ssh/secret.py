"""The Secret `<job>-ssh` gets a key pair of ours while the operator creates it. Pure.

The operator makes that Secret for every job and keeps one that has its two keys, whatever they hold (mpi-operator
`pkg/controller/mpi_job_controller.go`, getOrCreateSSHAuthSecret). Everything else about it stays the operator's: name,
labels, owner. So there is no other Secret to make, to find or to remove, and no right on anybody's Secrets is needed.

Who writes is not looked at: the operator's ServiceAccount is named differently from one installation to the next, and
what ties the Secret to its job is the owner reference, which the operator checks too.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Final

import msgspec

from webhook.admission.decision import Decision
from webhook.api import mpijob
from webhook.api.review import AdmissionRequest
from webhook.companions.ssh import pair as ssh_pair
from webhook.companions.ssh.pair import INSTANT, Algorithm, KeyPair
from webhook.policy.document import SshKeys

TYPE: Final = "kubernetes.io/ssh-auth"
PRIVATE: Final = "ssh-privatekey"
PUBLIC: Final = "ssh-publickey"
SUFFIX: Final = "-ssh"
AUTHOR: Final = "ssh-keys"
FINGERPRINT: Final = "ssh-key-fingerprint"
# Kubernetes allows no others, and none of them means anything in a line of authorized_keys.
_NAME = re.compile(r"[a-z0-9.-]+")


class _Owner(msgspec.Struct, rename="camel", gc=False):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    controller: bool | None = None


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    owner_references: list[_Owner] | None = None


class Secret(msgspec.Struct, gc=False):
    """The part of a Secret that is read; the values of `data` are base64."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    type: str = ""
    data: dict[str, str] | None = None

    @property
    def job(self) -> str:
        """The name of the MPIJob whose SSH keys these are, empty for any other Secret."""
        if self.type != TYPE:
            return ""
        for owner in self.metadata.owner_references or ():
            if owner.controller and owner.kind == "MPIJob" and owner.api_version.partition("/")[0] == mpijob.GROUP:
                return owner.name if self.metadata.name == owner.name + SUFFIX and _NAME.fullmatch(owner.name) else ""
        return ""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A Secret that is to get a pair of `algorithm`."""

    name: str
    comment: str
    algorithm: Algorithm
    is_update: bool

    def filled(self, pair: KeyPair) -> Decision:
        """The decision that puts `pair` in the place of all data."""
        data = {
            PRIVATE: b64encode(pair.private).decode(),
            PUBLIC: b64encode(pair.authorized_key(self.comment)).decode(),
        }
        decision = Decision(name=self.name, annotations={FINGERPRINT: pair.fingerprint})
        decision.patch.append({"op": "add", "path": "/data", "value": data})
        decision.authors.append(AUTHOR)
        if self.is_update:
            decision.notes.append(f"{AUTHOR}: a new {self.algorithm} key pair was put in place of the one written")
        return decision


def judge(request: AdmissionRequest, keys: SshKeys) -> Wanted | Decision:
    """What the Secret needs, or the decision where it needs nothing. Never denies.

    A dry run gets a pair that takes no time and comes from no stock: it is thrown away, so it must neither use up the
    pairs that are ready nor half a second of a processor. A pair of ours that is there already stays: the same request
    may come again.
    """
    untouched = Decision(name=request.name)
    if request.operation not in {"CREATE", "UPDATE"} or request.sub_resource:
        untouched.skipped = "not a CREATE or UPDATE of a Secret"
        return untouched
    try:
        secret = msgspec.json.decode(request.object, type=Secret)
        old = msgspec.json.decode(request.old_object, type=Secret | None)
    except (msgspec.DecodeError, UnicodeDecodeError):
        untouched.skipped = "not a Secret that can be read"
        return untouched
    if (request.kind.group, request.kind.kind) != ("", "Secret") or not (job := secret.job):
        untouched.skipped = "not the SSH keys of an MPIJob"
    elif keys == "operator":
        untouched.skipped = "the policy leaves SSH keys to the operator"
    elif request.operation == "UPDATE" and old is not None and old.data == secret.data:
        untouched.skipped = "the keys stay as they are"
    else:
        comment = f"mpijob/{request.namespace}/{job}"
        if (public := _ours(secret.data or {}, comment, keys)) is not None:
            untouched.skipped = "it has a key pair of ours"
            untouched.annotations[FINGERPRINT] = ssh_pair.fingerprint(public)
            return untouched
        algorithm: Algorithm = "ecdsa-p521" if request.dry_run and keys not in INSTANT else keys
        return Wanted(secret.metadata.name, comment, algorithm, is_update=request.operation == "UPDATE")
    return untouched


def _ours(data: dict[str, str], comment: str, algorithm: Algorithm) -> bytes | None:
    """The line of authorized_keys in `data` when that is a pair as we make it for this job, else None."""
    try:
        private, public = (b64decode(data[key], validate=True) for key in (PRIVATE, PUBLIC))
    except (KeyError, Base64Error, ValueError):
        return None
    named = len(data) == 2 and public.endswith(f" {comment}\n".encode()) and len(public.split()) == 3
    return public if named and ssh_pair.belongs(private, public, algorithm) else None
