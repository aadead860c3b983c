"""Makes the clock of a running process jump, with Debian's libfaketime."""

from pathlib import Path

from tests.support.mpi import programs

LIBRARIES = ("lib/*/faketime/libfaketimeMT.so.1", "lib*/faketime/libfaketimeMT.so.1")


class Clock:
    """The wall clock of every program started with `command`. The monotonic clock stays correct."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.jump(0)

    def jump(self, seconds: int) -> None:
        """Set the clock `seconds` ahead of the machine's clock. The program notices within a second."""
        # Replaced by a rename, so that a reader never sees half of the file.
        new = self._file.with_suffix(".new")
        new.write_text(f"{seconds:+d}\n")
        new.rename(self._file)

    @property
    def command(self) -> tuple[str, ...]:
        """The beginning of a command that starts a program with this clock."""
        settings = {
            "LD_PRELOAD": _library(),
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
            # Otherwise every wait for a lock ends at once and restarts, and a thread takes 50 times the CPU time.
            "FAKETIME_FORCE_MONOTONIC_FIX": "0",
            "NO_FAKE_STAT": "1",
        }
        return ("/usr/bin/env", *(f"{name}={value}" for name, value in settings.items()))


def _library() -> str:
    for attempt in range(2):
        paths = [path for pattern in LIBRARIES for path in Path("/usr").glob(pattern)]
        if paths:
            return str(paths[0])
        if not attempt:
            programs.find("faketime", "faketime")
    raise RuntimeError(f"faketime is installed, but its library is not at /usr/{LIBRARIES[0]}")
