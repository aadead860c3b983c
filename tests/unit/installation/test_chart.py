"""The Helm chart equals the manifests for kustomize. tests/integration/test_chart.py renders the chart with helm."""

import pytest

from tools.chart import build
from tools.chart.templating import Expression, Item, Key, template


def test_chart_has_exactly_the_generated_files() -> None:
    there = {str(path.relative_to(build.CHART)) for path in build.CHART.rglob("*") if path.is_file()}
    assert there == build.files().keys()


@pytest.mark.parametrize("name", sorted(build.files()))
def test_each_file_of_the_chart_matches_the_manifests(name: str) -> None:
    assert (build.CHART / name).read_text(encoding="utf-8") == build.files()[name], "run `make chart`"


def test_conditions_are_written_as_template_blocks() -> None:
    value = {
        "a": [1, Item({"b": "{{x}}"}, ".V")],
        Key("c", "not .V"): {},
        "d": Expression("{{ .E }}"),
        "e.f": "g\n\nh\n",
    }
    assert template(value).splitlines() == [
        "a:",
        "  - 1",
        "{{- if .V }}",
        """  - b: "{{ "{{" }}x}}\"""",
        "{{- end }}",
        "{{- if not .V }}",
        "c: {}",
        "{{- end }}",
        "d: {{ .E }}",
        """\"e.f\": |""",
        "  g",
        "",
        "  h",
    ]
