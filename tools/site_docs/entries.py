"""Writes a page for each rule and injection: the section of the reference, and examples."""

import re
from collections.abc import Iterator
from typing import Final

from tools.site_docs import injected, messages
from tools.site_docs.sources import ROOT
from webhook.cli import explanations

REFERENCE: Final = {"rule": "docs/reference/rules.md", "injection": "docs/reference/injections.md"}

EXAMPLES: Final = "Each example is the only mistake in its job. Launcher and Worker are below `spec.mpiReplicaSpecs`."


def pages() -> Iterator[tuple[str, str]]:
    """(path, text) of each page. Links are relative to the path, as if the page were in the repository."""
    for kind, path in REFERENCE.items():
        whole = (ROOT / path).read_text(encoding="utf-8")
        for entry in explanations.entries():
            if entry.kind == kind:
                section = whole.partition(f"\n## {entry.id}\n")[2].partition("\n## ")[0]
                yield f"docs/{kind}s/{entry.id}.md", f"# {entry.id}\n{_linked(section)}\n{_examples(kind, entry.id)}"
    yield "docs/messages.md", "\n".join(messages.catalogue()) + "\n"


def names(kind: str) -> list[str]:
    return [f"{kind}s/{entry.id}" for entry in explanations.entries() if entry.kind == kind]


def _examples(kind: str, name: str) -> str:
    if kind == "injection":
        example = injected.examples().get(name, "")
        return f"\n## Example\n\n{example}" if example else ""
    examples = "\n".join(messages.examples(name))
    return f"\n## Examples\n\n{EXAMPLES}\n\n{examples}" if examples else ""


def _linked(section: str) -> str:
    """The section with adjusted links. In the reference, all rules are on one page."""
    section = re.sub(r"\]\(#([\w-]+)\)", r"](\1.md)", section)
    section = re.sub(r"\]\((rule|injection)s\.md#([\w-]+)\)", r"](../\1s/\2.md)", section)
    return re.sub(r"\]\((\w[\w-]*\.md#)", r"](../reference/\1", section)
