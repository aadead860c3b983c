"""The machine on which the figures were measured."""

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path


def this_machine() -> str:
    """The cores, the processor and the versions, which a reader of the figures needs."""
    lines = (line.partition(":") for line in Path("/proc/cpuinfo").read_text().splitlines())
    processor = next((value.strip() for name, _, value in lines if name.strip() == "model name"), platform.machine())
    versions = {"Linux": platform.release().partition("-")[0], "Python": platform.python_version()}
    versions |= {name: version(name) for name in ("aiohttp", "uvloop", "msgspec")}
    return ", ".join([f"{os.cpu_count()} cores of {processor}", *map(" ".join, versions.items())])


def busy_seconds() -> float:
    """Non-idle processor time of all cores since boot, including time taken by a hypervisor."""
    # proc(5): user nice system idle iowait irq softirq steal, then guests, which are included in user
    times = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(times) - times[3] - times[4]) / os.sysconf("SC_CLK_TCK")


def two_cores() -> tuple[int, int]:
    """(core for the servers, core for the load generator). Exits if there is one core: figures would be useless."""
    available = sorted(os.sched_getaffinity(0)) if sys.platform == "linux" else []
    if len(available) < 2:
        sys.exit("The benchmarks need Linux and two cores: one for the server, one for the load generator.")
    return available[0], available[-1]
