"""Writes packages with plug-ins into a folder, as pip does, and loads the plug-ins for the duration of a block."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from webhook import injections, rules
from webhook.cli.policy.document_schema import json_schema
from webhook.plugins import loading
from webhook.policy.in_force import policy_model

RULE = '''"""Says no."""
from webhook.plugins.api import *

class Settings(RuleSettings):
    """Its settings."""
    word: str = "no"

@rule("{id}", Settings, since="1.0")
def check(job, settings, ctx):
    """Say it."""
    {body}
'''
INJECTION = '''"""Adds something."""
from webhook.plugins.api import *

@injection("{id}", InjectionSettings, since="1.0", forms={forms})
def inject(job, settings, ctx, patch):
    """Add it."""
    {body}
'''
SAYS_NO = 'yield Violation("spec", f"I say {settings.word}", fix="Give up.")'


def install(folder: Path, name: str, modules: Mapping[str, str], points: Mapping[str, Mapping[str, str]]) -> None:
    """Write a package with these modules. `points` maps the last word of a group to its entry points, {name: value}."""
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [
        line
        for group, entries in points.items()
        for line in (f"[mpijob_webhook.{group}]", *(f"{key} = {value}" for key, value in entries.items()))
    ]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")


def install_rule(folder: Path, body: str = SAYS_NO, entry_id: str = "acme-no") -> None:
    """Write the package `acme` with a rule whose function has this body."""
    module = entry_id.replace("-", "_")
    install(folder, "acme", {module: RULE.format(id=entry_id, body=body)}, {"rules": {entry_id: f"{module}:check"}})


def install_injection(folder: Path, body: str, *, forms: str = "()") -> None:
    """Write the package `acme` with an injection whose function has this body."""
    modules = {"acme_more": INJECTION.format(id="acme-more", body=body, forms=forms)}
    install(folder, "acme", modules, {"injections": {"acme-more": "acme_more:inject"}})


@contextmanager
def taken_in(folder: Path, *names: str) -> Iterator[tuple[loading.Plugin, ...]]:
    """Load the plug-ins with these names from `folder`. The registries are restored at the end of the block."""
    registries: tuple[Any, ...] = (rules.REGISTRY, injections.REGISTRY)
    before = [({**registry._load()}, {*registry.unusable}, {**registry._offered}) for registry in registries]
    modules = {*sys.modules}
    sys.path.insert(0, str(folder))
    _forget()
    try:
        loading.load(names)
        yield loading.loaded()
    finally:
        sys.path.remove(str(folder))
        for name in {*sys.modules} - modules:
            if str(getattr(sys.modules[name], "__file__", "")).startswith(str(folder)):
                del sys.modules[name]
        for registry, (entries, unusable, offered) in zip(registries, before, strict=True):
            registry._entries, registry.unusable, registry._offered = entries, unusable, offered
        _forget()


def _forget() -> None:
    loading._LOADED.clear()
    loading.FAILURES.counts.clear()
    loading.FAILURES.last.clear()
    loading.FAILURES.listener = lambda *_: None
    policy_model.cache_clear()
    json_schema.cache_clear()
