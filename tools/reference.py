"""Writes the reference pages out of the code: `python -m tools.reference docs`."""

import ast
import inspect
import os
import sys
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import chain, pairwise
from pathlib import Path
from pkgutil import walk_packages
from types import ModuleType
from typing import Final

import click

import certs
import webhook
from webhook import PROGRAM
from webhook.admission import pipelines
from webhook.api import yaml
from webhook.cli import explanations
from webhook.cli.explanations import Explanation, Setting
from webhook.cli.main import main
from webhook.companions.job_metrics import BEYOND
from webhook.companions.limits import MAX_NAMESPACE_LABELS
from webhook.kit.importance import Importance
from webhook.plugins import loading
from webhook.policy.document import PolicyDocument
from webhook.policy.limits import MAX_CUSTOM_RULES, MAX_ENTRIES
from webhook.predict.pod_security.table import table
from webhook.rules import REGISTRY
from webhook.server.metrics import AUDIT_METRICS, JOB_METRICS, METRICS, Metric

NOTICE: Final = "<!-- Written by `make docs` out of the code: changes here are lost. -->\n"
HELP_WIDTH: Final = 100


def pages() -> dict[str, str]:
    """The text of every generated page by its path below the documentation's folder."""
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
        }.items()
    }


def write(folder: Path) -> list[Path]:
    """Write every page below `folder`; returns their paths."""
    written = []
    for name, text in pages().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


def _entries(title: str, kind: str, entries: Iterable[Explanation]) -> Iterator[str]:
    chosen = [entry for entry in entries if entry.kind == kind]
    yield f"# {title}\n"
    yield _INTRODUCTIONS[kind] + "\n"
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
    yield _INTRODUCTIONS["policy"] + "\n"
    top = [setting for setting in explanations.settings(PolicyDocument) if setting.name not in {"rules", "injections"}]
    yield from _settings(top)
    for kind in ("rule", "injection"):
        yield f"\n## {kind}s\n"
        rows = ((f"[{e.id}]({kind}s.md#{e.id})", *_cells(s)) for e in entries if e.kind == kind for s in e.settings)
        yield from _table(("", "Setting", "Value", "Default", "Meaning"), rows)
    yield "\n## Everything at its default\n"
    defaults = pipelines.load_policy(None).document.model_dump(mode="json", by_alias=True)
    yield f"```yaml\n{yaml.dump(defaults)}```"


def _commands() -> Iterator[str]:
    yield "# Command line\n"
    yield _help(PROGRAM, main)
    for name, command in commands():
        yield f"\n## {name}\n"
        yield _help(f"{PROGRAM} {name}", command)


def commands(group: click.Group = main, prefix: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, as `policy validate`, each after the group that it is in."""
    for name, command in sorted(group.commands.items()):
        yield prefix + name, command
        if isinstance(command, click.Group):
            yield from commands(command, f"{prefix}{name} ")


def _help(title: str, command: click.Command) -> str:
    context = click.Context(command, info_name=title, terminal_width=HELP_WIDTH, help_option_names=["-h", "--help"])
    return f"```\n{command.get_help(context)}\n```"


def _metrics() -> Iterator[str]:
    yield "# Metrics\n"
    yield _INTRODUCTIONS["metrics"] + "\n"
    yield from _metric_table(METRICS)
    yield "\n## Jobs\n"
    yield _INTRODUCTIONS["job-metrics"] + "\n"
    yield from _metric_table(JOB_METRICS)
    yield "\n## Audit\n"
    yield _INTRODUCTIONS["audit-metrics"] + "\n"
    yield from _metric_table(AUDIT_METRICS)


def _metric_table(metrics: Iterable[Metric]) -> Iterator[str]:
    rows = ((f"`{m.name}`", m.kind, ", ".join(f"`{label}`" for label in m.labels), m.help) for m in metrics)
    yield from _table(("Metric", "Kind", "Labels", "Meaning"), rows)


def _limits() -> Iterator[str]:
    yield "# Limits\n"
    yield _INTRODUCTIONS["limits"] + "\n"
    packages = (webhook, certs)
    names = (each.name for each in chain.from_iterable(walk_packages(p.__path__, f"{p.__name__}.") for p in packages))
    modules = (import_module(name) for name in sorted(names) if name.endswith(".limits"))
    yield from _table(("Package", "Limit", "Value", "Of what"), chain.from_iterable(map(_limits_of, modules)))


def _limits_of(module: ModuleType) -> Iterator[tuple[str, str, str, str]]:
    """(package, name, value, docstring) of each constant. Its docstring is only in the source."""
    package = module.__name__.rpartition(".")[0]
    for node, text in pairwise(ast.parse(inspect.getsource(module)).body):
        if isinstance(node, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            name = ast.unparse(node.target)
            yield f"`{package}`", f"`{name}`", f"{getattr(module, name):,}", " ".join(str(text.value.value).split())


def _pod_security() -> Iterator[str]:
    yield "# Pod Security checks\n"
    yield _INTRODUCTIONS["pod-security"] + "\n"
    yield table().rstrip("\n")


def _settings(settings: Iterable[Setting]) -> Iterator[str]:
    yield from _table(("Setting", "Value", "Default", "Meaning"), map(_cells, settings))


def _cells(setting: Setting) -> tuple[str, ...]:
    default = f"`{setting.default}`" if setting.default else "required" if setting.required else ""
    return f"`{setting.name}`", setting.type, default, setting.description


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for row in (head, ("---",) * len(head), *rows):
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"


_CERTAIN: Final = ", ".join(f"`{rule.id}`" for rule in REGISTRY.values() if rule.importance is Importance.FAILS)
_INTRODUCTIONS: Final = {
    "rule": f"""\
What a job is checked for when it is created or changed. A violation triggers the rule's action: `deny` rejects the job,
`warn` lets it through with a warning, `audit` writes it to the audit log only, `off` does not look. The action and the
other settings are in the [policy document](policy.md). The name of its rule ends every rejection and warning;
`{PROGRAM} explain NAME` shows what is here.

Rules judge MPIJobs, and TrainJobs only with [`serve --trainer`](../trainer.md). They judge no other Jobs and Pods that
a user creates.""",
    "injection": """\
What is injected into a job when it is created. What the user wrote stays, and nothing new is injected into a job that
exists: an update only puts back what the stored job has and an injection can write. The annotation
`training.openshift.io/injected` lists the injections, for people. A warning names the injections that did something. A
job goes without those in its annotation `training.openshift.io/skip`, unless the policy says otherwise. The
[policy document](policy.md) says which injections are enabled.""",
    "policy": f"""\
What an administrator enforces and injects, in [ConfigMaps](../administrators.md#policies) or with `--policy FILE`.
`apiVersion` and `kind` must be there; the rest is as in the documents of lower priority, and at last at its default,
where the document says nothing. A document with an unknown field or a value out of range is refused as a whole, with
the field and the reason. A list or a mapping takes up to {MAX_ENTRIES:,} entries (`rules.custom`
{MAX_CUSTOM_RULES}).""",
    "metrics": f"""\
At `/metrics` of the operations port, with the standard `process_*` metrics beside them. No label names a namespace, a
user or a job.

Names, kinds and labels are kept from one minor version to the next: metrics, labels and their values are added, and
what is renamed or removed is in the changelog first. Counters end in `_total` and begin at 0 with each process; times
are in seconds; a moment is a `_timestamp_seconds`.

**GPUs saved.** `mpijob_webhook_refused_gpus_total` is what refused jobs asked for. How long they would have held it
nobody knows, so no metric tells of hours saved. What can be said: a job that one of these rules refuses could not have
run in whole, or would have failed, and would have held for nothing what it got:
{_CERTAIN}.
By the other rules the policy keeps GPUs back for others. Who tries again is counted again.""",
    "job-metrics": f"""\
At `/metrics/jobs` of the operations port, with `--job-metrics`; `deadline_remaining_seconds` is there with
`--deadline-events`. The label `namespace` is the job's: it needs `honorLabels` where it is scraped. At most
{MAX_NAMESPACE_LABELS} namespaces have their names, all others are `{BEYOND}`: in counters the first that a
replica meets have them, of verdicts the first that it knows to exist, in gauges the first by name of those that have
jobs now. An accelerator is what the rule `gpus` takes for one by default, and `resource` is its name there:
`nvidia.com/mig-*` for all MIG profiles, and the resource of the class for devices that pods get by claims of their own,
as far as the number is in the ResourceClaimTemplate.

Every replica reports all jobs. So take `max by (namespace) (...)` of the replicas, of counters after `rate`; a `sum`
counts each job as often as there are replicas. Only verdicts (`mpijob_webhook_namespace_*`) are those of one replica,
and summed. A counter begins at 0 with each process and counts what it sees from its first list on; whatever happens
while no replica runs is counted by none. A rate of a few minutes is right while one replica has been running for so
long, so the recording rules of `manifests/components/monitoring` keep those: the average of
`namespace:training_operator_mpijob_succeeded:rate5m` over a day, times 86400, is the number of a day in which replicas
were restarted. They also give the gauges `running` and `queued` the names that end in `_total`, for those who ask by
them.""",
    "audit-metrics": """\
At `/metrics/jobs` too, with `--audit`, and with the same bound on namespaces. Every replica judges all jobs that have
not ended, so take the `max` of the replicas, never the `sum`. A replica that has not judged all jobs yet tells of none.
A job that breaks several rules is counted once for each of them in `audit_violations`, and once in `audit_refused`.""",
    "limits": """\
What limits sizes, numbers of items and waiting. Work as such has one limit, on the processor time of a decision: see
[what one review may cost](../../SECURITY.md#what-one-review-may-cost). The others protect memory, calls that nothing
can interrupt, the API server, or readers of a message.""",
    "pod-security": """\
What [Pod Security](../pod-security.md) asks of a pod, by level and version. `containers[*]` stands for containers, init
containers and ephemeral containers alike. Versions after the newest one here mean that one.""",
}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tools.reference FOLDER")
    loading.load(os.environ.get(loading.VARIABLE, "").split(","))
    for page in write(Path(sys.argv[1])):
        click.echo(page)
