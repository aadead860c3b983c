"""The recipe of a program that contains the code of Argo CD and Flux."""

from pathlib import Path
from typing import Final

from tests.controlplane.recipe import Recipe, Target

GITOPS: Final = Recipe(
    what="the code of Argo CD and Flux",
    takes="3 to 6 minutes",
    targets=(Target(name="gitops", package="."),),
    root=Path(__file__).parent,
)
