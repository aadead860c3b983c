"""Signed policies: what a signature is of, where it stands, and what is wrong with one. The keys are handed in.

It is of the ConfigMap's name, a serial number and the text under `policy.yaml`: a text cannot be put under another
name, and one of a lower serial than was in force before is an old version put back.
"""

import re
from dataclasses import dataclass
from typing import Final, Protocol

ANNOTATION: Final = "training.openshift.io/policy-signature"
ALGORITHM: Final = "ed25519"
# In what the service remembers, beside the text of the same name: no ConfigMap has such a name.
REMEMBERED: Final = "_signature."

_FORM: Final = re.compile(rf"{ALGORITHM} ([0-9]{{1,15}}) ([A-Za-z0-9+/]{{86}}==)")


class AnyKey:
    """Takes every signature for good: for whoever has no key, and looks at all else."""

    def verify(self, message: bytes, signature: str) -> bool:
        """True."""
        return True


class Keys(Protocol):
    """The public keys of which one has to have signed."""

    def verify(self, message: bytes, signature: str) -> bool:
        """Whether `signature`, in base64, is one of them on `message`."""
        ...


@dataclass(frozen=True, slots=True)
class Signature:
    """What stands in the annotation."""

    serial: int
    value: str
    """In base64."""

    def __str__(self) -> str:
        return f"{ALGORITHM} {self.serial} {self.value}"


def parse(text: str) -> Signature | None:
    """The signature in an annotation; None for none, or for what is none."""
    found = _FORM.fullmatch(text)
    return Signature(int(found[1]), found[2]) if found else None


def message(name: str, serial: int, text: str) -> bytes:
    """What is signed."""
    return f"mpijob-policy v1\n{name}\n{serial}\n{text}".encode()


def fault(name: str, text: str, written: str, keys: Keys, *, newest: int = 0) -> str:
    """Why this text is not to be applied under this name; empty where it is.

    `written` is what stands in the annotation, `newest` the highest serial that is known to have been in force.
    """
    if not written:
        return f"is not signed: it has no annotation {ANNOTATION}"
    signature = parse(written)
    if signature is None:
        return f"is not signed: its annotation {ANNOTATION} is not `{ALGORITHM} SERIAL BASE64`"
    if not keys.verify(message(name, signature.serial, text), signature.value):
        return "is not signed by a key that the service trusts, or was changed after it was signed"
    if signature.serial < newest:
        return (
            f"is an older version put back: its serial is {signature.serial}, and {newest} was in force; if that is"
            " what you want, sign it again"
        )
    return ""
