"""The stable API for plug-ins. Removing a name or a parameter requires a new major version."""

import ast
import inspect
from pathlib import Path

import msgspec
import pytest

from tests.support.paths import ROOT
from webhook.plugins import api, testing

TEMPLATE = ROOT / "examples" / "plugin"


def test_api_has_exactly_the_stable_names() -> None:
    assert api.__all__ == [
        "ABSENT", "ITEM", "LAUNCHER", "NAMESPACES", "UNKNOWN", "WORKER", "Action", "Admitted", "Answer", "CauseReason",
        "Caution", "ComesBack", "Context", "Degree", "Form", "Importance", "InjectionSettings", "MPIJob", "Namespace",
        "Note", "PatchBuilder", "Path", "RuleSettings", "Settings", "Span", "Violation", "WarningRuleSettings",
        "a_text", "equal", "in_launcher", "in_templates", "in_worker", "injection", "replica_path", "rule",
        "template_path",
    ]  # fmt: skip
    assert all(hasattr(api, name) for name in api.__all__)


PARAMETERS = {
    api.rule: ["rule_id", "settings", "since", "admits", "importance"],
    api.injection: ["injection_id", "settings", "since", "unskippable", "importance", "forms"],
    api.Violation: ["path", "message", "fix", "reason", "advisory", "audit_only", "of_lines", "degree"],
    api.PatchBuilder.get: ["self", "path"],
    api.PatchBuilder.add: ["self", "path", "value", "over"],
    api.PatchBuilder.append: ["self", "path", "item", "key"],
    api.PatchBuilder.add_entries: ["self", "path", "entries"],
    api.Form: ["path", "holds", "when"],
    api.Note: ["text", "brief"],
    api.in_launcher: ["path", "holds", "when"],
    api.in_templates: ["path", "holds", "when"],
    api.in_worker: ["path", "holds"],
    api.replica_path: ["role"],
    api.template_path: ["role"],
    testing.violations: ["check", "job", "settings", "old", "namespace", "view"],
    testing.injected: ["inject", "job", "settings", "namespace", "view"],
}


@pytest.mark.parametrize("name", PARAMETERS, ids=lambda each: each.__qualname__)
def test_stable_parameters_are_the_first_current_parameters(name: object) -> None:
    expected = PARAMETERS[name]  # type: ignore[index]
    assert list(inspect.signature(name).parameters)[: len(expected)] == expected  # type: ignore[arg-type]


FIELDS = {
    api.Context: {
        "operation",
        "namespace",
        "username",
        "groups",
        "old",
        "document",
        "old_document",
        "view",
        "admitted",
    },
    api.MPIJob: {"api_version", "kind", "metadata", "spec"},
    api.Namespace: {"name", "labels"},
    api.Degree: {"of", "amount"},
    api.Span: {"least", "most"},
    api.Admitted: {"workers", "gpus", "job_gpus", "slots", "seconds", "accelerators"},
}


@pytest.mark.parametrize("name", FIELDS, ids=lambda each: each.__qualname__)
def test_stable_fields_exist(name: type[msgspec.Struct]) -> None:
    assert {field.name for field in msgspec.structs.fields(name)} >= FIELDS[name]


@pytest.mark.parametrize("path", sorted(TEMPLATE.rglob("*.py")), ids=lambda path: path.name)
def test_plugin_template_imports_only_the_stable_modules(path: Path) -> None:
    imported = {
        node.module
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(("webhook", "certs"))
    }
    assert imported <= {"webhook.plugins.api", "webhook.plugins.testing"}
    assert "tests" in path.parts or "webhook.plugins.testing" not in imported
