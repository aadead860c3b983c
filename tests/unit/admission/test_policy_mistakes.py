"""Policies with typical mistakes of administrators.

The rejection at `kubectl apply` contains the fix. With only this fix, the policy is admitted. `mpijob-webhook policy
validate` prints the same message.
"""

import re
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from tests.support.policies import HEADER, configmap
from webhook.admission.policy_review import verdict_on
from webhook.api import review, yaml
from webhook.cli.main import main
from webhook.policy.in_force import PolicySet
from webhook.policy.store import KEY

PROPOSING = ("must be a list: ", "must be a mapping: ", "must be a label selector: ")
MISTAKE = re.compile("«(.*?)→(.*?)»", re.DOTALL)

TEAM_A = "{matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [team-a]}]}"
# Each item is a policy without its header, and the expected message. «wrong→right» marks the mistake and its fix.
BELOW_HEADER = [
    (
        "rules:\n  images:\n    allowedRegistries: «registry.example.com/ml→[registry.example.com/ml]»",
        "line 5: rules.images.allowedRegistries: must be a list: [registry.example.com/ml]",
    ),
    (
        "rules:\n  images:\n«  allowedRegistries→    allowedRegistries»: [registry.example.com/ml]",
        "line 4: rules.images: is empty; is the next line indented too little? allowedRegistries belongs to it",
    ),
    ("rules:\n  gpus:\n«\tmax→    max»: 4", "the document: line 5, column 1: a tab; use spaces"),
    (
        "rules: {job-timeout: {«max: 72→max: 72h»}}",
        "line 3: rules.job-timeout.max: is not a duration; accepted: 72h, 7d or null (it is 72)",
    ),
    ("rules: {«gpu:→gpus:» {max: 4}}", "line 3: rules.gpu: is not a setting; did you mean gpus?"),
    (
        "rules: {gpus: {action: «refuse→deny»}}",
        'line 3: rules.gpus.action: must be deny, warn, audit or off (it is "refuse")',
    ),
    (
        "mode: «off→audit»",
        "line 3: mode: must be enforce, warn or audit (it is false: without quotes, off and no mean false)",
    ),
    ("rules: {gpus: {max: «eight→8»}}", 'line 3: rules.gpus.max: must be a whole number (it is "eight")'),
    ("«gpus:→rules:\n  gpus:» {max: 4}", "line 3: gpus: is a rule: write it below rules"),
    ("rules: {worker-count: {«min: 9→min: 8», max: 8}}", "line 3: rules.worker-count: min (9) is above max (8)"),
    (
        f"namespaces: «team-a→{TEAM_A}»",
        f'line 3: namespaces: must be a label selector: {TEAM_A} (it is "team-a")',
    ),
    (
        "namespaces: «{tier: premium}→{matchLabels: {tier: premium}}»",
        "line 3: namespaces: must be a label selector: {matchLabels: {tier: premium}}",
    ),
    (
        "exemptions:«\n  rules: [gpus]\n  users: [alice]\n  reason: x→ [{rules: [gpus], users: [alice], reason: x}]»",
        "line 3: exemptions: must be a list: [{rules: [gpus], users: [alice], reason: x}]",
    ),
    (
        'exemptions:\n- {rules: «[*]→["*"]», users: [alice], reason: OPS-42}',
        "the document: line 4, column 13: text that begins with * or & needs quotes",
    ),
    (
        "exemptions:\n- {rules: [gpus], users: [alice], reason: OPS-42, expires: «31.01.2027→2027-01-31»}",
        'line 4: exemptions[0].expires: must be a date such as 2027-01-31 (it is "31.01.2027")',
    ),
    (
        "rules: {«gpus: warn→gpus: {action: warn}»}",
        'line 3: rules.gpus: must be a mapping: {action: warn} (it is "warn")',
    ),
    (
        "injections: {«shared-memory: false→shared-memory: {enabled: false}»}",
        "line 3: injections.shared-memory: must be a mapping: {enabled: false} (it is false:"
        " without quotes, off and no mean false)",
    ),
    (
        "rules: {«gpus: off→gpus: {action: 'off'}»}",
        "line 3: rules.gpus: must be a mapping: {action: 'off'} (it is false: without quotes, off and no mean false)",
    ),
    (
        "«rules:\n- gpus: {max: 4}\n- slots: {max: 4}→rules: {gpus: {max: 4}, slots: {max: 4}}»",
        "line 3: rules: must be a mapping: {gpus: {max: 4}, slots: {max: 4}}",
    ),
    (
        "«rules:→injections:» {shared-memory: {enabled: false}}",
        "line 3: rules.shared-memory: is an injection: write it below injections",
    ),
    (
        "«spec:\n  mode→mode»: warn",
        "line 3: spec: is not a setting: remove it, and write its content without indentation",
    ),
    (
        "«mode: warn\n→»mode: audit",
        'the document: line 4, column 1: the key "mode" is there twice, first in line 3: remove one of them',
    ),
    (
        "exemptions: [{rules: [gpus], «users: [alice]→users: [alice], reason: OPS-42»}]",
        "line 3: exemptions[0].reason: is missing",
    ),
    (
        "rules: {images: {allowedRegistries: [«https://→»registry.example.com]}}",
        'line 3: rules.images.allowedRegistries: "https://registry.example.com" starts with a scheme: remove everything'
        " up to and including ://",
    ),
]
WHOLE = [
    (
        "«kind:→apiVersion: policy.training.openshift.io/v1\nkind:» MPIJobPolicy\nmode: warn\n",
        "apiVersion: is missing, write apiVersion: policy.training.openshift.io/v1",
    ),
    (
        "«kind: ConfigMap→kind: MPIJobPolicy»\napiVersion: policy.training.openshift.io/v1\nmode: warn\n",
        "the document: is a ConfigMap: write only the content of its policy.yaml",
    ),
    (
        f"«hello\n→{HEADER}mode: warn\n»",
        "the document: expected one mapping of kind MPIJobPolicy, found a plain value, not `key: value`",
    ),
    (f"«# to do\n→{HEADER}mode: warn\n»", "the document: expected one mapping of kind MPIJobPolicy, found nothing"),
]
MISTAKES = [*((HEADER + text + "\n", message) for text, message in BELOW_HEADER), *WHOLE]


def answer(text: str, key: str = KEY) -> str:
    """The message of the rejection; empty if the policy is admitted."""
    written = {**configmap("p", None), "data": {key: text}}
    request = review.AdmissionRequest(uid="u", operation="CREATE", object=msgspec.Raw(msgspec.json.encode(written)))
    response = verdict_on(request, policies=PolicySet(), namespaces=None, now=datetime(2026, 1, 1, tzinfo=UTC)).response
    assert response.allowed == (response.status is None)
    return response.status.message if response.status else ""


@pytest.mark.parametrize(("text", "message"), MISTAKES)
def test_policy_with_a_mistake_is_rejected_and_the_suggested_fix_is_admitted(
    text: str, message: str, tmp_path: Path
) -> None:
    wrong, right = MISTAKE.sub(r"\1", text), MISTAKE.sub(r"\2", text)
    assert answer(wrong) == f'policy "p" was rejected:\n{message}'
    (tmp_path / "p.yaml").write_text(wrong)
    assert message in CliRunner().invoke(main, ["policy", "validate", str(tmp_path / "p.yaml")]).stdout
    assert answer(right) == ""
    # If the message suggests YAML, the corrected policy in the table contains this YAML.
    proposed = next((found for lead in PROPOSING if (found := message.partition(lead)[2])), "")
    if proposed:
        assert proposed.partition(" (it is")[0] in right
        assert yaml.load_all(right)


def test_rejection_of_a_document_under_a_wrong_key_names_the_right_key() -> None:
    missing = "is missing: it belongs under the key policy.yaml of data; rename the key policy.yml"
    assert answer(HEADER, "policy.yml") == f'policy "p" was rejected:\nthe document: {missing}'
