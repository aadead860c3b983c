"""Policy ConfigMaps, signed and verified."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from webhook.api import yaml
from webhook.cli import files as manifests
from webhook.cli.files import Manifest
from webhook.cli.policy.documents import mapping
from webhook.cli.terminal import bad, good, printable
from webhook.installation import policy_keys
from webhook.policy import signature, store
from webhook.policy.document import PolicyError
from webhook.policy.in_force import policy_model


class NotSignable(ValueError):
    """There is nothing that can be signed; the message says why."""


@dataclass(frozen=True, slots=True)
class Verified:
    """What a signature says."""

    source: str
    name: str
    serial: int
    """0 where nothing is signed."""
    fault: str
    """Why it does not count; empty where it does."""

    @property
    def good(self) -> bool:
        """Whether it counts."""
        return not self.fault

    def as_text(self) -> str:
        """For people, on a line."""
        verdict = bad(self.fault) if self.fault else good(f"is signed, serial {self.serial}")
        return f'{printable(self.source)}: ConfigMap "{printable(self.name)}" {verdict}'

    def as_json(self) -> dict[str, Any]:
        """For programs."""
        return {"name": self.name, "signed": self.good, "serial": self.serial, "fault": self.fault}


def signed(files: Sequence[str], key: Path, serial: int) -> Iterator[str]:
    """The ConfigMaps in YAML, each a document with its signature; KeyFileError and NotSignable before the first."""
    made = []
    for manifest in _policies(files):
        document, text = manifest.document, _text(manifest)
        try:
            store.read(text, policy_model())
        except PolicyError as error:
            lines = "\n".join(f"  {line}" for line in str(error).splitlines())
            raise NotSignable(f'{manifest.source}: policy "{manifest.name}" is broken:\n{lines}') from None
        metadata = document["metadata"]
        annotation = {signature.ANNOTATION: str(policy_keys.sign(key, manifest.name, serial, text))}
        annotations = {**mapping(metadata, "annotations"), **annotation}
        made.append({**document, "metadata": {**metadata, "annotations": annotations}})
    yield from (f"---\n{yaml.dump(each)}" for each in made)


def verified(files: Sequence[str], keys: Iterable[Path]) -> list[Verified]:
    """Whether each of the policies is signed by one of the keys; KeyFileError and NotSignable."""
    trusted = policy_keys.public_keys(keys)
    found = []
    for manifest in _policies(files):
        written = mapping(mapping(manifest.document, "metadata"), "annotations").get(signature.ANNOTATION, "")
        fault = signature.fault(manifest.name, _text(manifest), str(written), trusted)
        found.append(Verified(manifest.source, manifest.name, store.serial_of(str(written)), fault))
    return found


def _policies(files: Sequence[str]) -> list[Manifest]:
    """The policy ConfigMaps."""
    found, errors = manifests.load(files)
    if errors:
        raise NotSignable("\n".join(map(str, errors)))
    policies = [each for each in found if each.kind == "ConfigMap" and _is_policy(each)]
    if not policies:
        raise NotSignable(
            f"no policy in a ConfigMap in {', '.join(files)}: `policy new NAME --from FILE` makes one of a document"
        )
    return policies


def _is_policy(manifest: Manifest) -> bool:
    labels = mapping(mapping(manifest.document, "metadata"), "labels")
    return labels.get(store.LABEL) == "true" and manifest.name != store.REMEMBERED


def _text(manifest: Manifest) -> str:
    text = mapping(manifest.document, "data").get(store.KEY)
    return text if isinstance(text, str) else ""
