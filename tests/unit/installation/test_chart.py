"""The Helm chart equals the manifests for kustomize. tests/integration/test_chart.py renders it with helm."""

import pytest

from tools.chart import build
from tools.chart.templating import Expression, Item, Key, template


def test_no_file_is_missing_and_none_is_left_over() -> None:
    there = {str(path.relative_to(build.CHART)) for path in build.CHART.rglob("*") if path.is_file()}
    assert there == build.files().keys()


@pytest.mark.parametrize("name", sorted(build.files()))
def test_each_file_is_as_the_manifests_are(name: str) -> None:
    assert (build.CHART / name).read_text(encoding="utf-8") == build.files()[name], "run `make chart`"


def test_conditions() -> None:
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
