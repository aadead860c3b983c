from typing import Any

import pytest

from tests.support.jobs import REMOVE
from tests.support.rule_checks import as_texts, violations

ID = "mpi-implementation"
REFUSED = 'spec.mpiImplementation: "{}" is not allowed here (the default is "OpenMPI")'


@pytest.mark.parametrize(
    ("value", "allowed", "expected"),
    [
        ("MPICH", None, []),
        ("MPICH", ["OpenMPI", "Intel"], [REFUSED.format("MPICH")]),
        (REMOVE, ["Intel"], [REFUSED.format("OpenMPI")]),
        (REMOVE, ["OpenMPI"], []),
        ("nonsense", ["OpenMPI"], []),  # the rule `upstream-contract` reports unknown names
    ],
)
def test_implementation_that_is_not_allowed_is_rejected(
    value: Any, allowed: list[str] | None, expected: list[str]
) -> None:
    settings = {"allowed": allowed} if allowed else {}
    result = violations(ID, {"spec.mpiImplementation": value}, settings=settings)
    assert as_texts(result) == expected
    assert [violation.fix for violation in result] == [f"Use one of {', '.join(allowed or ())}."] * len(expected)
