"""Options for the conversion of older jobs."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Options of `convert mpijob`."""

    gpus_per_node: int | None = None
    """The value of the old operator's flag --gpus-per-node or --processing-units-per-node, for v1alpha1 jobs."""
    ssh_path: str | None = None
    """Mount path of the SSH keys; None for the operator's default."""
    keep_launcher_small: bool = False
    """Whether a launcher's GPU requests are removed, so that it runs no ranks."""
