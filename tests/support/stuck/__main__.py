"""Writes the table of docs/why.md: `make why`."""

from tests.controlplane.cluster import Cluster
from tests.support.stuck.page import PAGE, table, with_table
from tests.support.stuck.world import stuck

with Cluster() as cluster, stuck(cluster) as world:
    PAGE.write_text(with_table(PAGE.read_text(), table(world.first_lines())))
