"""Limits of the audit."""

from typing import Final

AUDITED_JOBS_PER_PAGE: Final = 50
"""Jobs in a page of the audit's list. Pages are small, because the audit cannot pause while it decodes a page."""
MAX_AUDIT_SHARE: Final = 0.25
"""Share of a processor that the audit uses while it runs."""
MAX_REPORTED_RESULTS: Final = 50
"""Results in a PolicyReport: some tens of kilobytes in etcd."""
MAX_REPORTED_CHARACTERS: Final = 1024
"""Characters of a result's message in a PolicyReport."""
