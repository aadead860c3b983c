"""Jobs with two or three mistakes are admitted after about one round of fixes, because each message names the fix.

Every file in `rounds/` is such a job. To add a job, add a file.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

from tests.support.applied_fixes import applied
from webhook.admission.messages import Finding
from webhook.api import crd_schema
from webhook.cli import files, job_check
from webhook.cli.files import Manifest
from webhook.cli.job_world import JobWorld, of_nothing
from webhook.kit.importance import Importance

JOBS = sorted((Path(__file__).parent / "rounds").glob("*.yaml"))
MAX_ROUNDS = 3
MEAN_ROUNDS = 1.2
WITHOUT_VALUE = re.compile(r"such as|<registry>|^Split it\.")


def rejections(path: Path) -> Iterator[list[Finding]]:
    """The findings of each submission, until the job is admitted without a warning that it cannot run."""
    world = of_nothing()
    (manifest,), errors = files.load([str(path)])
    assert not errors
    for _ in range(MAX_ROUNDS):
        document = manifest.written or manifest.document
        found = wrong(manifest, world)
        if not found:
            return
        yield found
        fixed = applied(document, found)
        assert fixed != document, found
        manifest = Manifest(manifest.source, fixed, written=fixed)
    raise AssertionError(f"still rejected: {wrong(manifest, world)}")


def wrong(manifest: Manifest, world: JobWorld) -> list[Finding]:
    """The violations that reject the job, and the warnings that it cannot run."""
    validation = job_check.check(manifest, world).validation
    return [*validation.denied, *(each for each in validation.warned if each.importance[0] is Importance.FAILS)]


def rounds(path: Path) -> int:
    """The number of submissions with findings. A submission counts twice if the user must choose the value of a fix."""
    return sum(1 + any(WITHOUT_VALUE.search(each.violation.fix) for each in found) for found in rejections(path))


@pytest.mark.parametrize("path", JOBS, ids=lambda path: path.stem)
def test_bad_job_is_admitted_after_its_fixes(path: Path) -> None:
    assert crd_schema.packaged()
    assert rounds(path) >= 1


def test_mean_number_of_rounds_to_admission_is_small() -> None:
    assert len(JOBS) >= 40
    assert mean(map(rounds, JOBS)) <= MEAN_ROUNDS
