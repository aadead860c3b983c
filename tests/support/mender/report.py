"""What the mender found: for each rule how often it was told, and in how many rounds it was mended."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tests.support.mender.cases import Case
from tests.support.mender.rounds import Cause, Round, faults, mend
from webhook.rules import REGISTRY

SHOWN_ROUNDS = 3


@dataclass
class Report:
    """All cases together."""

    cases: int = 0
    told: Counter[str] = field(default_factory=Counter)
    """Causes of first rounds, by rule."""
    followed: Counter[str] = field(default_factory=Counter)
    """Those that the user did something about."""
    mended: Counter[tuple[str, int]] = field(default_factory=Counter)
    """Those that were gone after so many rounds."""
    prose: Counter[tuple[str, str]] = field(default_factory=Counter)
    """(rule, fix) of those that state none."""
    faults: list[str] = field(default_factory=list)
    """What is wrong with the advice."""

    def lines(self) -> Iterator[str]:
        """The table."""
        rounds = [f"{number} round{'s' * (number > 1)}" for number in range(1, SHOWN_ROUNDS + 1)]
        yield f"{'rule':24}{'told':>8}{'followed':>10}{''.join(f'{text:>10}' for text in rounds)}{'more':>8}"
        for rule in REGISTRY:
            within = [self.mended[rule, number] for number in range(1, SHOWN_ROUNDS + 1)]
            more = self.followed[rule] - sum(within)
            counts = "".join(f"{count:>10}" for count in within)
            yield f"{rule:24}{self.told[rule]:>8}{self.followed[rule]:>10}{counts}{more:>8}"
        yield f"{self.cases} jobs, {len(self.faults)} faults"


def report(cases: Iterable[Case]) -> Report:
    """Mend them all."""
    found = Report()
    for case in cases:
        rounds = mend(case.job, case.world)
        found.cases += 1
        found.faults += [f"{fault}\n    ({case})" for fault in faults(rounds)]
        for cause in rounds[0].causes:
            found.told[cause.rule] += 1
            if not rounds[0].edits[cause]:
                found.prose[cause.rule, cause.fix] += 1
        for cause in rounds[0].followed:
            found.followed[cause.rule] += 1
            if number := _gone_after(cause, rounds):
                found.mended[cause.rule, number] += 1
    return found


def _gone_after(cause: Cause, rounds: list[Round]) -> int:
    """The number of rounds after which it is not told any more; 0 for never."""
    for number, each in enumerate(rounds[1:], start=1):
        if cause.same not in {other.same for other in each.causes}:
            return number
    return 0
