"""Builds the program with the code of Argo CD and Flux, for the tests that need it."""

from pathlib import Path
from typing import Final

from tests.controlplane.recipe import Recipe, Target

GITOPS: Final = Recipe(
    what="the code of Argo CD and Flux",
    takes="3 to 6 minutes",
    targets=(Target(name="gitops", package="."),),
    root=Path(__file__).parent,
)
