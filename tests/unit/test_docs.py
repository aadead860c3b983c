"""The documentation is complete and matches the code."""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.support import corpus
from tests.support.paths import DOCS, EXAMPLES, MANIFESTS, ROOT
from tools import reference
from tools.site_docs import contents
from webhook import injections
from webhook.api import annotations, yaml
from webhook.cli import explanations, files
from webhook.cli.job_check import check
from webhook.cli.job_verdict import Verdict
from webhook.cli.job_world import JobWorld
from webhook.cli.policy import documents
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.parts.standing_audit.metrics import AUDIT_METRICS
from webhook.policy.document import PolicyDocument
from webhook.server.metrics import METRICS

WRITTEN = tuple(sorted(path.name for path in DOCS.glob("*.md")))
EVIDENCE = ("reference/requirements.md",)
REAL_JOBS = "reference/real-jobs.md"
PAGES = reference.pages()
COMMANDS = dict(reference.commands())


def test_every_page_is_in_the_index_and_the_navigation() -> None:
    listed = {*contents.USERS, *contents.ADMINISTRATORS, *contents.CONTRIBUTORS}
    written = {name.removesuffix(".md") for name in (*WRITTEN, *EVIDENCE)}
    assert {*listed, "index"} == written | {"SECURITY", "CHANGELOG", "README"}
    assert [name for name in WRITTEN if name != "index.md" and f"({name}" not in page("index.md")] == []


def page(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(PAGES))
def test_generated_pages_match_the_code(name: str) -> None:
    assert page(name) == PAGES[name], "run `make docs`"


def test_no_stale_generated_page_exists() -> None:
    found = {str(path.relative_to(DOCS)) for path in (DOCS / "reference").iterdir()}
    # test_licences.py checks licences.md, test_corpus.py checks real-jobs.md.
    assert found == {*PAGES, *EVIDENCE, REAL_JOBS, "reference/licences.md"}


@pytest.mark.parametrize("entry", explanations.entries(), ids=lambda entry: f"{entry.kind}:{entry.id}")
def test_reference_has_every_rule_injection_and_setting(entry: explanations.Explanation) -> None:
    text = page(f"reference/{entry.kind}s.md")
    assert f"\n## {entry.id}\n\n{entry.summary} " in text, "run `make docs`"
    section = text.partition(f"\n## {entry.id}\n")[2].partition("\n## ")[0]
    assert entry.explanation in section
    for setting in entry.settings:
        assert f"| `{setting.name}` | " in section
        assert f"| [{entry.id}]({entry.kind}s.md#{entry.id}) | `{setting.name}` | " in page("reference/policy.md")


def test_policy_reference_has_every_setting() -> None:
    for field in PolicyDocument.model_fields.values():
        name = field.alias or ""
        assert f"| `{name}` | " in page("reference/policy.md") or f"\n## {name}\n" in page("reference/policy.md"), name


@pytest.mark.parametrize("name", COMMANDS)
def test_cli_reference_has_every_command_and_option(name: str) -> None:
    section = page("reference/cli.md").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    assert f"Usage: mpijob-webhook {name} " in section
    for option in COMMANDS[name].params:
        if isinstance(option, click.Option):
            assert all(text in section for text in option.opts)


@pytest.mark.parametrize("name", [name for name in COMMANDS if name.startswith("policy ")])
def test_administrator_pages_show_every_policy_command(name: str) -> None:
    assert f"mpijob-webhook {name}" in page("write-policies.md")


def test_metrics_reference_has_every_metric() -> None:
    for metric in (*METRICS, *JOB_METRICS, *AUDIT_METRICS):
        assert f"| `{metric.name}` | {metric.kind} | " in page("reference/metrics.md")
    named = set(re.findall(r"mpijob_webhook_[a-z_]+", "".join(map(page, WRITTEN))))
    assert named <= {metric.name for metric in (*METRICS, *AUDIT_METRICS)}


def test_user_pages_have_every_annotation() -> None:
    keys = [value for value in vars(annotations).values() if isinstance(value, str) and value.startswith("training.op")]
    shown = "".join(page(f"{name}.md") for name in contents.USERS)
    assert keys
    assert [key for key in keys if key not in shown] == []


READY_MADE = sorted({path.stem for path in (MANIFESTS / "policies").glob("*.yaml")} - {"kustomization"})


@pytest.mark.parametrize("name", READY_MADE)
def test_policies_page_describes_every_ready_made_policy(name: str) -> None:
    link = f"[{name}.yaml](../manifests/policies/{name}.yaml)"
    (section,) = [each for each in page("policies.md").split("\n### ")[1:] if link in each.split("\n\n")[1]]
    for lead in ("\n**For** ", "\n**What it changes.** ", "\n**Living with it.** "):
        assert lead in section, lead


def _policies() -> Iterator[str]:
    for name in (*WRITTEN, *PAGES):
        for block in re.findall(r"```yaml\n(.*?)```", page(name), re.DOTALL):
            if re.search(r"kind: MPIJobPolicy$", block, re.MULTILINE) and not block.startswith("# broken.yaml\n"):
                yield block


def test_every_policy_in_the_docs_is_valid(tmp_path: Path) -> None:
    blocks = list(_policies())
    assert len(blocks) > len(explanations.entries())
    for block in blocks:
        (tmp_path / "policy.yaml").write_text(block)
        found = documents.load([str(tmp_path / "policy.yaml")]).policies
        assert found
        for policy in found:
            assert policy.faults == ()
            assert policy.labelled


@pytest.mark.parametrize(
    "name", [*WRITTEN, *PAGES, *EVIDENCE, REAL_JOBS, "../README.md", "../SECURITY.md", "../CHANGELOG.md"]
)
def test_link_targets_exist(name: str) -> None:
    for target in re.findall(r"\]\(([^)]+)\)", page(name)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (DOCS / name).parent / path if path else DOCS / name
        assert file.exists(), target
        assert not anchor or anchor in _anchors(file), target


def test_runbook_has_a_section_for_each_alert() -> None:
    (rule,) = yaml.load_all((MANIFESTS / "components/monitoring/alerts.yaml").read_text(encoding="utf-8"))
    for alert in (alert for group in rule["spec"]["groups"] for alert in group["rules"]):
        path, _, anchor = alert["annotations"]["runbook_url"].partition("#")
        assert anchor == alert["alert"].lower()
        assert anchor in _anchors(ROOT / path), alert["alert"]
        section = page("runbook.md").partition(f"\n### {alert['alert']}\n\n")[2].partition("\n#")[0]
        assert len(section) > 50, alert["alert"]


# Placeholders for names that the reader chooses.
PLACEHOLDER = re.compile(r"my_(rule|injection|kind|command)\b")


@pytest.mark.parametrize("name", ["development.md", "architecture.md"])
def test_every_file_in_the_docs_exists(name: str) -> None:
    named = re.findall(r"`((?:webhook|certs|tests|manifests|docs)/[^` ]*|[A-Z]+\.md|Makefile)`", page(name))
    assert named
    for path in named:
        if PLACEHOLDER.search(path):
            assert (ROOT / path).parent.is_dir(), path
        else:
            assert (ROOT / path).exists(), path


def test_every_make_target_in_the_docs_exists() -> None:
    targets = re.findall(r"^([a-z]+):", page("../Makefile"), re.MULTILINE)
    shown = re.findall(r"\bmake ((?:[a-z]+ ?)+)(?:`|  )", page("development.md"))
    assert shown
    assert {target for group in shown for target in group.split()} <= set(targets)


def test_each_threat_names_existing_tests() -> None:
    (table,) = re.findall(r"^\| who \| could try \|.*\n\|---.*\n((?:\|.*\n)+)", page("../SECURITY.md"), re.MULTILINE)
    for row in table.splitlines():
        files = [ROOT / path for path in re.findall(r"\]\((tests/[^)#]+)\)", row)]
        assert files, row
        text = "".join(file.read_text(encoding="utf-8") for file in files)
        assert [name for name in re.findall(r"`(test_\w+)`", row) if f"def {name}(" not in text] == [], row


def _anchors(file: Path) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_commands_in_the_docs_exist() -> None:
    """The test checks each `mpijob-webhook COMMAND --options` in the pages and in the help."""
    texts = [page(name) for name in (*WRITTEN, *PAGES)] + [page("../README.md")]
    shown = re.findall(r"mpijob-webhook ((?:policy |certs |schema )?[a-z]+)((?: [^\n`|]*)?)", "\n".join(texts))
    assert shown
    for written, rest in shown:
        command = written
        if written == "convert":  # `convert FILE` is short for `convert mpijob FILE`
            named = f"convert {rest.split()[0] if rest.strip() else ''}"
            command = named if named in COMMANDS else "convert mpijob"
        assert command in COMMANDS or not command.startswith("policy "), command
        if command in COMMANDS:
            known = {text for option in COMMANDS[command].params for text in (*option.opts, "--help")}
            assert set(re.findall(r"(?<=\s)--?[a-z][a-z0-9-]*", rest.partition(" -- ")[0])) <= known, f"{command}{rest}"


def test_rejection_in_the_docs_matches_the_output() -> None:
    lines = re.findall(r"^\* (spec\S+): (.*) \[([a-z-]+)\](?: \(and 1 more\))?$", page("rejections.md"), re.MULTILINE)
    verdict = _checked("bad-one-worker.yaml").as_json()
    causes = [(cause["field"], cause["message"], cause["rule"]) for cause in verdict["causes"]]
    assert lines == causes


def test_table_of_frequent_messages_matches_the_corpus() -> None:
    messages: list[str] = []
    jobs: Counter[str] = Counter()
    for job in corpus.jobs():
        reported = re.findall(r"^  (?:warning|rejected): (.*\])$", job.golden.read_text(encoding="utf-8"), re.MULTILINE)
        jobs.update({line.rpartition("[")[2].removesuffix("]") for line in reported})
        messages += reported
    rows = re.findall(r"^\| `(.+)` `\[([a-z-]+)\]` \| ([^|]+) \|$", page("rejections.md"), re.MULTILINE)
    for text, rule, _ in rows:
        assert any(text in line and line.endswith(f"[{rule}]") for line in messages), text
    missing = {rule for rule, count in jobs.items() if count >= 3} - {rule for _, rule, _ in rows}
    assert not missing, f"add a row to the table of messages in docs/rejections.md for {missing}"


def test_check_output_in_the_docs_matches_the_output() -> None:
    title, *shown = (
        page("injections.md").partition("$ mpijob-webhook check openmpi-pi.yaml\n")[2].partition("```")[0].split("\n")
    )
    assert title == "openmpi-pi.yaml: default/openmpi-pi: admitted"
    real = [click.unstyle(line) for line in _checked("openmpi-pi.yaml").as_text()]
    shown = [line for line in shown if line.strip() not in {"...", ""}]
    assert len(shown) > 5
    assert [line for line in real if line in shown] == shown


def test_injections_page_has_a_row_for_every_injection() -> None:
    rows = re.findall(
        r"^\| \[`(.*)`\]\(reference/injections\.md#(.*)\) \| (.+) \| (.+) \| (.+) \|$",
        page("injections.md"),
        re.MULTILINE,
    )
    listed = [name for name, *_ in rows]
    missing = [name for name in injections.REGISTRY if name not in listed]
    assert not missing, f"add a row to the table in docs/injections.md for {missing}"
    assert listed == list(injections.REGISTRY), "docs/injections.md: use the order of `mpijob-webhook rules`"
    assert all(name == anchor for name, anchor, *_ in rows)


@pytest.mark.parametrize("setting", ["`required`", "`injectOnly`", "`injectionWarnings`"])
def test_write_policies_page_has_the_settings_shared_by_injections(setting: str) -> None:
    section = page("write-policies.md").partition("\n## Injections\n")[2].partition("\n## ")[0]
    assert f"- {setting}" in section or f"| {setting} |" in section
    assert f"{setting.strip('`')}: " in section.partition("```yaml\n")[2].partition("```")[0]


def _checked(example: str) -> Verdict:
    (manifest,), _ = files.load([str(EXAMPLES / example)])
    return check(manifest, JobWorld())


def test_all_generated_pages_are_written(tmp_path: Path) -> None:
    assert sorted(reference.write(tmp_path)) == sorted(tmp_path / name for name in PAGES)
    assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in PAGES} == PAGES
