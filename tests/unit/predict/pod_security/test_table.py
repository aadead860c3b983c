"""The table of checks in the reference documentation."""

from tools.pod_security_table import HEAD, table
from webhook.predict.pod_security.checks import REGISTRY


def rows() -> dict[str, list[str]]:
    lines = [line.removeprefix("| ").removesuffix(" |").split(" | ") for line in table().splitlines()]
    assert lines[0] == list(HEAD)
    return {line[0].strip("`"): line for line in lines[2:]}


def test_every_check_has_a_row() -> None:
    assert set(rows()) == set(REGISTRY)
    assert all(len(row) == len(HEAD) for row in rows().values())


def test_versions_by_level() -> None:
    versions = {check: row[1:3] for check, row in rows().items()}
    assert versions["capabilities_baseline"] == ["v1.0+", "v1.0 - v1.21"]
    assert versions["hostPathVolumes"] == ["v1.0+", ""]
    assert versions["procMount_restricted"] == ["", "v1.35+"]
    assert versions["hostProbesAndHostLifecycle"] == ["v1.34+", "v1.34+"]


def test_fields_and_values() -> None:
    _, _, _, summary, fields = rows()["allowPrivilegeEscalation"]
    assert summary == "No process gains more privileges than its parent, for example by a set-user-ID file."
    assert fields == (
        "**Restricted fields:**<br>`spec.containers[*].securityContext.allowPrivilegeEscalation`<br>"
        "**Allowed values:** `false`; from v1.25 anything in pods for Windows"
    )
