"""MCA parameters, Open MPI's settings: options of mpirun's command line, or variables named `OMPI_MCA_NAME`.

https://docs.open-mpi.org/en/v5.0.x/mca.html
"""

from collections.abc import Iterator, Sequence
from typing import Final

from webhook.api.limits import MAX_MCA_VALUE_CHARACTERS
from webhook.api.pod import Container

ENV_PREFIX: Final = "OMPI_MCA_"
ENV_LIST: Final = "mca_base_env_list"
"""The parameter that lists variables for the ranks. Open MPI 4 fails if this parameter and the option `-x` are set."""
OPTIONS: Final = frozenset(("mca", "gmca", "omca", "gomca", "prtemca"))
# The shell and Kubernetes expand `$`. The shell also expands a backtick.
_EXPANDED: Final = frozenset("$`")


def parameters(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """(name, value) of each `-mca NAME VALUE`, `--mca NAME VALUE`, and for Open MPI 5 `--mca=NAME VALUE`."""
    for index, word in enumerate(words):
        if "mca" not in word or word[0] != "-":
            continue
        option, equals, name = word.lstrip("-").partition("=")
        rest = words[index + 1 : index + 3] if option in OPTIONS else ()
        if equals and rest:
            yield name, rest[0]
        elif len(rest) == 2:
            yield rest[0], rest[1]


def lists_variables(container: Container) -> bool:
    return f"{ENV_PREFIX}{ENV_LIST}" in [variable.name for variable in container.env or ()]


def is_literal(value: str) -> bool:
    """Whether neither a shell nor Kubernetes expands any part of `value`."""
    return value.isprintable() and len(value) <= MAX_MCA_VALUE_CHARACTERS and _EXPANDED.isdisjoint(value)
