"""Limits of the audit."""

from typing import Final

AUDITED_JOBS_PER_PAGE: Final = 50
"""Jobs in a page of the audit's list. Pages are small, because the audit cannot pause while it decodes a page."""
MAX_AUDIT_SHARE: Final = 0.25
"""Share of a processor that the audit uses while it runs."""
