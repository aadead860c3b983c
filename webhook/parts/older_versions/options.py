"""The user's options for jobs of older versions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Options for all jobs."""

    gpus_per_node: int | None = None
    """The flag of that name (or --processing-units-per-node) of the operator that ran v1alpha1 jobs."""
    ssh_path: str | None = None
    """Mount path of the keys; None for the operator's default."""
    keep_launcher_small: bool = False
    """A launcher that requests GPUs loses them, and runs no ranks."""
