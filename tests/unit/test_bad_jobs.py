"""The bad jobs from which the page "What the rules say" is generated."""

from tests.support.bad_jobs.cases import cases, causes
from webhook.rules import REGISTRY


def test_every_rule_rejects_a_bad_job() -> None:
    missing = REGISTRY.keys() - {cause.rule for case in cases() for cause in causes(case)}
    assert not missing, f"add a mistake to tests/support/bad_jobs/breaks.yaml for these rules: {sorted(missing)}"
