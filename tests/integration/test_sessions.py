"""Every command of the sessions in docs/ prints the recorded output on a real cluster."""

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.paths import DOCS
from tests.support.rare import rare
from tools.sessions import texts
from tools.sessions.comparing import normal
from tools.sessions.stage import Stage, staged

pytestmark = [rare, pytest.mark.cluster, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("sessions")) as made:
        yield made


@pytest.fixture(scope="module")
def played(stage: Stage) -> Mapping[Path, str]:
    return texts.played(stage)


@pytest.mark.parametrize(
    "name", [*(path.name for path in texts.PAGES), *(f"sessions/{each}.txt" for each in texts.SESSIONS)]
)
def test_shown_output_matches_the_run(played: Mapping[Path, str], name: str) -> None:
    path = DOCS / name
    shown, came = (normal(text).splitlines() for text in (path.read_text(encoding="utf-8"), played[path]))
    difference = "\n".join(difflib.unified_diff(shown, came, "shown", "came", n=1, lineterm=""))
    assert not difference, f"`make sessions` records the new output:\n{difference}"


def test_sessions_run_without_the_prometheus_operator(stage: Stage) -> None:
    assert "monitoring.coreos.com" not in stage.cluster.kubectl("api-versions").stdout


def test_pushed_image_is_the_image_of_the_deployment(stage: Stage, played: Mapping[Path, str]) -> None:
    text = (DOCS / "install.md").read_text(encoding="utf-8")
    (pushed,) = re.findall(r"^\$ docker push (\S+)", text, re.MULTILINE)
    assert stage.deployed_image == pushed
