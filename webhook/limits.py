"""Limits of the service as a whole."""

from typing import Final

MAX_DECISION_SECONDS: Final = 0.25
"""Maximum processor time for one job, object or policy document. Other reviews wait meanwhile."""
MAX_UNSKIPPABLE_SECONDS: Final = 0.1
"""The part of MAX_DECISION_SECONDS that a mutation reserves for injections that users cannot skip."""
WORK_CHECK_SECONDS: Final = 0.005
"""Processor time between two checks of how long the current decision takes."""
