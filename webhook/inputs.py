"""What commands are given: read, or the command ends as unusable with the reason."""

from pathlib import Path

from webhook import admission, level_check, manifests
from webhook.admission import Policy
from webhook.cluster.snapshot import Snapshot, SnapshotError
from webhook.pod_security import LevelVersion
from webhook.policy.document import PolicyError
from webhook.terminal import fail


def policy(path: Path | None) -> Policy:
    """The policy in the file at `path`, the built-in one for None."""
    try:
        return admission.load_policy(manifests.read(str(path)) if path else None)
    except manifests.ManifestError as error:
        fail(error)
    except PolicyError as error:
        fail(*(f"{path}: {line}" for line in str(error).splitlines()))


def cluster(path: Path | None) -> Snapshot:
    """The cluster in the file at `path`, one of which nothing is known for None."""
    found, errors = manifests.load([str(path)] if path else [])
    if errors:
        fail(*errors)
    try:
        return Snapshot(manifest.document for manifest in found)
    except SnapshotError as error:
        fail(f"{path}: {error}")


def level(text: str | None) -> LevelVersion | None:
    """The Pod Security level that `text` names."""
    try:
        return None if text is None else level_check.parse(text)
    except ValueError as error:
        fail(f"--level: {error}")
