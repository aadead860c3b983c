"""What is accepted in the turn in which its server closes is closed as well."""

import asyncio
import gc
import socket


async def test_nothing_is_left_to_the_garbage_collector() -> None:
    gc.disable()
    try:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        with socket.create_connection(server.sockets[0].getsockname()) as client:
            client.settimeout(30)
            await asyncio.sleep(0)
            await asyncio.sleep(0)  # accepted, and nobody has made its transport
            server.close()
            await asyncio.sleep(0)
            assert await asyncio.to_thread(client.recv, 1) == b""
    finally:
        gc.enable()
