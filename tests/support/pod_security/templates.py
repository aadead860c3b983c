"""Generates any pod template that decodes, from the wire types."""

from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec
from hypothesis import strategies as st

from tests.support.strategies import json_values

WORDS = ("", "a", "b", "unconfined", "Unconfined", "RuntimeDefault", "windows", "ALL", "Default", "container_t", "\x00")

ANNOTATIONS = (
    "seccomp.security.alpha.kubernetes.io/pod",
    "container.seccomp.security.alpha.kubernetes.io/a",
    "container.apparmor.security.beta.kubernetes.io/a",
)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """JSON that can be decoded as `kind`."""
    if get_origin(kind) in (Union, UnionType):
        return st.one_of(*map(values, get_args(kind)))
    if get_origin(kind) is list:
        return st.lists(values(get_args(kind)[0]), max_size=3)
    if get_origin(kind) is dict:
        return st.dictionaries(st.sampled_from(ANNOTATIONS) | st.text(max_size=5), values(str), max_size=3)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        hints = get_type_hints(kind)
        fields = {field.encode_name: values(hints[field.name]) for field in msgspec.structs.fields(kind)}
        return st.fixed_dictionaries({}, optional=fields | {"unknown": json_values()})
    scalars: dict[Any, st.SearchStrategy[Any]] = {
        str: st.sampled_from(WORDS) | st.text(st.characters(exclude_categories=["Cs"]), max_size=5),
        int: st.integers(-1, 2) | st.integers(-(2**63), 2**63 - 1),
        bool: st.booleans(),
        NoneType: st.none(),
    }
    return scalars[kind]
