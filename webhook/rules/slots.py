"""Slots of a worker are within the limits and match its GPUs or CPUs and the ranks that mpirun starts.

Slots below `min` or above `max` are rejected. `maxCpu`, if set, replaces `max` for workers without accelerators. A
worker may have a slot for each core of its Neuron accelerators.

Other checks are warnings, because only the program knows how it uses its ranks:

* slots that differ from the GPUs of a worker: each rank usually uses one GPU, and NCCL rejects two ranks on one GPU.
  Nothing is reported if `mpirun` shows that the difference is intended: `-np` is the number of all slots, and a worker
  has more GPUs than slots; `-N` is the number of slots; or it starts torchrun, deepspeed or accelerate, which start a
  process for each GPU;
* slots that exceed a worker's CPUs: mpirun hangs or fails (kubeflow/mpi-operator#318);
* more ranks in `mpirun -np` than slots: Open MPI and Horovod do not start, MPICH and Intel MPI put several ranks on a
  slot;
* fewer ranks than slots: GPUs stay idle;
* a number of ranks for each worker (`-N`, `-npernode`, `--map-by ppr:4:socket`) that is above the slots, or too low for
  the total of `-np`: Open MPI does not start.

The job is rejected if the launcher's command is itself an `mpirun` of Open MPI that starts more ranks than slots and
certainly fails. It certainly fails if it reads the operator's hostfile, by an option or by the injection `mpi-env`, and
if no other parameter of Open MPI, rank file, unknown variable or volume could allow more ranks. Settings in the image
are not seen. With `--oversubscribe`, several ranks on a slot are not reported.

The value of a variable is known if the script or the container's `env` has only one value for it, such as `NP=4` or
`NP=${NP:-4}`. A call with other variables, or with unknown options, is not checked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pydantic import Field, model_validator

from webhook.api import mpirun, quantity
from webhook.api.accelerators import CORES, DEFAULT_ACCELERATORS, MAX_CORES_PER_DEVICE, read
from webhook.api.mpijob import LAUNCHER, WORKER, MPIJob, replica_path
from webhook.api.mpirun import HOSTFILE, Invocation
from webhook.api.mpirun_options import HOSTS, HYDRA, OPEN_MPI, PER_NODE
from webhook.api.pod import Container, PodTemplate
from webhook.kit.advice_bounds import Admitted, Span
from webhook.kit.context import Context
from webhook.kit.importance import Importance
from webhook.kit.mpirun_calls import largest_call, may_share_slots, ranks_with_slots
from webhook.kit.settings import RangeRuleSettings, ResourceNames
from webhook.predict.devices import Devices, of_pod
from webhook.predict.nodes import node_shapes
from webhook.predict.open_mpi import is_certain_to_refuse
from webhook.predict.sizes import Sizes
from webhook.rules import Degree, Violation, number_of, rule

PATH = "spec.slotsPerWorker"

# (patterns for `of_pod`, cores of a device)
_CORES_PER_DEVICE = tuple(((name,), cores) for name, cores in MAX_CORES_PER_DEVICE.items())
_INSTEAD = ", with more workers or threads in each rank; an administrator can allow more in slots.maxCpu"


class Settings(RangeRuleSettings):
    """Limits of slotsPerWorker."""

    min: int = Field(1, ge=0, description="Minimum number of slots of a worker.")
    max: int = Field(8, ge=1, description="Maximum number of slots of a worker.")
    max_cpu: int | None = Field(
        None,
        ge=1,
        description="Maximum for a worker without accelerators, whose ranks run on cores; null: same as max.",
    )
    resources: ResourceNames = Field(
        DEFAULT_ACCELERATORS, description="Names of resources that are GPUs, as in the rule `gpus`."
    )
    core_resources: ResourceNames = Field(
        CORES,
        description="Names of resources that are cores, of which a device has several: max does not limit their slots.",
    )

    @model_validator(mode="after")
    def _cpu_bound_in_order(self) -> "Settings":
        if self.max_cpu is not None and self.min > self.max_cpu:
            raise ValueError(f"min ({self.min}) is above maxCpu ({self.max_cpu})")
        return self


def admits(settings: Settings) -> Admitted:
    return Admitted(slots=Span(settings.min, settings.max))


@rule("slots", Settings, since="0.1", admits=admits, importance=Importance.FAILS)
def check(job: MPIJob, settings: Settings, ctx: Context) -> Iterator[Violation]:
    slots = job.spec.slots_per_worker or 0
    if slots < 0:
        return  # upstream-contract rejects it
    if slots < settings.min:
        least = Sizes.of(job, ctx).fewest_slots(settings.min)
        fault = f"{number_of(slots, 'slot')} per worker, at least {settings.min} required"
        yield Violation(PATH, fault, fix=f"Set slotsPerWorker to {least} or more.", degree=Degree("too few", -slots))
        yield from _too_many_ranks(job, least, ctx)
        return
    pods = {role: replica.template for role, _, replica in job.computing()}
    devices = [of_pod(template, settings.resources, ctx) for template in pods.values()]
    gpus = [pod_devices.exact for pod_devices in devices]
    on_cores = not any(gpus) and not any(_has_claims(template) for template in pods.values())
    most = settings.max_cpu if on_cores and settings.max_cpu is not None else settings.max
    # A slot for each GPU is right, whether or not a GPU has several cores.
    cores = 0 if {*gpus} == {slots} and 0 < slots <= most else _cores(pods.values(), settings, ctx)
    most = max(most, cores)
    if slots > most:
        fix = f"Set slotsPerWorker to {most} or fewer{_INSTEAD if on_cores else ''}."
        fault = f"{number_of(slots, 'slot')} per worker, at most {most} allowed"
        yield Violation(PATH, fault, fix=fix, degree=Degree("too many", slots - most))
        yield from _too_many_ranks(job, most, ctx)
        return
    size = Sizes.of(job, ctx).on_nodes(ctx) if node_shapes(ctx.view) else None
    # The suggested workers, and GPUs of each, if no node has the requested number of GPUs.
    nodes, fewest = (size.workers, size.gpus) if size is not None else (0, 0)
    of_worker = gpus[-1] if gpus else 0
    suggested = max(min(fewest or of_worker, most), settings.min)
    # For a job with a slot for each GPU, the rule `accelerator-available` suggests the new numbers of both.
    with_gpus = bool(fewest) and slots == of_worker
    on_devices = slots <= cores and of_worker and slots % of_worker == 0
    if of_worker and not (with_gpus or on_devices or slots == suggested or _meant(job, slots, of_worker)):
        fault = f"{number_of(slots, 'slot')} but {number_of(of_worker, 'GPU')} per worker"
        shows_ranks = job.mpirun_calls and all(map(_is_clear, job.mpirun_calls))
        fix = f"Set it to {suggested}{'' if shows_ranks else ', or to the ranks that mpirun starts on a worker'}."
        yield Violation(PATH, fault, fix=fix, advisory=True)
        yield from _too_many_ranks(job, suggested, ctx, nodes=nodes)
    elif crowded := _crowded(job, slots, most if on_cores else max(slots, suggested)):
        yield crowded
    else:  # after a suggestion of other slots, advice about CPUs and ranks would be wrong
        cpus, role = _least_cpus(pods)
        if 0 < cpus < slots:
            needed = ranks_with_slots(job) > cpus * _admitted_nodes(job, ctx, nodes)
            yield _too_few_cpus(slots, cpus, role, fixed=slots in {*gpus, suggested} or cpus < settings.min or needed)
        then = fewest if with_gpus and nodes > job.workers else slots
        highest = min(most, max(gpus, default=0) or most, cpus or most)
        yield from _ranks(job, then, highest, ctx, nodes=nodes, gpus=any(gpus))
    if gpus and gpus[0] != gpus[-1]:
        yield from _unlike_launcher(devices, ctx)


def _has_claims(template: PodTemplate) -> bool:
    return any(container.resources and container.resources.claims for container in template.containers)


def _cores(templates: Iterable[PodTemplate], settings: Settings, ctx: Context) -> int:
    kinds = _CORES_PER_DEVICE if settings.core_resources else ()
    per_resource = ((settings.core_resources, 1), *kinds)
    return max([of_pod(pod, names, ctx).least * cores for pod in templates for names, cores in per_resource] or [0])


def _unlike_launcher(devices: Sequence[Devices], ctx: Context) -> Iterator[Violation]:
    """Reports nothing if the rule `gpus` rejects the launcher's number."""
    of_launcher, of_worker = devices[0].exact, devices[-1].exact
    if of_launcher in ctx.admitted.gpus:
        fault = f"requests {number_of(of_launcher, 'GPU')} and a worker for {of_worker}, but both run ranks"
        fix = f"Request {number_of(of_worker, 'GPU')}."
        if not of_worker or devices[-1].by_claim:  # the user may mean either number, and claims have no limits field
            fix = "Use the same limits and claims in both."
        yield Violation(replica_path(LAUNCHER), fault, fix=fix, advisory=True)


def _meant(job: MPIJob, slots: int, gpus: int) -> bool:
    """Whether mpirun shows that the number of slots is intended, although it differs from the GPUs."""
    return any(
        (slots < gpus and call.ranks == slots * _nodes(job))
        or _exactly_per_node(call) == slots
        or mpirun.starter(call)
        or {"-g", str(gpus // (slots or 1))} <= {*call.words}  # NCCL's tests have this option for the GPUs of a rank
        for call in job.mpirun_calls
    )


def _exactly_per_node(call: Invocation) -> int | None:
    limit = mpirun.per_node(call)
    return limit.ranks if limit and limit.exactly else None


def _is_clear(call: Invocation) -> bool:
    """Whether the call states the number of ranks, or starts a rank for each slot."""
    names = {name for name, _ in call.options or ()}
    in_all = call.ranks is not None or not names & (OPEN_MPI.ranks | HYDRA.ranks)
    per_node = _exactly_per_node(call) is not None or not names & PER_NODE
    return call.options is not None and in_all and per_node


def _crowded(job: MPIJob, slots: int, most: int) -> Violation | None:
    """Reports a call of Open MPI with more ranks for each worker than slots, or with fewer ranks in all than `-np`."""
    for call in job.mpirun_calls:
        limit = mpirun.per_node(call)
        if limit is None or not call.options or may_share_slots(job):
            continue
        elsewhere = {values for option, values in call.options if option in HOSTS} - {(HOSTFILE,)}
        if elsewhere or mpirun.dialect(call.program, job.spec.mpi_implementation) is not OPEN_MPI:
            continue
        name, count, exactly = limit
        if count > slots:
            fix = f"Set it to {count}, or -{name} to {slots}." if count <= most else f"Set -{name} to {slots}."
            fault = f"-{name} requests {count} ranks per worker, {number_of(slots, 'slot')}"
            return Violation(PATH, fault, fix=fix, advisory=True)
        total = count * _nodes(job)
        if exactly and total < (call.ranks or 0) <= slots * _nodes(job):
            allowed = f"{number_of(count, 'rank')} for each of {_nodes(job)} workers"
            fault = f"{call.program} -np {call.ranks}, but -{name} allows {allowed}"
            return Violation(PATH, fault, fix=f"Set -np to {total}.", advisory=True)
    return None


def _nodes(job: MPIJob) -> int:
    return job.workers + (1 if job.spec.run_launcher_as_worker else 0)


def _least_cpus(pods: Mapping[str, PodTemplate]) -> tuple[int, str]:
    """The lowest number of CPUs of a pod that runs ranks, 0 if unknown, and the role of the pod."""
    firsts = [(template.containers[0], role) for role, template in pods.items() if template.containers]
    return min([(cpus, role) for container, role in firsts if (cpus := _cpu_count(container))], default=(0, WORKER))


def _too_few_cpus(slots: int, cpus: int, role: str, *, fixed: bool) -> Violation:
    """`fixed` is True if the number of slots cannot be lower, so that the CPUs must change."""
    whose = "per worker" if role == WORKER else "in the launcher"
    path = replica_path(role) if fixed and role == LAUNCHER else PATH
    fix = f"Request {slots} CPUs." if fixed else f"Set it to {cpus}, or request {slots} CPUs."
    fault = f"{number_of(slots, 'slot')} but {number_of(cpus, 'CPU')} {whose}"
    return Violation(path, fault, fix=fix, advisory=True)


def _cpu_count(container: Container) -> int:
    """The container's CPUs, rounded up; 0 if it has neither a limit nor a request."""
    if container.resources is None:
        return 0
    limits, requests = container.resources.limits or {}, container.resources.requests or {}
    return max(quantity.whole(read(limits.get("cpu", requests.get("cpu", 0)))), 0)


def _ranks(job: MPIJob, slots: int, most: int, ctx: Context, *, nodes: int, gpus: bool) -> Iterator[Violation]:
    """`most` is the most slots that the fix suggests; `nodes` is the minimum number of pods that run ranks."""
    calls, largest = job.mpirun_calls, largest_call(job)
    if largest is None or largest.ranks is None:
        return
    current = _nodes(job)
    nodes = _admitted_nodes(job, ctx, nodes)  # another rule rejects the current number if it is not admitted
    total = slots * nodes
    if total in {0, largest.ranks}:
        return
    in_all = f"{number_of(total, 'slot')} {'in all' if nodes == current else f'with {nodes} workers'}"
    if largest.ranks > total:
        needed = -(-largest.ranks // nodes)
        may_add = nodes + -(-(largest.ranks - total) // slots) in ctx.admitted.workers
        fewer = f"Set -np to {total}{' or add workers' if may_add else ''}."
        fix = f"Set it to {needed}, or -np to {total}." if needed <= most else fewer
        yield from _beyond(job, largest, total, ctx, in_all=in_all, fix=fix)
    elif (
        current == nodes and largest.ranks < total and gpus and all(call.ranks and not call.per_node for call in calls)
    ):
        fault = f"{largest.program} -np {largest.ranks} leaves GPUs idle: {in_all}"
        starter = mpirun.starter(largest)
        fix = f"Set it to 1: {starter} starts the rest." if starter else f"Set -np to {total}."
        yield Violation(PATH, fault, fix=fix, advisory=True)


def _too_many_ranks(job: MPIJob, slots: int, ctx: Context, *, nodes: int = 0) -> Iterator[Violation]:
    """Reports more ranks than slots, even if each worker has the suggested `slots`."""
    total = slots * _admitted_nodes(job, ctx, nodes)
    largest = largest_call(job)
    if largest is not None and (largest.ranks or 0) > total > 0:
        in_all = f"{number_of(total, 'slot')} with {slots} per worker"
        yield from _beyond(job, largest, total, ctx, in_all=in_all, fix=f"Set -np to {total}.")


def _beyond(job: MPIJob, call: Invocation, total: int, ctx: Context, *, in_all: str, fix: str) -> Iterator[Violation]:
    """`total` is the number of slots."""
    if job.launcher is None or call.ranks is None or may_share_slots(job):
        return
    effect = "refuses to start" if call.refuses else "puts several ranks on a slot"
    yield Violation(
        PATH,
        f"{call.program} -np {call.ranks} {effect}: {in_all}",
        fix=fix,
        advisory=not is_certain_to_refuse(job.launcher.template.containers[0], call),
        degree=Degree("ranks", call.ranks - total),
    )


def _admitted_nodes(job: MPIJob, ctx: Context, fewest: int) -> int:
    """The number of pods that run ranks, within the limits of the rules."""
    nodes, admitted = max(_nodes(job), fewest, ctx.admitted.workers.least), ctx.admitted.workers
    return nodes if admitted.most is None or admitted.empty else min(nodes, admitted.most)
