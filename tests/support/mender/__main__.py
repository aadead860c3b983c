"""`python -m tests.support.mender [--quick]`: the table of rounds, and what is wrong with the advice."""

import sys

from tests.support.mender import cases
from tests.support.mender.exceptions import excused
from tests.support.mender.report import report

found = report(cases.quick() if "--quick" in sys.argv[1:] else cases.whole())
wrong = [fault for fault in found.faults if not excused(fault)]
print("\n".join(wrong))  # noqa: T201 - what it is for
print("\n".join(found.lines()))  # noqa: T201
sys.exit(bool(wrong))
