"""Limits of the service as a whole."""

from typing import Final

MAX_DECISION_SECONDS: Final = 0.25
"""Processor time for one job, object or policy document: other reviews wait for that long."""
MAX_UNSKIPPABLE_SECONDS: Final = 0.1
"""Part of these that a mutation keeps for injections that no user may leave out, should all together take too long."""
WORK_CHECK_SECONDS: Final = 0.005
"""Processor time of the process between two looks at how long a decision has taken."""
