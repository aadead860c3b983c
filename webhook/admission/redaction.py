"""A review without what may be secret in it, for a record of real reviews. Pure.

Taken out: values of environment variables but for those by which MPI and its networks are set up; words of command
lines and annotations that say that a secret follows; headers of probes; attributes of volumes of drivers; and the
copies of the whole job that kubectl and the API server keep in its metadata. The rest stays: names, images, commands,
labels.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from webhook.api.metadata import LAST_APPLIED

REDACTED: Final = "(redacted)"
# What rules read, and what nobody keeps a secret in.
_KEPT_VARIABLES: Final = re.compile(
    r"(OMPI|PRTE|PMIX|I_MPI|MPICH|MPIR|HYDRA|HOROVOD|NCCL|UCX|FI|OMP|GLOO|NVIDIA|CUDA)_\w+|OMP_NUM_THREADS"
)
# A word that tells of a secret and what follows it, and a password in a URL.
_SECRET: Final = re.compile(
    r"(?i)((?:pass(?:word|wd|phrase)|(?<=[-_])(?:pass|pwd)|(?:secret|private)[-_]?key|secret|token"
    r"|(?:api|access)[-_]?key|credentials?|authorization)(?:[-_][\w-]{0,40})?\\*['\"]?\s{0,8}[=:\s]\s{0,8})"
    r"(?!\(redacted\))(?>\\*(?:\"[^\"]*\"|'[^']*'|['\"]?(?:(?:basic|bearer|token)\s+)?[^\s,;'\"]+))"
    r"|(?<=://)[^/\s@]{1,512}(?=@)"
)
# Mappings whose values belong to the driver of a volume.
_OF_DRIVERS: Final = frozenset({"volumeAttributes", "options"})
_COPIES: Final = frozenset({"managedFields", LAST_APPLIED})
_JSON: Final = ("{", "[")
_WORDS: Final = frozenset({"command", "args"})


class Redaction:
    """Takes out secrets, and counts them."""

    def __init__(self) -> None:
        self.count = 0

    def of(self, value: Any, key: str = "") -> Any:
        """A copy of what stands under `key` of an object, without what may be secret."""
        if isinstance(value, dict):
            return {name: self._member(each, name, key) for name, each in value.items() if name not in _COPIES}
        if not isinstance(value, list):
            return value
        if key in _WORDS:
            return self._command(value)
        each_of = {"env": self._variable, "httpHeaders": self._named}.get(key, self.of)
        return [each_of(each) for each in value]

    def _member(self, value: Any, name: str, key: str) -> Any:
        """What stands under `name` of the mapping under `key`."""
        if key == "annotations":
            return self._annotation(value)
        if (key, name) == ("httpGet", "path"):
            return self._text(value)
        return self._whole(value) if key in _OF_DRIVERS else self.of(value, name)

    def _annotation(self, text: Any) -> Any:
        """Tools keep the whole job in one, in JSON."""
        before = self.count
        try:
            copy = self.of(msgspec.json.decode(text)) if isinstance(text, str) and text[:1] in _JSON else None
        except (msgspec.DecodeError, RecursionError):
            copy = None
        return self._text(text if self.count == before else msgspec.json.encode(copy).decode())

    def _variable(self, variable: Any) -> Any:
        name = variable.get("name") if isinstance(variable, dict) else None
        if isinstance(name, str) and _KEPT_VARIABLES.fullmatch(name):
            return {**variable, "value": self._text(variable["value"])} if "value" in variable else variable
        return self._named(variable)

    def _named(self, entry: Any) -> Any:
        if not isinstance(entry, dict) or "value" not in entry:
            return entry
        return {**entry, "value": self._whole(entry["value"])}

    def _command(self, words: list[Any]) -> list[Any]:
        """A secret may be the word after the one that tells of it."""
        found: list[Any] = []
        for word in words:
            before = found[-1] if found and isinstance(found[-1], str) else ""
            if isinstance(word, str) and before.startswith("-") and _SECRET.fullmatch(f"{before.lstrip('-')}=x"):
                found.append(self._whole(word))
            else:
                found.append(self._text(word))
        return found

    def _text(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        told, count = _SECRET.subn(lambda found: (found[1] or "") + REDACTED, text)
        self.count += count
        return told

    def _whole(self, value: Any) -> Any:
        if not value:
            return value
        self.count += 1
        return REDACTED


def redacted(document: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
    """A copy of a job without what may be secret, and how many values were taken out."""
    redaction = Redaction()
    copy: dict[str, Any] = redaction.of(dict(document))
    return copy, redaction.count
