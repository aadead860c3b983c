"""Updates the outputs in the pages, and the recorded sessions: `make sessions`."""

import tempfile
from pathlib import Path

from tools.sessions.stage import staged
from tools.sessions.texts import played

with tempfile.TemporaryDirectory() as folder, staged(Path(folder)) as stage:
    for path, text in played(stage).items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            print(path)  # noqa: T201 - a command prints
