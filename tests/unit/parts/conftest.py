"""The fixtures of commands and of the server."""

from tests.unit.cli.conftest import check, program
from tests.unit.server.conftest import connection, shared

__all__ = ["check", "connection", "program", "shared"]
