"""The recipe that builds Kubeflow Trainer and JobSet for tests."""

from pathlib import Path
from typing import Final

from tests.controlplane.recipe import Data, Recipe, Target

_TRAINER: Final = "github.com/kubeflow/trainer/v2"
_JOBSET: Final = "sigs.k8s.io/jobset"

TRAINER: Final = Recipe(
    what="Kubeflow Trainer with JobSet",
    takes="2 to 4 minutes",
    targets=(
        Target(name="trainer", package=f"{_TRAINER}/cmd/trainer-controller-manager"),
        Target(name="jobset", package=_JOBSET),
    ),
    data=(
        Data(module=_TRAINER, globs=("manifests/base/crds/trainer*.yaml",), into="crds"),
        Data(module=_JOBSET, globs=("config/components/crd/bases/*.yaml",), into="crds"),
        Data(module=_TRAINER, globs=("manifests/base/runtimes/*_distributed.yaml",), into="runtimes"),
        Data(module=_TRAINER, globs=("manifests/base/webhook/manifests.yaml",), into="trainer-webhooks.yaml"),
        Data(module=_JOBSET, globs=("config/components/webhook/manifests.yaml",), into="jobset-webhooks.yaml"),
    ),
    root=Path(__file__).parent,
)
