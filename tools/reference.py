"""Writes the reference pages from the code: `python -m tools.reference docs`."""

import ast
import inspect
import json
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from pkgutil import get_data, walk_packages
from string import Template
from types import ModuleType
from typing import Final

import click

import certs
import webhook
from tools.pod_security_table import table
from webhook import PROGRAM
from webhook.admission import pipelines
from webhook.api import yaml
from webhook.cli import explanations
from webhook.cli.explanations import Explanation, Setting
from webhook.cli.main import main
from webhook.cli.policy.document_schema import schema_of_tests
from webhook.kit.importance import Importance
from webhook.parts.job_metrics.metrics import JOB_METRICS
from webhook.parts.standing_audit.metrics import AUDIT_METRICS
from webhook.plugins import loading
from webhook.policy.document import PolicyDocument
from webhook.policy.limits import MAX_CUSTOM_RULES, MAX_ENTRIES
from webhook.rules import REGISTRY
from webhook.server.limits import MAX_NAMESPACE_LABELS
from webhook.server.metrics import METRICS, Metric
from webhook.server.namespace_labels import BEYOND

NOTICE: Final = "<!-- Written by `make docs` out of the code: changes here are lost. -->\n"
HELP_WIDTH: Final = 100
ROOT: Final = Path(__file__).parents[1]
MONITORING: Final = ROOT / "manifests/components/monitoring"


def pages() -> dict[str, str]:
    """The text of every generated page by path in the documentation's folder."""
    entries = explanations.entries()
    return {
        f"reference/{name}.md": NOTICE + "\n".join(lines) + "\n"
        for name, lines in {
            "rules": _entries("Rules", "rule", entries),
            "injections": _entries("Injections", "injection", entries),
            "policy": _policy(entries),
            "cli": _commands(),
            "metrics": _metrics(),
            "pod-security": _pod_security(),
            "limits": _limits(),
            "panels": _panels(),
        }.items()
    }


def write(folder: Path) -> list[Path]:
    """Write all pages into `folder`. Returns their paths."""
    paths = []
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def _entries(title: str, kind: str, entries: Iterable[Explanation]) -> Iterator[str]:
    chosen = [entry for entry in entries if entry.kind == kind]
    yield f"# {title}\n"
    yield _text(kind)
    word = "Action" if kind == "rule" else "Default"
    yield from _table((title[:-1], word, ""), ((f"[{e.id}](#{e.id})", e.default, e.summary) for e in chosen))
    for entry in chosen:
        yield f"\n## {entry.id}\n"
        of = f" of the plug-in {entry.plugin}" if entry.plugin else ""
        yield f"{entry.summary} {word}: {entry.default}. Since {entry.since}{of}."
        if entry.explanation:
            yield f"\n{entry.explanation}"
        if entry.settings:
            yield ""
            yield from _settings(entry.settings)
        if entry.policy:
            yield f"\n```yaml\n{entry.policy}```"


def _policy(entries: Iterable[Explanation]) -> Iterator[str]:
    yield "# Policy document\n"
    yield _text("policy")
    top = [setting for setting in explanations.settings(PolicyDocument) if setting.name not in {"rules", "injections"}]
    yield from _settings(top)
    for kind in ("rule", "injection"):
        yield f"\n## {kind}s\n"
        rows = ((f"[{e.id}]({kind}s.md#{e.id})", *_cells(s)) for e in entries if e.kind == kind for s in e.settings)
        yield from _table(("", "Setting", "Value", "Default", "Meaning"), rows)
    yield "\n## Everything at its default\n"
    defaults = pipelines.load_policy(None).document.model_dump(mode="json", by_alias=True)
    yield f"```yaml\n{yaml.dump(defaults)}```"
    yield "\n## Tests of policies\n"
    schema = schema_of_tests()
    owners = {"": schema, **{f"{name}.": node for name, node in schema["$defs"].items()}}
    fields = {f"{owner}{name}": field for owner, node in owners.items() for name, field in node["properties"].items()}
    yield from _table(("Field", "Meaning"), ((f"`{name}`", field["description"]) for name, field in fields.items()))


def _commands() -> Iterator[str]:
    yield "# Command line\n"
    yield _help(PROGRAM, main)
    for name, command in commands():
        yield f"\n## {name}\n"
        yield _help(f"{PROGRAM} {name}", command)


def commands(group: click.Group = main, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command by full name, such as `policy validate`. A group is before its commands."""
    for name, command in sorted(group.commands.items()):
        yield prefix + name, command
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")


def _help(title: str, command: click.Command) -> str:
    context = click.Context(command, info_name=title, terminal_width=HELP_WIDTH, help_option_names=["-h", "--help"])
    return f"```\n{command.get_help(context)}\n```"


def _metrics() -> Iterator[str]:
    yield "# Metrics\n"
    yield _text("metrics")
    yield from _metric_table(METRICS)
    yield "\n## Jobs\n"
    yield _text("job-metrics")
    yield from _metric_table(JOB_METRICS)
    yield "\n## Audit\n"
    yield _text("audit-metrics")
    yield from _metric_table(AUDIT_METRICS)


def _metric_table(metrics: Iterable[Metric]) -> Iterator[str]:
    rows = ((f"`{m.name}`", m.kind, ", ".join(f"`{label}`" for label in m.labels), m.help) for m in metrics)
    yield from _table(("Metric", "Kind", "Labels", "Meaning"), rows)


def _limits() -> Iterator[str]:
    yield "# Limits\n"
    yield _text("limits")
    packages = (webhook, certs)
    names = (each.name for each in chain.from_iterable(walk_packages(p.__path__, f"{p.__name__}.") for p in packages))
    modules = (import_module(name) for name in sorted(names) if name.endswith(".limits"))
    yield from _table(("Package", "Limit", "Value", "Of what"), chain.from_iterable(map(_limits_of, modules)))


def _panels() -> Iterator[str]:
    yield "# Panels of the dashboards\n"
    yield "[Dashboards](../dashboard.md) says how to install them and what they need."
    for name in ("dashboard", "job-dashboard"):
        (document,) = yaml.load_all((MONITORING / f"{name}.yaml").read_text(encoding="utf-8"))
        for panel in chain.from_iterable(json.loads(text)["panels"] for text in document["data"].values()):
            if panel["type"] != "row":
                yield f"| {panel['title']} | {panel['description']} |"
                continue
            yield f"\n## {panel['title']}\n"
            yield "| Panel | Shows |\n| --- | --- |"


def _limits_of(module: ModuleType) -> Iterator[tuple[str, str, str, str]]:
    """(package, name, value, docstring) of each constant. Docstrings of constants are only in the source."""
    package = module.__name__.rpartition(".")[0]
    for node, text in pairwise(ast.parse(inspect.getsource(module)).body):
        if isinstance(node, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            name = ast.unparse(node.target)
            yield f"`{package}`", f"`{name}`", f"{getattr(module, name):,}", " ".join(str(text.value.value).split())


def _pod_security() -> Iterator[str]:
    yield "# Pod Security checks\n"
    yield _text("pod-security")
    yield table().rstrip("\n")


def _settings(settings: Iterable[Setting]) -> Iterator[str]:
    yield from _table(("Setting", "Value", "Default", "Meaning"), map(_cells, settings))


def _cells(setting: Setting) -> tuple[str, ...]:
    default = f"`{setting.default}`" if setting.default else "required" if setting.required else ""
    return f"`{setting.name}`", setting.type, default, setting.description


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


def _text(name: str) -> str:
    """The introduction to a page or to a part of a page."""
    text = (get_data(__package__, f"reference_texts/{name}.md") or b"").decode()
    certain = ", ".join(f"`{rule.id}`" for rule in REGISTRY.values() if rule.importance is Importance.FAILS)
    return Template(text).substitute(
        program=PROGRAM,
        entries=f"{MAX_ENTRIES:,}",
        custom_rules=MAX_CUSTOM_RULES,
        certain=certain,
        namespaces=MAX_NAMESPACE_LABELS,
        beyond=BEYOND,
    )


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.reference FOLDER")
    loading.load(os.environ.get(loading.VARIABLE, "").split(","))
    for page in write(Path(sys.argv[1])):
        click.echo(page)
