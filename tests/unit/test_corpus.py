"""The corpus has jobs like real jobs. The outcome of each job is stored. Together, the jobs cover every injection."""

import re
from difflib import unified_diff

import pytest

from tests.support import corpus
from tests.support.corpus import COMMAND, CORPUS, SETTINGS
from webhook import injections

JOBS = corpus.jobs()
EACH = pytest.mark.parametrize("job", JOBS, ids=lambda job: f"{job.subject}/{job.path.stem}")


@EACH
def test_outcome_of_a_corpus_job_is_unchanged(job):
    expected, found = job.golden.read_text(encoding="utf-8").splitlines(), job.outcome().splitlines()
    difference = "\n".join(unified_diff(expected, found, "as it was", "as it is", n=1, lineterm=""))
    assert not difference, f"if this is intended, run `{COMMAND}`:\n{difference}"


def test_every_outcome_has_a_job():
    assert set(CORPUS.glob("*/*.outcome")) == {job.golden for job in JOBS}


def test_page_matches_the_jobs():
    assert corpus.PAGE.read_text(encoding="utf-8") == corpus.page(), f"run `{COMMAND}`"


def test_every_injection_changes_a_job():
    found = {author for job in JOBS for verdict in job.verdicts.values() for author in verdict.mutation.authors}
    # `worker-readiness` changes no job in a queue, and the corpus' policy is used only for jobs in a queue.
    # `created-by` has no effect without a user.
    without_effect = {"worker-readiness", "created-by"}
    missing = set(injections.REGISTRY) - found - without_effect
    assert not missing, f"add a job to tests/corpus, or a setting to its policy.yaml, for these injections: {missing}"
    assert found - {""} == set(injections.REGISTRY) - without_effect


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.title)
def test_every_setting_admits_at_least_one_job(setting):
    assert any(job.verdicts[setting.title].allowed for job in JOBS)


@EACH
def test_job_starts_with_a_comment(job):
    assert re.fullmatch(r".+\.", job.comment)


def test_images_have_the_example_registry():
    images = {image for job in JOBS for image in re.findall(r"image: (\S+/\S+)", job.path.read_text())}
    assert {image.partition("/")[0] for image in images} == {"registry.example.com"}
