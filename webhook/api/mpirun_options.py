"""The options of Open MPI 4 and 5, of Hydra (MPICH and Intel MPI) and of horovodrun, with the number of their values.

Options that make the number of ranks uncertain (an appfile, elastic Horovod) or that take a value only sometimes are
left out on purpose: the service does not read a call with these options.

https://github.com/open-mpi/ompi/blob/v4.1.8/orte/mca/schizo/ompi/schizo_ompi.c
https://docs.open-mpi.org/en/v5.0.x/man-openmpi/man1/mpirun.1.html
https://github.com/pmodels/mpich/blob/v4.3.2/src/pm/hydra/mpiexec/options.c
https://github.com/horovod/horovod/blob/v0.28.1/horovod/runner/launch.py
"""

import re
from typing import Final

import msgspec


class Dialect(msgspec.Struct, frozen=True):
    """The options of one family of launchers."""

    options: dict[str, tuple[str, int]]
    """(name without dashes, number of values) of each option, by its name with one dash and with two dashes."""
    ranks: frozenset[str]
    """Options that set the number of ranks."""
    refuses: bool
    """More ranks than slots are an error."""
    needs_hostfile: bool
    """Without a hostfile every rank starts on the launcher."""


def _dialect(*, flags: str, one: str, two: str, ranks: str, refuses: bool, needs_hostfile: bool) -> Dialect:
    words = dict.fromkeys(flags.split(), 0) | dict.fromkeys(f"{one} {ranks}".split(), 1) | dict.fromkeys(two.split(), 2)
    options = {f"{dashes}{name}": (name, count) for name, count in words.items() for dashes in ("-", "--")}
    return Dialect(options, frozenset(ranks.split()), refuses, needs_hostfile)


OPEN_MPI: Final = _dialect(
    flags="allow-run-as-root bind-to-core bind-to-socket bycore bynode byslot continuous debug-daemons "
    "disable-recovery display-allocation display-map display-topo do-not-resolve enable-recovery get-stack-traces "
    "leave-session-attached merge-stderr-to-stdout nolocal nooversubscribe noprefix novm oversubscribe pernode "
    "preload-binary q quiet report-bindings report-child-jobs-separately report-state-on-timeout s "
    "set-cwd-to-session-dir tag-output timestamp-output use-hwthread-cpus v verbose xml",
    one="H N am bind-to cpu-list cpu-set cpus-per-proc cpus-per-rank default-hostfile display host hostfile "
    "launch-agent machinefile map-by max-restarts max-vm-size npernode npersocket output output-filename path "
    "personality ppr prefix preload-files rank-by rankfile report-pid report-uri rf runtime-options stdin "
    "stream-buffering timeout tune wd wdir with-ft x xterm",
    two="gmca gomca gpmixmca mca omca pmixmca prtemca",
    ranks="c n np",
    refuses=True,
    needs_hostfile=False,
)
HYDRA: Final = _dialect(
    flags="aps disable-auto-cleanup disable-hostname-propagation disable-x enable-auto-cleanup "
    "enable-hostname-propagation enable-x envall envnone genvall genvnone hybrid-hosts ilp64 l mps nolocal "
    "prepend-rank prepend-timestamp print-all-exitcodes print-rank-map prot rr silent-abort skip-launch-node v verbose",
    one="bind-to binding bootstrap bootstrap-exec cpu-bind demux envlist errfile errfile-pattern f g genvlist "
    "gpu-subdevs-per-proc gpus-per-proc grr gtool gtoolfile host hostfile hostlist hosts hosts-group iface launcher "
    "launcher-exec localhost machine machinefile map-by membind nameserver order-nodes outfile "
    "outfile-pattern output-from perhost ppn prepend-pattern rankmap rmk s topolib usize wdir",
    two="env genv",
    ranks="n np",
    refuses=False,
    needs_hostfile=False,
)
HOROVODRUN: Final = _dialect(
    flags="autotune disable-cache gloo hierarchical-allgather hierarchical-allreduce mpi mpi-threads-disable "
    "no-hierarchical-allgather no-hierarchical-allreduce no-mpi-threads-disable no-stall-check "
    "prefix-output-with-timestamp prefix-timestamp tcp timeline-mark-cycles verbose",
    one="H autotune-log-file binding-args cache-capacity cycle-time-ms fusion-threshold-mb gloo-timeout-seconds "
    "hostfile hosts i log-level mpi-args network-interface network-interfaces num-nccl-streams output-filename p "
    "ssh-identity-file ssh-port start-timeout thread-affinity timeline-filename",
    two="",
    ranks="np num-proc",
    refuses=True,
    needs_hostfile=True,
)

NEAR_OPTION: Final = re.compile(r"(?:-*[\u2012-\u2015\u2212]+-*|--?(?=pn\Z))([\w-]+)")
"""`-pn` instead of `-np`, and options that begin with a typographic dash."""

HOSTS: Final = frozenset(
    ("H", "default-hostfile", "f", "host", "hostfile", "hostlist", "hosts", "hosts-group", "machine", "machinefile")
)
"""Options that replace the operator's list of hosts."""

PER_NODE: Final = frozenset(("N", "grr", "npernode", "npersocket", "perhost", "pernode", "ppn", "ppr", "rr"))
"""Options that set the number of ranks on each host."""

PAIRS: Final = frozenset(("env", "genv"))
"""Options that are followed by `NAME VALUE` or `NAME=VALUE`."""
