"""Writes the sources for Sphinx: the pages of `docs/`, and a page for every other linked file."""

import posixpath
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Final

ROOT: Final = Path(__file__).parents[2]
DOCS: Final = "docs/"
BESIDE: Final = ("README.md", "SECURITY.md", "CHANGELOG.md")
FILES: Final = "files"
_LINK: Final = re.compile(r"\[(?P<text>[^]\[]*)\]\((?P<to>[^)\s]+)\)")
_FENCED: Final = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LANGUAGES: Final = {
    ".yaml": "yaml", ".py": "python", ".json": "json", ".toml": "toml", ".md": "markdown", ".sh": "bash",
}  # fmt: skip


@dataclass
class Sources:
    folder: Path
    instead: Mapping[str, str] = field(default_factory=dict)
    """Maps a file to the generated page that replaces the file."""
    linked: set[str] = field(default_factory=set)
    """Linked files and folders that are shown as they are."""

    @cached_property
    def tracked(self) -> frozenset[str]:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
        return frozenset(listed.stdout.split("\0")) - {""}

    def write(self) -> None:
        shutil.copytree(ROOT / DOCS, self.folder, dirs_exist_ok=True)
        for path in sorted(self.tracked):
            if path in BESIDE or (path.startswith(DOCS) and path.endswith(".md")):
                self.page(path, (ROOT / path).read_text(encoding="utf-8"))
        done: set[str] = set()
        while missing := sorted(self.linked - done):
            for path in missing:
                self.put(self.place(path), "---\norphan: true\nnosearch: true\n---\n" + self._shown(path))
            done.update(missing)

    def page(self, path: str, text: str) -> None:
        """Write a Markdown page. Links in `text` are relative to `path` in the repository."""
        parts = _FENCED.split(text)
        parts[::2] = [_LINK.sub(lambda link: self._linked(path, **link.groupdict()), part) for part in parts[::2]]
        self.put(self.place(path), "".join(parts))

    def put(self, place: str, text: str) -> None:
        file = self.folder / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def place(self, path: str) -> str:
        if path in self.instead:
            return self.instead[path]
        if (ROOT / path).is_dir():
            return f"{FILES}/{path}/index.md"
        return path.removeprefix(DOCS) if path.startswith(DOCS) or path in BESIDE else f"{FILES}/{path}.md"

    def _linked(self, path: str, text: str, to: str) -> str:
        # Sphinx inserts the title of the page into a link without text.
        named = text.endswith(".md") and to.partition("#")[0].endswith(text)
        return f"[{'' if named else text}]({self._target(path, to)})"

    def _target(self, path: str, link: str) -> str:
        name, _, anchor = link.partition("#")
        if not name or ":" in name:
            return link
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
        link = self._link(self.place(path), target)
        return f"{link}#{anchor}" if anchor else link

    def _link(self, place: str, target: str) -> str:
        page = self.place(target)
        if page.startswith(f"{FILES}/") and (ROOT / target).exists():
            self.linked.add(target)
        return posixpath.relpath(page, posixpath.dirname(place) or ".")

    def _shown(self, path: str) -> str:
        if not (ROOT / path).is_dir():
            text = (ROOT / path).read_text(encoding="utf-8").rstrip()
            language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
            return f"# {path}\n\n``````{language}\n{text}\n``````\n"
        inside = (file.removeprefix(f"{path}/") for file in self.tracked if file.startswith(f"{path}/"))
        names = sorted({file.split("/")[0] for file in inside})
        lines = [f"- [{name}]({self._link(self.place(path), f'{path}/{name}')})\n" for name in names]
        return f"# {path}\n\n{''.join(lines)}"


def toctree(pages: Iterable[str], caption: str = "") -> str:
    head = f":caption: {caption}\n" if caption else ""
    return "\n```{toctree}\n:hidden:\n" + head + "\n" + "\n".join(pages) + "\n```\n"
