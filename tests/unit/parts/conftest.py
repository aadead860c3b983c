"""Fixtures from the tests of commands and of the server, and a cluster without jobs."""

import pytest

from tests.support.kept_objects import KeptObjects
from tests.unit.cli.conftest import check, program
from tests.unit.server.conftest import connection, shared

__all__ = ["check", "cluster", "connection", "program", "shared"]


@pytest.fixture
def cluster() -> KeptObjects:
    objects = KeptObjects()
    objects.put("/api/v1/namespaces/team-a", {"metadata": {"labels": {"tier": "gold"}}})
    return objects
