"""Run a program that ends when its starter ends: `python guard.py STARTER_PID PROGRAM [ARGUMENT ...]`.

However the starter goes (SIGKILL included), the kernel kills the program: PR_SET_PDEATHSIG of prctl(2), which survives
execve. A wrapper instead of `preexec_fn`, which is unsafe (and warned about) in a process with threads. The signal
belongs to the *thread* that forked: start programs from a thread that lives as long as they shall.
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
    if os.getppid() != int(starter):  # it ended before the call above
        sys.exit(1)
    os.execv(command[0], command)
