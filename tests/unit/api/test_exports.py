"""The variables that mpirun passes on to the ranks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import PROPERTY
from webhook.api.exports import Exports
from webhook.api.mpirun import Invocation, find


@pytest.mark.parametrize(
    ("argv", "implementation", "passed", "given"),
    [
        (["mpirun", "-x", "A", "-x", "B=1", "train"], "OpenMPI", "AB", "B"),
        (["mpirun", "train", "-x", "A"], "OpenMPI", "", ""),
        (["mpirun", "train"], "Intel", "ABC", ""),
        (["mpirun", "train"], "MPICH", "ABC", ""),
        (["horovodrun", "-np", "2", "train"], "OpenMPI", "ABC", ""),
        # These calls cannot be parsed, so any `-x` in the text is accepted.
        (["bash", "-c", 'O="-x A -x B=1"; mpirun $O train'], "OpenMPI", "AB", "B"),
        (["bash", "-c", "cat <<E\nmpirun \\\n -x\t'A' --x C train\nE"], "OpenMPI", "AC", ""),
        (["bash", "-c", "mpirun $O train -max A b-x B"], "OpenMPI", "", ""),
        (["train.sh", "-x", "A"], "OpenMPI", "A", ""),
        ([], "OpenMPI", "", ""),
    ],
)
def test_variables_that_reach_the_ranks(argv: list[str], implementation: str, passed: str, given: str) -> None:
    exports = Exports(find(argv, None, implementation), implementation, argv)
    assert "".join(name for name in "ABC" if exports.passes(name)) == passed
    assert "".join(name for name in "ABC" if name in exports.assigned) == given
    assert all(exports.passes(name) for name in ("OMPI_MCA_pml", "PRTE_MCA_a", "PMIX_MCA_a"))


TEXTS = st.text("ab_", max_size=4)


@PROPERTY
@given(st.lists(st.builds(str.__add__, TEXTS, st.sampled_from(["", "*"])), max_size=8), TEXTS)
def test_name_with_a_star_exports_all_variables_with_this_prefix(exported: list[str], name: str) -> None:
    call = Invocation("mpirun", options=tuple(("x", (each,)) for each in exported))
    exports = Exports([call], "OpenMPI")
    starts = [each[:-1] for each in exported if each.endswith("*")]
    assert exports.names(name) == (name in exported or name.startswith(tuple(starts)))


def test_name_is_compared_with_only_one_of_many_prefixes() -> None:
    class Name(str):
        compared = 0

        def startswith(self, *arguments: Any) -> bool:
            Name.compared += 1
            return super().startswith(*arguments)

    call = Invocation("mpirun", options=tuple(("x", (f"A{number}*",)) for number in range(1000)))
    exports = Exports([call], "OpenMPI")
    assert exports.names(Name("A123_x"))
    assert not exports.names(Name("B"))
    assert Name.compared == 2
