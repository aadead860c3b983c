"""The page, opened in the browser of whoever runs the command.

Every user of the machine can read what a program is started with, so the browser is given no address. It is given a
file that nobody else may read, and that leads to the address.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile, gettempdir

import click


@contextmanager
def opened(url: str) -> Iterator[None]:
    """Open it; the file is there until the block ends."""
    home = Path.home()
    # Browsers that are packed with a sandbox read neither hidden folders nor those for temporary files.
    folder = home if os.access(home, os.W_OK) else gettempdir()
    with NamedTemporaryFile("w", encoding="utf-8", dir=folder, prefix="mpijob-playground-", suffix=".html") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}"><title>...</title>\n')
        file.flush()
        if click.launch(file.name):
            click.echo("no browser was found: open the address yourself", err=True)
        yield
