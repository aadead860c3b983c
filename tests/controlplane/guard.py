"""Run a program that ends when its starter ends: `python guard.py STARTER_PID PROGRAM [ARGUMENT ...]`.

The kernel kills the program when the starter ends for any reason (SIGKILL included): PR_SET_PDEATHSIG of prctl(2),
which survives execve. A wrapper replaces `preexec_fn`, which is unsafe (and warned about) in a process with threads.
The signal belongs to the *thread* that forked: start programs from a thread that lives at least as long.
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
