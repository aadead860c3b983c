"""Log lines of one turn of the event loop are written together, and none is lost."""

import asyncio
import io
import subprocess
import sys
import threading

import pytest

from webhook.server.log import Batch, make_log


class Stream(io.BytesIO):
    """Remembers each write."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.writes.append(data)
        return len(data)


async def test_the_lines_of_one_turn_are_one_write_at_the_next() -> None:
    stream = Stream()
    log = make_log(Batch(stream))
    log.info("first")
    log.info("second")
    assert not stream.writes
    await asyncio.sleep(0)
    (written,) = stream.writes
    assert [line.partition(b'"event":')[2] for line in written.splitlines()] == [b'"first"}', b'"second"}']
    log.info("third")
    await asyncio.sleep(0)
    assert len(stream.writes) == 2


def test_without_a_loop_a_line_is_written_at_once() -> None:
    stream = Stream()
    make_log(Batch(stream)).info("alone")
    assert len(stream.writes) == 1


async def test_lines_of_other_threads_are_all_there_and_whole() -> None:
    stream = Stream()
    log = make_log(Batch(stream))
    threads = [threading.Thread(target=lambda: [log.info("x" * 50) for _ in range(200)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        log.info("x" * 50)
        await asyncio.sleep(0)
    for thread in threads:
        thread.join()
    await asyncio.sleep(0)
    lines = b"".join(stream.writes).splitlines()
    assert len(lines) == 1000
    assert all(line.startswith(b"{") and line.endswith(b'"}') for line in lines)


@pytest.mark.parametrize("error", [BrokenPipeError, ValueError])
async def test_a_stream_that_takes_nothing_ends_nothing(error: type[Exception]) -> None:
    class Broken(Stream):
        def write(self, data: bytes) -> int:  # type: ignore[override]
            raise error

    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context))
    log = make_log(Batch(Broken()))
    log.info("lost")
    await asyncio.sleep(0)
    log.info("lost too")
    await asyncio.sleep(0)
    assert not faults


@pytest.mark.parametrize("end", ["pass", "sys.exit(3)", "raise KeyError", "loop.stop()"])
def test_a_process_that_ends_has_written_all(end: str) -> None:
    program = f"""
import asyncio, atexit, sys
from webhook.server.log import Batch, make_log
lines = Batch(sys.stderr.buffer)
atexit.register(lines.drain)
async def main():
    loop = asyncio.get_running_loop()
    make_log(lines).info("the last line")
    {end}
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)
    assert b"the last line" in done.stderr
