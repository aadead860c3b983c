"""A static web server."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class _Handler(SimpleHTTPRequestHandler):
    def guess_type(self, path: Any) -> str:
        """The types that nginx sends. nginx has no type for .mjs, so browsers do not run such scripts."""
        types = {".js": "text/javascript", ".mjs": "application/octet-stream", ".wasm": "application/wasm"}
        return types.get(Path(path).suffix) or super().guess_type(path)

    def log_message(self, *_: Any) -> None:
        """Keep the terminal quiet."""


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """Serve the folder until the block ends. Yields the URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Handler, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
