"""Limits of the service as a whole."""

from typing import Final

MAX_DECISION_SECONDS: Final = 0.25
"""Processor time for one job, object or policy document: other reviews wait for that long."""
WORK_CHECK_SECONDS: Final = 0.005
"""Processor time of the process between two looks at how long a decision has taken."""
