"""The outputs of each client in docs/clients.md."""

import re

from tests.support.paths import DOCS


def shown(title: str) -> str:
    """The output below this heading."""
    page = (DOCS / "clients.md").read_text(encoding="utf-8")
    section = page.partition(f"\n## {title}\n")[2].partition("\n## ")[0]
    (block,) = re.findall(r"```text\n(.*?)```", section, re.DOTALL)
    return str(block)
