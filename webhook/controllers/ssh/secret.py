"""Puts a key pair into the Secret `<job>-ssh` while the operator creates the Secret.

The operator creates this Secret for every job, and accepts any content under its two keys (mpi-operator
`pkg/controller/mpi_job_controller.go`, getOrCreateSSHAuthSecret). The service changes the content during admission, so
it needs no permission for Secrets.

Any requester is accepted, because the name of the operator's ServiceAccount differs between installations. The owner
reference connects the Secret to its job, and the operator checks it too.
"""

import re
from base64 import b64encode
from dataclasses import dataclass
from typing import Final

import msgspec

from webhook.admission.decision import Decision
from webhook.api import mpijob
from webhook.api.metadata import OwnerReference
from webhook.api.review import AdmissionRequest
from webhook.controllers.ssh.pool import INSTANT, Algorithm, KeyPair
from webhook.policy.document import SshKeys

TYPE: Final = "kubernetes.io/ssh-auth"
PRIVATE: Final = "ssh-privatekey"
PUBLIC: Final = "ssh-publickey"
SUFFIX: Final = "-ssh"
AUTHOR: Final = "ssh-keys"
FINGERPRINT: Final = "ssh-key-fingerprint"
# The characters of Kubernetes names. These characters have no special meaning in authorized_keys.
_NAME = re.compile(r"[a-z0-9.-]+")


class _Metadata(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    owner_references: list[OwnerReference] | None = None


class Secret(msgspec.Struct, gc=False):
    """The fields that are read. The values of `data` are base64."""

    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    type: str = ""
    data: dict[str, str] | None = None

    @property
    def job(self) -> str:
        """The name of the MPIJob whose SSH keys are in the Secret; empty for any other Secret."""
        if self.type != TYPE:
            return ""
        for owner in self.metadata.owner_references or ():
            if owner.controller and owner.kind == "MPIJob" and owner.group == mpijob.GROUP:
                return owner.name if self.metadata.name == owner.name + SUFFIX and _NAME.fullmatch(owner.name) else ""
        return ""


@dataclass(frozen=True, slots=True)
class NeededKey:
    """A Secret that needs a key pair."""

    name: str
    comment: str
    """The comment with the name of the job, for the line in authorized_keys."""
    algorithm: Algorithm

    def filled(self, pair: KeyPair) -> Decision:
        data = {
            PRIVATE: b64encode(pair.private).decode(),
            PUBLIC: b64encode(pair.authorized_key(self.comment)).decode(),
        }
        decision = Decision(name=self.name, annotations={FINGERPRINT: pair.fingerprint})
        decision.patch.append({"op": "add", "path": "/data", "value": data})
        decision.authors.append(AUTHOR)
        return decision


def needed_key(request: AdmissionRequest, keys: SshKeys) -> NeededKey | Decision:
    """Returns a Decision if the Secret needs no key pair. Never denies.

    A dry run discards its pair. So it gets a new pair of a fast algorithm instead of a spare pair.
    """
    untouched = Decision(name=request.name)
    if request.operation != "CREATE" or request.sub_resource:
        untouched.skipped = "not a CREATE of a Secret"
        return untouched
    try:
        secret = msgspec.json.decode(request.object, type=Secret)
    except (msgspec.DecodeError, UnicodeDecodeError):
        untouched.skipped = "not a Secret that can be read"
        return untouched
    if (request.kind.group, request.kind.kind) != ("", "Secret") or not (job := secret.job):
        untouched.skipped = "not the SSH keys of an MPIJob"
    elif keys == "operator":
        untouched.skipped = "the policy leaves SSH keys to the operator"
    else:
        algorithm: Algorithm = "ecdsa-p521" if request.dry_run and keys not in INSTANT else keys
        return NeededKey(secret.metadata.name, f"mpijob/{request.namespace}/{job}", algorithm)
    return untouched
