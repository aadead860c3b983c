"""Runs a program that ends with the process that started it: `python guard.py STARTER_PID PROGRAM [ARGUMENT ...]`.

The kernel kills the program when the starter ends for any reason, including SIGKILL. This is PR_SET_PDEATHSIG of
prctl(2), which is kept after execve. `preexec_fn` would be unsafe in a process with threads. The kernel sends the
signal when the *thread* that started the program ends, so that thread must run at least as long as the program.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1

if __name__ == "__main__":
    starter, *command = sys.argv[1:]
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(starter):  # the starter ended before the call of prctl
        sys.exit(1)
    os.execv(command[0], command)
