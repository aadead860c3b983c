"""Fixtures of the commands' and the server's tests."""

from tests.unit.cli.conftest import check, program
from tests.unit.server.conftest import connection, shared

__all__ = ["check", "connection", "program", "shared"]
