"""Policies as administrators write them by mistake.

The first answer at `kubectl apply` says what to write; that written, and nothing else, the second one admits.
`mpijob-webhook policy validate` says the same.
"""

from dataclasses import dataclass
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


@dataclass(frozen=True)
class Mistake:
    text: str
    """The document."""
    said: str
    """The whole of what is wrong with it."""
    wrong: str
    right: str
    """What is written for what."""
    key: str = KEY


def mistake(body: str, said: str, wrong: str, right: str) -> Mistake:
    return Mistake(HEADER + body, said, wrong, right)


MISTAKES = {
    "a text for a list": mistake(
        "rules:\n  images:\n    allowedRegistries: registry.example.com/ml\n",
        "line 5: rules.images.allowedRegistries: must be a list: [registry.example.com/ml]",
        "allowedRegistries: registry.example.com/ml",
        "allowedRegistries: [registry.example.com/ml]",
    ),
    "a line indented too little": mistake(
        "rules:\n  images:\n  allowedRegistries: [registry.example.com/ml]\n",
        "line 4: rules.images: is empty; is the next line indented too little? allowedRegistries belongs to it",
        "  allowedRegistries",
        "    allowedRegistries",
    ),
    "a tab": mistake(
        "rules:\n  gpus:\n\tmax: 4\n", "the document: line 5, column 1: a tab; use spaces", "\tmax", "    max"
    ),
    "a duration without unit": mistake(
        "rules: {job-timeout: {max: 72}}\n",
        "line 3: rules.job-timeout.max: is not a duration; accepted: 72h, 7d or null (it is 72)",
        "max: 72",
        "max: 72h",
    ),
    "a duration in words": mistake(
        "injections: {job-timeout: {default: 7 days}}\n",
        'line 3: injections.job-timeout.default: is not a duration; accepted: 72h, 7d or null (it is "7 days")',
        "7 days",
        "7d",
    ),
    "a rule of another name": mistake(
        "rules: {gpu: {max: 4}}\n", "line 3: rules.gpu: is not a setting; did you mean gpus?", "gpu:", "gpus:"
    ),
    "a setting of another name": mistake(
        "rules: {worker-count: {maximum: 4}}\n",
        "line 3: rules.worker-count.maximum: is not a setting; did you mean max?",
        "maximum",
        "max",
    ),
    "an action of another name": mistake(
        "rules: {gpus: {action: refuse}}\n",
        'line 3: rules.gpus.action: must be deny, warn, audit or off (it is "refuse")',
        "refuse",
        "deny",
    ),
    "a mode without quotes": mistake(
        "mode: off\n",
        "line 3: mode: must be enforce, warn or audit (it is false, as off and no are without quotes)",
        "off",
        "audit",
    ),
    "a number in words": mistake(
        "rules: {gpus: {max: eight}}\n",
        'line 3: rules.gpus.max: must be a whole number (it is "eight")',
        "eight",
        "8",
    ),
    "a rule at the top": mistake(
        "gpus: {max: 4}\n", "line 3: gpus: is a rule: write it below rules", "gpus:", "rules:\n  gpus:"
    ),
    "bounds in the wrong order": mistake(
        "rules: {worker-count: {min: 9, max: 8}}\n",
        "line 3: rules.worker-count: min (9) is above max (8)",
        "min: 9",
        "min: 8",
    ),
    "the name of a namespace": mistake(
        "namespaces: team-a\n",
        "line 3: namespaces: must be a label selector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator:"
        ' In, values: [team-a]}]} (it is "team-a")',
        "namespaces: team-a",
        "namespaces: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: In, values: [team-a]}]}",
    ),
    "labels without matchLabels": mistake(
        "namespaces: {tier: premium}\n",
        "line 3: namespaces: must be a label selector: {matchLabels: {tier: premium}}",
        "{tier: premium}",
        "{matchLabels: {tier: premium}}",
    ),
    "an exemption that is no list": mistake(
        "exemptions:\n  rules: [gpus]\n  users: [alice]\n  reason: OPS-42\n",
        "line 3: exemptions: must be a list: [{rules: [gpus], users: [alice], reason: OPS-42}]",
        "exemptions:\n  rules: [gpus]\n  users: [alice]\n  reason: OPS-42\n",
        "exemptions: [{rules: [gpus], users: [alice], reason: OPS-42}]\n",
    ),
    "an asterisk without quotes": mistake(
        "exemptions:\n- {rules: [*], users: [alice], reason: OPS-42}\n",
        "the document: line 4, column 13: text that begins with * or & needs quotes",
        "[*]",
        '["*"]',
    ),
    "a date as it is written elsewhere": mistake(
        "exemptions:\n- {rules: [gpus], users: [alice], reason: OPS-42, expires: 31.01.2027}\n",
        'line 4: exemptions[0].expires: must be a date such as 2027-01-31 (it is "31.01.2027")',
        "31.01.2027",
        "2027-01-31",
    ),
    "no apiVersion": Mistake(
        "kind: MPIJobPolicy\nmode: warn\n",
        "apiVersion: is missing, write apiVersion: policy.training.openshift.io/v1",
        "kind:",
        "apiVersion: policy.training.openshift.io/v1\nkind:",
    ),
    "another key": Mistake(
        HEADER + "mode: warn\n",
        "the document: is missing: it belongs under the key policy.yaml of data; did you write policy.yml for it?",
        "policy.yml",
        "policy.yaml",
        key="policy.yml",
    ),
    "yes for a number": mistake(
        "rules: {worker-count: {max: yes}}\n",
        "line 3: rules.worker-count.max: must be a whole number (it is true)",
        "yes",
        "8",
    ),
    "an action for a rule": mistake(
        "rules: {gpus: warn}\n",
        'line 3: rules.gpus: must be a mapping: {action: warn} (it is "warn")',
        "gpus: warn",
        "gpus: {action: warn}",
    ),
    "false for an injection": mistake(
        "injections: {shared-memory: false}\n",
        "line 3: injections.shared-memory: must be a mapping: {enabled: false} (it is false, as off and no are without"
        " quotes)",
        "shared-memory: false",
        "shared-memory: {enabled: false}",
    ),
    "false for a rule": mistake(
        "rules: {gpus: off}\n",
        "line 3: rules.gpus: must be a mapping: {action: 'off'} (it is false, as off and no are without quotes)",
        "gpus: off",
        "gpus: {action: 'off'}",
    ),
    "rules in a list": mistake(
        "rules:\n- gpus: {max: 4}\n- slots: {max: 4}\n",
        "line 3: rules: must be a mapping: {gpus: {max: 4}, slots: {max: 4}}",
        "rules:\n- gpus: {max: 4}\n- slots: {max: 4}\n",
        "rules: {gpus: {max: 4}, slots: {max: 4}}\n",
    ),
    "names of injections in a list": mistake(
        "injections: [shared-memory]\n",
        "line 3: injections: must be a mapping: {shared-memory: {}}",
        "[shared-memory]",
        "{shared-memory: {}}",
    ),
    "matchlabels": mistake(
        "namespaces: {matchlabels: {tier: premium}}\n",
        "line 3: namespaces: must be a label selector: {matchLabels: {tier: premium}}",
        "{matchlabels: {tier: premium}}",
        "{matchLabels: {tier: premium}}",
    ),
    "an injection among the rules": mistake(
        "rules: {shared-memory: {enabled: false}}\n",
        "line 3: rules.shared-memory: is an injection: write it below injections",
        "rules:",
        "injections:",
    ),
    "a rule in camel case": mistake(
        "rules: {workerCount: {max: 4}}\n",
        "line 3: rules.workerCount: is not a setting; did you mean worker-count?",
        "workerCount",
        "worker-count",
    ),
    "a spec, as other objects have one": mistake(
        "spec:\n  mode: warn\n",
        "line 3: spec: is not a setting: leave it out, and write what is below it at the start of the line",
        "spec:\n  mode",
        "mode",
    ),
    "the same key twice": mistake(
        "mode: warn\nmode: audit\n",
        'the document: line 4, column 1: the key "mode" is there twice',
        "mode: warn\n",
        "",
    ),
    "an exemption without a reason": mistake(
        "exemptions: [{rules: [gpus], users: [alice]}]\n",
        "line 3: exemptions[0].reason: is missing",
        "users: [alice]",
        "users: [alice], reason: OPS-42",
    ),
    "a registry with its scheme": mistake(
        "rules: {images: {allowedRegistries: [https://registry.example.com]}}\n",
        'line 3: rules.images.allowedRegistries: "https://registry.example.com" starts with a scheme: remove everything'
        " up to and including ://",
        "https://",
        "",
    ),
    "a ConfigMap in the ConfigMap": Mistake(
        f"kind: ConfigMap\n{HEADER}".replace("kind: MPIJobPolicy\n", "") + "mode: warn\n",
        "the document: is a ConfigMap: write here what is below its policy.yaml alone",
        "kind: ConfigMap",
        "kind: MPIJobPolicy",
    ),
    "a mere text": Mistake(
        "hello\n",
        "the document: expected one mapping of kind MPIJobPolicy, found a mere value, no `key: value`",
        "hello\n",
        f"{HEADER}mode: warn\n",
    ),
    "nothing": Mistake(
        "# to do\n",
        "the document: expected one mapping of kind MPIJobPolicy, found nothing",
        "# to do\n",
        f"{HEADER}mode: warn\n",
    ),
}


def test_they_are_all_there() -> None:
    assert len(MISTAKES) == 35


def answer(key: str, text: str) -> str:
    """What the hook says, empty when it admits."""
    written = {**configmap("p", None), "data": {key: text}}
    request = review.AdmissionRequest(uid="u", operation="CREATE", object=msgspec.Raw(msgspec.json.encode(written)))
    response = verdict_on(request, policies=PolicySet(), namespaces=None, now=datetime(2026, 1, 1, tzinfo=UTC)).response
    assert response.allowed == (response.status is None)
    return response.status.message if response.status else ""


@pytest.mark.parametrize("found", MISTAKES.values(), ids=MISTAKES)
def test_one_round(found: Mistake, tmp_path: Path) -> None:
    assert answer(found.key, found.text) == f'policy "p" is broken, and refused:\n{found.said}'
    if found.key == KEY:
        (tmp_path / "p.yaml").write_text(found.text)
        validated = CliRunner().invoke(main, ["policy", "validate", str(tmp_path / "p.yaml")])
        assert found.said in validated.stdout
    key = found.key.replace(found.wrong, found.right)
    assert found.wrong in found.text + found.key
    assert answer(key, found.text.replace(found.wrong, found.right)) == ""


def test_what_is_proposed_as_it_stands_is_what_was_written() -> None:
    """Where the answer has YAML to write, the fix of the table is that and no better one."""
    for found in MISTAKES.values():
        proposed = next((text for lead in PROPOSING if (text := found.said.partition(lead)[2])), "")
        if proposed:
            assert proposed.partition(" (it is")[0] in found.right
            assert yaml.load_all(found.right)
