"""The pages and the recorded sessions show the same output."""

import re

import pytest

from tests.support.paths import DOCS, ROOT
from tools.sessions import texts
from tools.sessions.page import File, Step, parts
from tools.sessions.record import as_cast
from webhook import __version__


@pytest.mark.parametrize("name", texts.SESSIONS)
def test_recordings_match_the_texts(name: str) -> None:
    text = (texts.FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    cast = (texts.FOLDER / f"{name}.cast").read_text(encoding="utf-8")
    assert cast == as_cast(texts.SESSIONS[name].title, text), "run `make sessions`"
    assert f"sessions/{name}.txt" in (DOCS / "index.md").read_text(encoding="utf-8")


def test_readme_shows_outputs_of_the_pages() -> None:
    """tests/integration/test_sessions.py compares the outputs in the pages with a real run."""
    run = {
        (part.line, part.shown)
        for page in texts.PAGES
        for part in parts(page.read_text(encoding="utf-8"))
        if isinstance(part, Step)
    }
    shown = [part for part in parts((ROOT / "README.md").read_text(encoding="utf-8")) if isinstance(part, Step)]
    assert sum(part.line.startswith("kubectl") for part in shown) >= 3
    assert [
        part.line for part in shown if (part.line, part.shown) not in run and not part.line.startswith("make ")
    ] == []


# Steps that cannot run on test machines. Do not add steps.
NOT_RUN = {
    "docker build --build-arg BASE=debian:trixie-slim@sha256:... --build-arg VERSION=0.1.0 "
    "--tag registry.example.com/ml/mpijob-webhook:0.1.0 .",
    "docker push registry.example.com/ml/mpijob-webhook:0.1.0",
    "docker run --rm registry.example.com/ml/mpijob-webhook:0.1.0 explain worker-count",
    'docker run --rm --user "$(id -u)" -v ~/.kube/config:/config:ro -e KUBECONFIG=/config '
    "registry.example.com/ml/mpijob-webhook:0.1.0 doctor",
}


def test_untested_steps_have_a_reason() -> None:
    pages = (*texts.PAGES, DOCS / "command.md", ROOT / "README.md")
    steps = [part for page in pages for part in parts(page.read_text(encoding="utf-8")) if isinstance(part, Step)]
    found = {step.line.partition("   # not tested: ")[0] for step in steps if step.reason}
    assert found <= NOT_RUN
    assert {step.reason for step in steps if step.reason} == {"needs a container engine"}


@pytest.mark.parametrize("name", ["install.md", "command.md", "../README.md", "../Dockerfile"])
def test_image_has_the_same_name_everywhere(name: str) -> None:
    text = (DOCS / name).read_text(encoding="utf-8")
    named = set(re.findall(r"\bregistry\.example\.com/\S*mpijob-webhook:\S+", text))
    assert named == {f"registry.example.com/ml/mpijob-webhook:{__version__}"}
    assert set(re.findall(r"--build-arg VERSION=(\S+)", text)) <= {__version__}


def test_overlay_names_the_pushed_image() -> None:
    text = (DOCS / "install.md").read_text(encoding="utf-8")
    (overlay,) = (part for part in parts(text) if isinstance(part, File) and part.name.endswith("kustomization.yaml"))
    assert f"    newName: registry.example.com/ml/mpijob-webhook\n    newTag: {__version__}\n" in overlay.content
    base = (ROOT / "manifests" / "base" / "kustomization.yaml").read_text(encoding="utf-8")
    assert f"  - name: mpijob-webhook\n    newTag: {__version__}\n" in base, "the overlay replaces this name"
