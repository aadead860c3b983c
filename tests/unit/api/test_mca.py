"""MCA parameters in command lines of mpirun. The expected results agree with Open MPI 4.1 and 5.0."""

import pytest

from webhook.api import mca
from webhook.api.mpirun import find


def read(script: str) -> list[tuple[str, str]]:
    (call,) = find(["bash", "-c"], [script], "OpenMPI")
    return list(mca.parameters(call.words))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("mpirun -np 2 x", []),
        ('mpirun -np 2 -mca plm_rsh_args "-p 2222" x', [("plm_rsh_args", "-p 2222")]),
        ('mpirun -np 2 --mca=plm_rsh_args "-p 2222" x', [("plm_rsh_args", "-p 2222")]),
        ('mpirun -gmca plm_rsh_args "-p 2222" x', [("plm_rsh_args", "-p 2222")]),
        ('mpirun --prtemca plm_ssh_args "-p 2222" x', [("plm_ssh_args", "-p 2222")]),
        ("mpirun -mca pml ucx -mca btl ^openib x", [("pml", "ucx"), ("btl", "^openib")]),
        # `--brand-new` is an unknown option, and the value of `$NP` is unknown.
        ("mpirun --brand-new -np $NP -mca pml ucx x", [("pml", "ucx")]),
        # The words of the call end before `$(...)`, because only a shell can read it.
        ("mpirun -np $(nproc) -mca pml ucx x", []),
        ("mpirun -mca pml", []),
        ("mpirun -mca", []),
        ("mpirun --mca=", []),
        ("mpirun -pmixmca a b", []),
        ("mpirun mca pml ucx", []),
        ("mpirun x; other -mca pml ucx", []),
    ],
)
def test_parameters_of_a_call(script: str, expected: list[tuple[str, str]]) -> None:
    assert read(script) == expected


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        ("-p 2222 -o StrictHostKeyChecking=no", True),
        ("", True),
        ("-p $PORT", False),
        ("-p `port`", False),
        ("-p\n2222", False),
        ("x" * 1001, False),
    ],
)
def test_value_is_literal_if_it_is_short_and_has_no_shell_syntax(value: str, literal: bool) -> None:
    assert mca.is_literal(value) is literal
