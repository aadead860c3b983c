"""Jobs in the shapes of real ones: the outcome of each is pinned, and together they cover every rule and injection."""

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
    assert not difference, f"if this is meant, run `{COMMAND}`:\n{difference}"


def test_no_outcome_is_left_of_a_job_that_has_gone():
    assert set(CORPUS.glob("*/*.outcome")) == {job.golden for job in JOBS}


def test_the_page_is_as_the_jobs_are():
    assert corpus.PAGE.read_text(encoding="utf-8") == corpus.page(), f"run `{COMMAND}`"


def test_every_injection_does_something():
    found = {author for job in JOBS for verdict in job.verdicts.values() for author in verdict.mutation.authors}
    # The first does nothing in a queue, where the policy of the corpus is in force; the second needs a user.
    others = {"worker-readiness", "created-by"}
    missing = set(injections.REGISTRY) - found - others
    assert not missing, f"tests/corpus: a job, or a setting in its policy.yaml, where these do something: {missing}"
    assert found - {""} == set(injections.REGISTRY) - others


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.title)
def test_in_every_setting_some_job_is_admitted(setting):
    assert any(job.verdicts[setting.title].allowed for job in JOBS)


@EACH
def test_a_job_begins_with_what_it_shows(job):
    assert re.fullmatch(r".+\.", job.comment)


def test_images_come_from_nowhere():
    images = {image for job in JOBS for image in re.findall(r"image: (\S+/\S+)", job.path.read_text())}
    assert {image.partition("/")[0] for image in images} == {"registry.example.com"}
