from typing import Any

import pytest
from pydantic import ValidationError

from tests.support.any_job import Json
from tests.support.devices import claim_template, claims, exactly
from tests.support.jobs import REMOVE, changed, request
from tests.support.rule_checks import decide, fits_a_warning, violations
from webhook.admission.pipelines import load_policy, mutate
from webhook.cluster.snapshot import Snapshot
from webhook.cluster.view import NothingKnown
from webhook.rules import Degree, Violation
from webhook.rules.slots import Settings

SLOTS = "spec.slotsPerWorker"
AS_WORKER = "spec.runLauncherAsWorker"
COMMAND = "Launcher.template.spec.containers.0.command"
ARGS = "Launcher.template.spec.containers.0.args"
ENV = "Launcher.template.spec.containers.0.env"
ENV_FROM = "Launcher.template.spec.containers.0.envFrom"


def resources(role: str = "Worker", *, requests: Json | None = None, **limits: Any) -> Json:
    named = {{"gpu": "nvidia.com/gpu"}.get(name, name): value for name, value in limits.items()}
    return {f"{role}.template.spec.containers.0.resources": {"limits": named, "requests": requests}}


def sized(slots: int, gpu: int, command: str, **others: Any) -> Json:
    """Changes that give four workers these slots and GPUs, and the launcher this command."""
    return {SLOTS: slots, COMMAND: command.split(), **resources(gpu=gpu), **others}


@pytest.mark.parametrize(
    ("changes", "settings"),
    [
        ({}, {}),
        (sized(1, 0, "mpirun -np 4 x"), {}),
        (sized(8, 8, "mpirun -np 32 x"), {}),
        (sized(8, 16, "mpirun -np 32 x"), {}),  # 8 slots are the maximum
        (sized(9, 0, "sleep 1"), {"max": 9}),
        (sized(0, 0, "sleep 1"), {"min": 0}),
        ({SLOTS: -1}, {}),  # the rule `upstream-contract` reports negative slots
        ({SLOTS: REMOVE, **resources(gpu=1), COMMAND: REMOVE}, {}),
        (sized(3, 0, "mpirun x") | resources(cpu="2500m"), {}),
        (sized(3, 0, "mpirun x") | resources(cpu="0", requests={"cpu": "1"}), {}),
        (sized(3, 0, "mpirun x") | resources(cpu="-1"), {}),
        (sized(3, 0, "mpirun x") | resources(cpu="two"), {}),
        (sized(3, 0, "mpirun x") | resources(memory="1Gi"), {}),
        (sized(2, 0, "mpirun -np 4 x"), {}),  # fewer ranks than slots are a problem only for workers with GPUs
        (sized(2, 2, "mpirun -np 4 -N 1 x"), {}),
        (sized(2, 2, "mpirun -np 4 --map-by ppr:1:node x"), {}),
        # One rank on each node starts the other processes of the node.
        (sized(1, 8, "mpirun -np 4 torchrun --nproc_per_node=8 x"), {}),
        (sized(1, 8, "mpirun -np $N -N 1 torchrun x"), {}),
        (sized(1, 8, "mpirun -np $N all_gather_perf -b 8 -g 8"), {}),
        (sized(1, 8, "mpirun -npernode 1 deepspeed x"), {}),
        (sized(1, 8, "mpirun torchrun --nproc_per_node=8 x"), {}),
        (sized(1, 8, "mpirun -np $N /opt/venv/bin/torchrun x"), {}),
        (sized(1, 8, "mpirun python -m torch.distributed.run x"), {}),
        (sized(1, 8, "mpirun --some-option accelerate launch x"), {}),
        (sized(1, 8, "") | {COMMAND: ["sh", "-c", "mpirun -np $N deepspeed x"]}, {}),
        (sized(1, 8, "mpirun -rr x") | {"spec.mpiImplementation": "MPICH"}, {}),
        (sized(1, 8, "mpirun -ppn 1 x") | {"spec.mpiImplementation": "Intel"}, {}),
        (sized(1, 8, "mpirun -pernode x"), {}),
        (sized(1, 8, "mpirun --map-by ppr:1:node:PE=8 x"), {}),
        (sized(2, 8, "mpiexec -ppn 2 x") | {"spec.mpiImplementation": "MPICH"}, {}),
        (sized(2, 2, "mpirun -np 9 --oversubscribe x"), {}),
        (sized(2, 2, "mpirun -np $NP x"), {}),
        (sized(2, 2, "mpirun -np 10 x") | {AS_WORKER: True} | resources("Launcher", gpu=2), {}),
        (sized(2, 2, "mpirun -np 8 x") | {"Worker": REMOVE}, {}),
        (sized(2, 2, "mpirun -np 8 x") | {"Launcher": REMOVE}, {}),
        (sized(2, 2, "") | {COMMAND: ["sh", "-c", "mpirun -np 1 hostname; mpirun -np 8 x"]}, {}),
        (sized(2, 2, "") | {COMMAND: ["sh", "-c", "mpirun -np 1 hostname; mpirun -np $NP x"]}, {}),
        (sized(2, 2, "mpirun x") | {"Worker.template.spec.containers.0.resources": REMOVE}, {}),
        (sized(1, 2, "mpirun -np 4 x"), {"resources": ["amd.com/gpu"]}),
    ],
)
def test_consistent_slots_are_accepted(changes: Json, settings: Json) -> None:
    assert violations("slots", changes, settings=settings) == []


UNCLEAR = "Set it to 8, or to the ranks that mpirun starts on a worker."
INSTEAD = ", with more workers or threads in each rank; an administrator can allow more in slots.maxCpu."
CLAIM = {"Worker.template.spec.containers.0.resources": {"claims": [{"name": "gpu"}]}}


@pytest.mark.parametrize(
    ("changes", "settings", "expected"),
    [
        (resources(cpu=96), {}, ("at most 8 allowed", f"Set slotsPerWorker to 8 or fewer{INSTEAD}")),
        (resources(cpu=96), {"maxCpu": 95}, ("at most 95 allowed", f"Set slotsPerWorker to 95 or fewer{INSTEAD}")),
        (resources(cpu=96), {"maxCpu": 96}, None),
        (resources(cpu=96), {"max": 96}, None),
        (resources(cpu=96, gpu=8), {"maxCpu": 96}, ("at most 8 allowed", "Set slotsPerWorker to 8 or fewer.")),
        (CLAIM, {"maxCpu": 96}, ("at most 8 allowed", "Set slotsPerWorker to 8 or fewer.")),
    ],
)
def test_max_cpu_limits_the_slots_of_workers_without_gpus(
    changes: Json, settings: Json, expected: tuple[str, str] | None
) -> None:
    result = violations("slots", {SLOTS: 96, **changes, COMMAND: ["mpirun", "-np", "384", "xhpl"]}, settings=settings)
    reported = [(each.message, each.fix) for each in result if each.message.startswith("96 slots")]
    assert reported == ([(f"96 slots per worker, {expected[0]}", expected[1])] if expected else [])


def test_ranks_are_reported_together_with_the_slots() -> None:
    too_many = {SLOTS: 96, **resources(cpu=96), COMMAND: ["mpirun", "-np", "384", "xhpl"]}
    _, ranks = violations("slots", too_many)
    assert (ranks.path, ranks.message) == (SLOTS, "mpirun -np 384 refuses to start: 32 slots with 8 per worker")
    assert (ranks.fix, ranks.advisory) == ("Set -np to 32.", True)
    certain = ["mpirun", "--hostfile", "/etc/mpi/hostfile", "-np", "384", "xhpl"]
    assert [each.advisory for each in violations("slots", too_many | {COMMAND: certain})] == [False, False]
    assert violations("slots", too_many | {SLOTS: 8, COMMAND: ["mpirun", "-np", "32", "xhpl"]}) == []
    assert len(violations("slots", too_many | {COMMAND: ["mpirun", "-np", "32", "xhpl"]})) == 1
    assert len(violations("slots", too_many | {COMMAND: ["mpirun", "--oversubscribe", "-np", "384", "xhpl"]})) == 1
    unlike_gpus = {SLOTS: 1, COMMAND: ["mpirun", "-np", "900", "x"]}
    assert [each.fix for each in violations("slots", unlike_gpus)] == ["Set it to 2.", "Set -np to 8."]


def test_fix_for_ranks_assumes_the_allowed_number_of_workers() -> None:
    decision = decide(changed({"Worker.replicas": 150, COMMAND: ["mpirun", "-np", "400", "x"]}))
    (warning,) = [each for each in (*decision.denied, *decision.warned) if each.rule == "slots"]
    assert warning.violation.fix == "Set -np to 200."


def test_suggested_slots_may_be_as_many_as_max_cpu() -> None:
    (violation,) = violations("slots", sized(16, 0, "mpirun -np 128 x") | resources(cpu=64), settings={"maxCpu": 64})
    assert violation.fix == "Set it to 32, or -np to 64."


def test_max_cpu_below_min_is_rejected() -> None:
    with pytest.raises(ValidationError, match=r"min \(4\) is above maxCpu \(2\)"):
        Settings.model_validate({"min": 4, "maxCpu": 2})


@pytest.mark.parametrize(
    ("slots", "settings", "message", "fix"),
    [
        (9, {}, "9 slots per worker, at most 8 allowed", "Set slotsPerWorker to 8 or fewer."),
        (0, {}, "0 slots per worker, at least 1 required", "Set slotsPerWorker to 1 or more."),
        (1, {"min": 2}, "1 slot per worker, at least 2 required", "Set slotsPerWorker to 2 or more."),
    ],
)
def test_slots_out_of_range_are_rejected(slots: int, settings: Json, message: str, fix: str) -> None:
    assert violations("slots", {SLOTS: slots}, settings=settings) == [Violation(SLOTS, message, fix=fix)]


@pytest.mark.parametrize(
    ("changes", "message", "fix"),
    [
        (sized(1, 8, "mpirun x"), "1 slot but 8 GPUs per worker", "Set it to 8."),
        (sized(2, 1, "mpirun x"), "2 slots but 1 GPU per worker", "Set it to 1."),
        (sized(4, 2, "mpirun -np 4 x"), "4 slots but 2 GPUs per worker", "Set it to 2."),
        (sized(1, 8, "mpirun -N 8 x"), "1 slot but 8 GPUs per worker", "Set it to 8."),
        (sized(1, 8, "mpirun --map-by ppr:1:nodes x"), "1 slot but 8 GPUs per worker", "Set it to 8."),
        (sized(1, 8, "mpirun --map-by node x"), "1 slot but 8 GPUs per worker", "Set it to 8."),
        (sized(4, 16, "mpirun x"), "4 slots but 16 GPUs per worker", "Set it to 8."),
        (sized(4, 0, "x") | resources(cpu="1500m"), "4 slots but 2 CPUs per worker", "Set it to 2, or request 4 CPUs."),
        (
            sized(4, 0, "x") | resources(requests={"cpu": "500m"}),
            "4 slots but 1 CPU per worker",
            "Set it to 1, or request 4 CPUs.",
        ),
        (sized(4, 0, "x") | resources(gpu=4, cpu=2), "4 slots but 2 CPUs per worker", "Request 4 CPUs."),
        (
            sized(2, 0, "x") | resources(cpu=2) | resources("Launcher", cpu=1) | {AS_WORKER: True},
            "2 slots but 1 CPU in the launcher",
            "Set it to 1, or request 2 CPUs.",
        ),
        (  # too few CPUs or ranks for the slots are not reported, because the fix changes the slots
            sized(1, 8, "mpirun -np 2 x") | resources(gpu=8, cpu=2),
            "1 slot but 8 GPUs per worker",
            "Set it to 8.",
        ),
        (
            sized(2, 0, "mpirun -n 16 x") | {"spec.mpiImplementation": "Intel"},
            "mpirun -np 16 puts several ranks on a slot: 8 slots in all",
            "Set it to 4, or -np to 8.",
        ),
        (
            sized(8, 8, "mpirun -np 4 torchrun x"),
            "mpirun -np 4 leaves GPUs idle: 32 slots in all",
            "Set it to 1: torchrun starts the rest.",
        ),
        (
            sized(2, 2, "mpirun -np 4 x"),
            "mpirun -np 4 leaves GPUs idle: 8 slots in all",
            "Set -np to 8.",
        ),
        (sized(2, 0, "mpirun -np 8 -N 4 x"), "-N requests 4 ranks per worker, 2 slots", "Set it to 4, or -N to 2."),
        (
            sized(2, 8, "mpirun -np 16 -N 8 all_reduce -g 4"),
            "-N requests 8 ranks per worker, 2 slots",
            "Set it to 8, or -N to 2.",
        ),
        (sized(2, 2, "mpirun -npernode 4 x"), "-npernode requests 4 ranks per worker, 2 slots", "Set -npernode to 2."),
        (
            sized(2, 0, "mpirun -np 4 --map-by ppr:4:socket x"),
            "-map-by requests 4 ranks per worker, 2 slots",
            "Set it to 4, or -map-by to 2.",
        ),
        (
            sized(2, 0, "mpirun -np 8 --map-by ppr:1:node x"),
            "mpirun -np 8, but -map-by allows 1 rank for each of 4 workers",
            "Set -np to 4.",
        ),
        *(
            (sized(1, 8, "") | {COMMAND: command}, "1 slot but 8 GPUs per worker", UNCLEAR)
            for command in (
                ["sh", "-c", "mpirun -np $NP all_reduce"],
                ["sh", "-c", "mpirun -npernode $GPUS all_reduce"],
                ["mpirun", "-N", "1", "-npernode", "2", "x"],
                ["bash", "/scripts/run_nccl.sh"],
                ["sh", "-c", "cd /scripts && ./run_nccl.sh"],
                None,
            )
        ),
    ],
)
def test_inconsistent_slots_are_a_warning(changes: Json, message: str, fix: str) -> None:
    result = violations("slots", changes)
    assert result == [Violation(SLOTS, message, fix=fix, advisory=True)]
    assert all(fits_a_warning("slots", violation) for violation in result)


@pytest.mark.parametrize(
    ("changes", "ranks", "slots", "fix"),
    [
        # With more slots, the CPUs would be too few.
        (sized(1, 0, "mpirun -np 8 x") | resources(cpu=1), 8, 4, "Set -np to 4 or add workers."),
        (sized(2, 0, "mpirun -np 16 x"), 16, 8, "Set it to 4, or -np to 8."),
        (sized(2, 0, "mpirun -np 40 x"), 40, 8, "Set -np to 8 or add workers."),
        (sized(2, 2, "mpirun -np 9 x"), 9, 8, "Set -np to 8 or add workers."),
        (
            sized(1, 0, "mpirun -np 6 x") | {AS_WORKER: True} | resources("Launcher", cpu=2),
            6,
            5,
            "Set it to 2, or -np to 5.",
        ),
        (
            sized(1, 0, "") | {COMMAND: ["sh", "-c", "mpirun -np 2 x && mpirun -np 5 y"]},
            5,
            4,
            "Set it to 2, or -np to 4.",
        ),
    ],
)
def test_more_ranks_than_slots_cause_a_warning(changes: Json, ranks: int, slots: int, fix: str) -> None:
    message = f"mpirun -np {ranks} refuses to start: {slots} slots in all"
    (violation,) = violations("slots", changes)
    assert violation == Violation(SLOTS, message, fix=fix, advisory=True)
    assert fits_a_warning("slots", violation)


HOSTFILE = {"name": "PRTE_MCA_prte_default_hostfile", "value": "/etc/mpi/hostfile"}
INJECTED = [HOSTFILE, {"name": "PRTE_MCA_plm_ssh_args", "value": "-o ConnectionAttempts=10"}]
MOUNTS = "Launcher.template.spec.containers.0.volumeMounts"


def started_by(options: str, program: str = "mpirun") -> Json:
    return {COMMAND: [program, *options.split(), "-np", "9", "x"]}


def with_variable(name: str, **source: Any) -> Json:
    return {ENV: [*INJECTED, {"name": name, **source}]}


@pytest.mark.parametrize(
    "changes",
    [
        sized(2, 0, "mpirun -np 16 -N 4 --oversubscribe x"),
        sized(2, 0, "mpirun --oversubscribe -npernode 4 x"),
        sized(2, 0, "mpirun --map-by ppr:4:node:oversubscribe x"),
        sized(2, 0, "mpirun -N 4 -H a:8,b:8 x"),
        sized(2, 0, "mpirun -N 2 -np 8 x"),
        sized(2, 0, "mpiexec -ppn 4 x") | {"spec.mpiImplementation": "Intel"},
        sized(2, 0, "mpirun --map-by ppr:1:node -np 4 x"),
        sized(2, 0, "") | {COMMAND: ["sh", "-c", "mpirun -N $N -np 8 x"]},
    ],
)
def test_ranks_per_worker_within_the_slots_are_accepted(changes: Json) -> None:
    assert violations("slots", changes) == []


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {ENV: [HOSTFILE]},
        {ENV: [], COMMAND: ["mpirun", "--hostfile", "/etc/mpi/hostfile", "-np", "9", "x"]},
        started_by("", "/usr/bin/mpirun"),
        started_by("", "/opt/amazon/openmpi/bin/mpiexec"),
        started_by("--allow-run-as-root -bind-to none -map-by slot -x NCCL_DEBUG=INFO -mca btl ^openib --mca pml ob1"),
        {COMMAND: ["mpirun"], ARGS: ["-np", "9", "x"]},
        with_variable("NCCL_DEBUG", value="INFO"),
        with_variable("OMPI_MCA_plm_rsh_args", value="-p 2222"),
        with_variable("TOKEN", valueFrom={"secretKeyRef": {"name": "a", "key": "b"}}),
        {MOUNTS: [{"name": "data", "mountPath": "/data"}, {"name": "shm", "mountPath": "/dev/shm"}]},
    ],
)
def test_mpirun_that_certainly_fails_is_rejected(changes: Json) -> None:
    [violation] = violations("slots", sized(2, 2, "mpirun -np 9 x") | {ENV: INJECTED} | changes)
    assert not violation.advisory
    assert violation.degree == Degree("ranks", 1)


@pytest.mark.parametrize(
    "changes",
    [
        {COMMAND: ["bash", "-c", "mpirun -np 9 x || mpirun -np 8 x"]},
        {COMMAND: ["bash", "-c", "mpirun -np 9 x"]},
        {COMMAND: None, ARGS: ["mpirun", "-np", "9", "x"]},  # the image's entry point is unknown
        {COMMAND: ["/entry"], ARGS: ["mpirun", "-np", "9", "x"]},
        # Without HOSTFILE, Open MPI 5 does not read /etc/mpi/hostfile, and may run all ranks on the launcher.
        {ENV: []},
        {ENV: [{"name": HOSTFILE["name"], "value": "/other/hostfile"}]},
        {ENV: [HOSTFILE, {"name": HOSTFILE["name"], "value": "/other/hostfile"}]},
        # Settings that allow, or may allow, more ranks than slots.
        started_by("-rf /data/ranks"),
        started_by("--map-by seq"),
        started_by("--map-by slot:PE=2"),
        started_by("--map-by $(MAPPING)"),
        started_by("--cpu-set 0,1"),
        started_by("--am /data/parameters"),
        started_by("--tune /data/parameters"),
        started_by("--mca rmaps_base_no_oversubscribe 0"),
        started_by("--mca orte_default_hostfile /data/hosts"),
        started_by("--mca $(NAME) $(VALUE)"),
        started_by("--mca mca_base_param_files /data/parameters"),
        started_by("--mca plm isolated"),
        started_by("--prtemca rmaps seq"),
        started_by("--personality x"),
        with_variable("OMPI_MCA_mca_param_files", value="/etc/mpi.conf"),
        with_variable("OMPI_MCA_rmaps_base_mapping_policy", valueFrom={"configMapKeyRef": {"name": "a", "key": "b"}}),
        with_variable("PRTE_MCA_rmaps_default_mapping_policy", value="$(MAPPING)"),
        with_variable("HOME", value="/data/home"),
        with_variable("OPAL_PREFIX", value="/data/openmpi"),
        {ENV_FROM: [{"configMapRef": {"name": "mpi"}}]},
        {MOUNTS: [{"name": "hosts", "mountPath": "/etc/mpi/hostfile", "subPath": "hostfile"}]},
        {MOUNTS: [{"name": "parameters", "mountPath": "/usr/local/etc/openmpi"}]},
        {MOUNTS: [{"name": "home", "mountPath": "/root"}]},
        # Programs that put, or may put, several ranks on a slot.
        {"spec.mpiImplementation": "MPICH"},
        {"spec.mpiImplementation": "Intel"},
        started_by("", "/opt/intel/oneapi/mpi/2021.13/bin/mpirun"),
        started_by("", "/usr/lib64/mpich/bin/mpirun"),
        started_by("--hostfile /etc/mpi/hostfile", "horovodrun"),
    ],
)
def test_mpirun_that_may_fail_or_start_causes_a_warning(changes: Json) -> None:
    [violation] = violations("slots", sized(2, 2, "mpirun -np 9 x") | {ENV: INJECTED} | changes)
    assert violation.advisory


@pytest.mark.parametrize(
    "changes",
    [
        started_by("--oversubscribe"),
        started_by("--map-by :OVERSUBSCRIBE"),
        started_by("--map-by core:oversubscribe"),
        started_by("--mca rmaps_base_oversubscribe 1"),
        started_by("--host a:8,b:8"),
        started_by("--hostfile /data/hosts"),
        started_by("--machinefile /data/hosts"),
        started_by("--min-np 2 --max-np 9 --host-discovery-script /discover.sh", "horovodrun"),
        {AS_WORKER: True, **resources("Launcher", gpu=2)},
        with_variable("OMPI_MCA_rmaps_base_oversubscribe", value="1"),
        with_variable("OMPI_MCA_rmaps_base_oversubscribe", valueFrom={"configMapKeyRef": {"name": "a", "key": "b"}}),
        with_variable("PRTE_MCA_rmaps_default_mapping_policy", value=":oversubscribe"),
    ],
)
def test_mpirun_that_starts_is_accepted(changes: Json) -> None:
    result = violations("slots", sized(2, 2, "mpirun -np 9 x") | {ENV: INJECTED} | changes)
    assert not [each for each in result if "refuses to start" in each.message]


def test_injected_variables_make_the_failure_of_mpirun_certain() -> None:
    """The validating webhook sees the variables that the injection `mpi-env` has added."""
    job = changed(sized(2, 2, "mpirun -np 9 x"))
    mutated = mutate(request(job), policy=load_policy(None), view=NothingKnown())
    assert mutated.document is not None
    assert [each.rule for each in decide(mutated.document).denied] == ["slots"]


def test_fix_for_ranks_matches_the_fix_for_too_few_workers() -> None:
    too_few = sized(1, 1, "mpirun -np 8 x") | {"Worker.replicas": 1}

    def reported(changes: Json) -> list[str]:
        decision = decide(changed(changes))
        result = [*decision.denied, *decision.warned]
        return [f"{each.violation.message}. {each.violation.fix}" for each in result if each.rule == "slots"]

    assert reported(too_few) == ["mpirun -np 8 refuses to start: 2 slots with 2 workers. Set -np to 2 or add workers."]
    assert reported(too_few | {COMMAND: ["mpirun", "-np", "2", "x"]}) == []
    assert reported(sized(8, 8, "mpirun -np 8 x") | {"Worker.replicas": 1}) == []


def test_launcher_that_is_a_worker_needs_the_gpus_of_a_worker() -> None:
    result = violations("slots", sized(2, 2, "x") | {AS_WORKER: True} | resources("Launcher", cpu=2))
    message = "requests 0 GPUs and a worker for 2, but both run ranks"
    assert result == [Violation("spec.mpiReplicaSpecs[Launcher]", message, fix="Request 2 GPUs.", advisory=True)]
    assert fits_a_warning("slots", result[0])
    [found_none] = violations("slots", sized(2, 0, "x") | {AS_WORKER: True} | resources("Launcher", gpu=2))
    assert found_none.fix == "Use the same limits and claims in both."


def test_too_few_cpus_of_a_launcher_that_is_a_worker_cause_a_warning() -> None:
    result = violations("slots", sized(2, 2, "x") | {AS_WORKER: True} | resources("Launcher", gpu=2, cpu=1))
    message = "2 slots but 1 CPU in the launcher"
    assert result == [Violation("spec.mpiReplicaSpecs[Launcher]", message, fix="Request 2 CPUs.", advisory=True)]
    assert fits_a_warning("slots", result[0])


@pytest.mark.parametrize(
    ("changes", "message", "fix"),
    [
        (sized(4, 1, "mpirun x"), "4 slots but 1 GPU per worker", "Set it to 2."),
        (sized(4, 0, "x") | resources(cpu=1), "4 slots but 1 CPU per worker", "Request 4 CPUs."),
    ],
)
def test_suggested_slots_are_not_below_the_minimum(changes: Json, message: str, fix: str) -> None:
    assert violations("slots", changes, settings={"min": 2}) == [Violation(SLOTS, message, fix=fix, advisory=True)]


def test_minimum_slots_are_accepted_with_fewer_gpus() -> None:
    assert violations("slots", sized(2, 1, "x"), settings={"min": 2}) == []


def neuron(kind: str, count: int) -> Json:
    return {"limits": {f"aws.amazon.com/neuron{kind}": count}}


@pytest.mark.parametrize(
    ("slots", "devices", "settings", "message"),
    [
        (16, neuron("core", 16), {}, None),
        (32, neuron("core", 32), {}, None),
        (16, neuron("core", 32), {}, "16 slots but 32 GPUs per worker"),
        (17, neuron("core", 16), {}, "17 slots per worker, at most 16 allowed"),
        (8, neuron("core", 2), {}, "8 slots but 2 GPUs per worker"),
        (9, neuron("core", 2), {}, "9 slots per worker, at most 8 allowed"),
        (16, neuron("core", 16), {"coreResources": []}, "16 slots per worker, at most 8 allowed"),
        # A device has several cores.
        (16, neuron("", 16), {}, None),
        (32, neuron("", 16), {}, None),
        (128, neuron("", 16), {}, None),
        (24, neuron("", 16), {}, "24 slots but 16 GPUs per worker"),
        (129, neuron("", 16), {}, "129 slots per worker, at most 128 allowed"),
        (16, neuron("", 16), {"coreResources": []}, "16 slots per worker, at most 8 allowed"),
    ],
)
def test_slots_of_workers_with_neuron_devices_are_compared_with_their_cores(
    slots: int, devices: Json, settings: Json, message: str | None
) -> None:
    changes = {SLOTS: slots, "Worker.template.spec.containers.0.resources": devices, COMMAND: ["train.sh"]}
    assert [each.message for each in violations("slots", changes, settings=settings)] == [message] * bool(message)


def test_slots_are_compared_with_the_known_gpus_of_claims() -> None:
    changes = {**claims("t"), "spec.slotsPerWorker": 2, "Launcher.template.spec.containers.0.command": ["train.sh"]}
    view = Snapshot([claim_template("t", exactly(count=4))])
    both = changes | {AS_WORKER: True, "spec.slotsPerWorker": 4, COMMAND: ["train.sh"]} | resources("Launcher", cpu=4)
    assert [each.fix for each in violations("slots", both, view=view)] == ["Use the same limits and claims in both."]
    assert [each.message for each in violations("slots", changes, view=view)] == ["2 slots but 4 GPUs per worker"]
    assert violations("slots", changes, view=Snapshot([claim_template("t", exactly(allocationMode="All"))])) == []
    assert violations("slots", changes) == []
