"""The processor's own count of the instructions that this thread has executed.

Unlike times it is the same on a machine that does other work meanwhile. The kernel offers it (perf_event_open(2)) where
the processor, or the hypervisor, does.
"""

import ctypes
import os
import platform
import struct
from collections.abc import Callable
from typing import Final

Count = Callable[[], int]
"""Instructions so far."""

# perf_event_open in arch/x86/entry/syscalls/syscall_64.tbl and include/uapi/asm-generic/unistd.h
_SYSTEM_CALLS: Final = {"x86_64": 298, "aarch64": 241}
_HARDWARE: Final = 0
_INSTRUCTIONS: Final = 1
# Not those of the kernel or of a hypervisor: include/uapi/linux/perf_event.h, `exclude_kernel` and `exclude_hv`.
_OWN_CODE: Final = 1 << 5 | 1 << 6
_SIZE: Final = 112


class NoCounterError(Exception):
    """The kernel does not count instructions here; the message says why."""


class _Attributes(ctypes.Structure):
    """The start of `struct perf_event_attr`; the rest of it is zero."""

    _fields_ = [
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("sampling", ctypes.c_uint64 * 3),
        ("flags", ctypes.c_uint64),
        ("rest", ctypes.c_uint64 * 9),
    ]


def counter() -> Count:
    """A function that says how many instructions this thread has executed since now."""
    number = _SYSTEM_CALLS.get(platform.machine())
    if number is None:
        raise NoCounterError(f"the number of perf_event_open is not known for {platform.machine()}")
    attributes = _Attributes(type=_HARDWARE, size=_SIZE, config=_INSTRUCTIONS, flags=_OWN_CODE)
    kernel = ctypes.CDLL(None, use_errno=True)
    descriptor = kernel.syscall(number, ctypes.byref(attributes), 0, -1, -1, 0)
    if descriptor < 0:
        raise NoCounterError(f"perf_event_open: {os.strerror(ctypes.get_errno())}")

    def count() -> int:
        counted: int = struct.unpack("Q", os.read(descriptor, 8))[0]
        return counted

    return count
