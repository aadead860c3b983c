"""An example of each injection: the changes to a real job in tests/corpus."""

import re
from functools import cache

from tests.support.corpus import CORPUS
from tools.site_docs.sources import ROOT
from webhook.api import yaml

_PUT_IN = re.compile(r"^  ([\w-]+):\n((?:    .*\n)+)", re.MULTILINE)


@cache
def examples() -> dict[str, str]:
    texts: dict[str, str] = {}
    for path in sorted(CORPUS.glob("*/*.outcome")):
        job = path.with_suffix(".yaml").relative_to(ROOT).as_posix()
        for injection, patch in _PUT_IN.findall(path.read_text(encoding="utf-8")):
            # Each line is parsed alone: two lines may have the same key, which YAML does not allow.
            fields = "".join(yaml.dump(yaml.load_all(line)[0]) for line in patch.splitlines())
            texts.setdefault(injection, f"Into [{path.stem}](../../{job}) it puts:\n\n```yaml\n{fields}```\n")
    return texts
