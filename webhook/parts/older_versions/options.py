"""What a user says about jobs of older versions."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """Said once for all jobs."""

    gpus_per_node: int | None = None
    """The flag of that name (or --processing-units-per-node) of the operator that ran v1alpha1 jobs."""
    ssh_path: str | None = None
    """Where the keys are mounted; None for the operator's default."""
    keep_launcher_small: bool = False
    """A launcher that asks for GPUs loses them, in place of running ranks."""
