"""Writes the first test of a policy. The test expects the current outcome for a job."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import get_data
from typing import Any, Final

from webhook.api import yaml
from webhook.cli import files, injected
from webhook.cli.files import Manifest
from webhook.cli.policy import job_fields, suite_run
from webhook.cli.policy.configmap import labels_of
from webhook.cli.policy.documents import TEST_KIND
from webhook.cli.policy.suite import PolicyTest
from webhook.cli.policy.suite_document import SuiteDocument
from webhook.policy import layers, store
from webhook.policy.document import API_VERSION
from webhook.policy.in_force import PolicySet, policy_model
from webhook.policy.layers import Layer

FILE: Final = "the first test"

HEADING: Final = """\
# The first test of {policy}: the current outcome for this job. Change the job until it shows the purpose of the policy.
"""


def text(policy: str, *, named: str, job: Path | None) -> str:
    """A test in YAML; ValueError for an unusable job. `policy` is the text of the file `named`."""
    policies = store.load_file(named, policy, policy_model())
    manifest = _job(job)
    selector = policies[0].document.namespaces
    cases = [_case(policies, manifest, "a job where the policy is in force", labels_of(selector))]
    if not policies[0].selects({}):
        cases.append(_case(policies, manifest, "the same job in another namespace", {}))
    document = {"apiVersion": API_VERSION, "kind": TEST_KIND, "policies": [named]}
    body = yaml.dump({**document, "job": manifest.written, "tests": cases})
    return HEADING.format(policy=named) + body


def _job(path: Path | None) -> Manifest:
    if path is None:
        (sample,) = files.parse(get_data(__package__, "sample_job.yaml") or b"", FILE)
        return sample
    manifests, errors = files.load([str(path)])
    jobs = [manifest for manifest in manifests if manifest.kind == "MPIJob"]
    if errors or len(jobs) != 1:
        raise ValueError(str(errors[0]) if errors else f"{path} has {len(jobs)} MPIJobs; a test needs exactly one")
    return jobs[0]


def _case(policies: Sequence[Layer], job: Manifest, name: str, labels: Mapping[str, str]) -> dict[str, Any]:
    case: dict[str, Any] = {"name": name, **({"namespace": {"labels": dict(labels)}} if labels else {})}
    head = {"apiVersion": API_VERSION, "kind": TEST_KIND, "policies": ["."]}
    suite = SuiteDocument.model_validate({**head, "tests": [case]})
    verdict = suite_run.judged(suite, PolicyTest(0, suite.tests[0], job, ()), PolicySet(policies))
    if expected := [
        {"rule": finding.rule, "action": finding.action, **({"field": finding.field} if finding.field else {})}
        for finding in suite_run.reported(verdict)
    ]:
        case["expect"] = expected
    configured = {injection for layer in policies for injection in layers.written(layer.document).get("injections", {})}
    document = verdict.mutation.document or {}
    added = [path for entry in verdict.injected if entry.id in configured for path in injected.fields(entry.patch)]
    if stored := {path: job_fields.get(document, path) for path in added}:
        case["stored"] = stored
    return case
