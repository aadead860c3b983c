"""The program of a rank: `python rank.py LIBRARY`. It joins MPI, waits for the other ranks, and prints one line.

The line has the rank, the number of ranks, the host, and the NCCL variables. The program calls the C library of MPI
directly, so that no compiler is needed.
"""

import ctypes
import json
import os
import socket
import sys

# MPI_COMM_WORLD is an address in Open MPI, and this number in MPICH and Intel MPI.
MPICH_WORLD = 0x44000000


def main() -> None:
    mpi = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)
    open_mpi = getattr(mpi, "ompi_mpi_comm_world", None)
    world = ctypes.c_int(MPICH_WORLD) if open_mpi is None else open_mpi
    rank, size = ctypes.c_int(), ctypes.c_int()
    mpi.MPI_Init(None, None)
    mpi.MPI_Comm_rank(world, ctypes.byref(rank))
    mpi.MPI_Comm_size(world, ctypes.byref(size))
    mpi.MPI_Barrier(world)
    seen = {name: value for name, value in os.environ.items() if name.startswith("NCCL_")}
    line = json.dumps({"rank": rank.value, "size": size.value, "host": socket.gethostname(), "env": seen})
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
    mpi.MPI_Finalize()


if __name__ == "__main__":
    main()
