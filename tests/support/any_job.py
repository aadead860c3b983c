"""Generates jobs from the wire types, so that new fields of the wire types are included."""

import copy
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st
from msgspec import inspect

from tests.support.strategies import COMPLETE, json_values, parent_of, paths, quantities, text
from webhook.api.mpijob import JobStatus, MPIJob

Json = dict[str, Any]


def any_value(kind: type, **samples: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """JSON values that can be decoded as this wire type, with `samples` as in `any_job`."""
    return _values(inspect.type_info(kind), samples)


def any_job(**samples: st.SearchStrategy[Any]) -> st.SearchStrategy[Json]:
    """Any job that decodes: each field of the wire types is absent, null, or any value of its type.

    `samples` are strategies by the JSON name of a field. A field with this name gets these values in addition to
    arbitrary values, for example `any_job(command=st.just(["mpirun", "-np", "4"]))`. A field whose value is a struct
    gets no samples, because two fields of the same name can have different types: the `image` of a container is a
    text, and the `image` of a volume is a struct.
    """
    return any_value(MPIJob, **samples)


def jobs() -> st.SearchStrategy[Json]:
    """Like `any_job`, with values that injections look for."""
    return any_job(**_SAMPLES)


@st.composite
def mangled_jobs(draw: st.DrawFn) -> Any:
    """MPIJobs with arbitrary JSON in one to three fields."""
    job = draw(jobs() | st.just(COMPLETE).map(copy.deepcopy))
    for _ in range(draw(st.integers(1, 3))):
        if places := [*paths(job)]:
            path = draw(st.sampled_from(places))
            parent_of(job, path)[path[-1]] = draw(json_values())
    return job


def _values(kind: inspect.Type, samples: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    """JSON values that msgspec can decode as this type."""
    match kind:
        case inspect.StructType():
            return _struct({field.encode_name: _field(field, samples) for field in kind.fields}, kind.fields)
        case inspect.UnionType():
            members = [_values(member, samples) for member in kind.types if not isinstance(member, inspect.NoneType)]
            return _mostly(st.one_of(members), st.none())
        case inspect.ListType():
            return _mostly(st.lists(_values(kind.item_type, samples), min_size=1, max_size=2), st.just([]))
        case inspect.DictType():
            values = _values(kind.value_type, samples)
            usual = st.fixed_dictionaries({}, optional=dict.fromkeys(_KEYS[type(kind.value_type)], values))
            return _mostly(usual, st.dictionaries(text, values, max_size=1))
        case inspect.IntType():
            return st.integers(-1, 20) | st.integers(kind.ge, kind.le)
        case _:
            return _SCALARS[type(kind)]


@st.composite
def _struct(draw: st.DrawFn, values: dict[str, st.SearchStrategy[Any]], fields: tuple[inspect.Field, ...]) -> Json:
    present = [field.encode_name for field in fields if field.required or draw(st.integers(0, 9))]
    return {name: draw(values[name]) for name in present}


@st.composite
def _mostly(draw: st.DrawFn, usual: st.SearchStrategy[Any], other: st.SearchStrategy[Any]) -> Any:
    """The usual value in 9 of 10 cases. With even odds at each level, a container would hardly ever have resources."""
    return draw(usual if draw(st.integers(0, 9)) else other)


def _field(field: inspect.Field, samples: Mapping[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[Any]:
    values = _values(field.type, samples)
    members = field.type.types if isinstance(field.type, inspect.UnionType) else (field.type,)
    structs = any(isinstance(member, inspect.StructType) for member in members)
    return values if structs or field.encode_name not in samples else samples[field.encode_name] | values


_KEYS: Mapping[type[inspect.Type], tuple[str, ...]] = {
    inspect.UnionType: ("Launcher", "Worker"),
    inspect.StrType: ("kueue.x-k8s.io/queue-name", "scheduling.volcano.sh/queue-name"),
    inspect.CustomType: ("cpu", "nvidia.com/gpu", "amd.com/gpu"),
}
_SCALARS: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.StrType: text,
    inspect.BoolType: st.booleans(),
    inspect.CustomType: quantities | json_values(),  # msgspec's type for a field of type `object`
}
# The status is decoded separately.
_SCALARS[inspect.RawType] = _values(inspect.type_info(JobStatus), {}) | json_values()
_TRAINING = [f"training.openshift.io/{name}" for name in ("timeout", "timeout-action", "debug-mode")]
_TEXTS = ("true", "false", "", "on", "72h", "7d", "0h", "3 days", "notify-only", "terminate", "x" * 300, "\x1b[1m\n")
_MAPS = st.dictionaries(
    st.sampled_from(["sidecar.istio.io/inject", *_TRAINING, "app", "a/b~c", ""]) | text,
    st.sampled_from(_TEXTS) | text,
    max_size=4,
)
_SAMPLES: Mapping[str, st.SearchStrategy[Any]] = {
    "labels": _MAPS,
    "annotations": _MAPS,
    "nodeSelector": st.dictionaries(st.sampled_from(["pool", "topology.kubernetes.io/zone"]), text, max_size=2),
    **{
        name: st.sampled_from(values)
        for name, values in {
            "name": ["train", "x" * 60, "mpi", "PRTE_MCA_plm_ssh_args", "HYDRA_LAUNCHER_EXTRA_ARGS", "registry"],
            "generateName": ["train-"],
            "command": [["mpirun", "-np", "2", "python"]],
            "drop": [["ALL"], ["SYS_CHROOT"]],
            "key": ["nvidia.com/gpu", "team", "pool", ""],
            "operator": ["Exists", "Equal", "In", ""],
            "effect": ["NoSchedule", "NoExecute", ""],
            "values": [["training", "b"]],
            "serviceAccountName": ["", "default", "trainer"],
            "cleanPodPolicy": ["Running", "All", "None", "running", ""],
            "restartPolicy": ["Never", "OnFailure", "Always", ""],
            "mpiImplementation": ["OpenMPI", "Intel", "MPICH", "", "LAM"],
            "runAsUser": [0, 1000],
        }.items()
    },
}
