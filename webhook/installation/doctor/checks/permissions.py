"""RBAC: what the service may do, and what it must not be able to do."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from webhook import PROGRAM
from webhook.client.access_reviews import Right
from webhook.installation.doctor import rights
from webhook.installation.doctor.diagnosis import Diagnosis, DiagnosisKind, Severity, Unread, not_known, ok
from webhook.installation.doctor.facts import Facts, arguments

RIGHT_ESSENTIAL: Final = DiagnosisKind("right-essential", Severity.PROBLEM)
RIGHT_MISSING: Final = DiagnosisKind("right-missing", Severity.WARNING)
SECRETS_OPEN: Final = DiagnosisKind("secrets-open", Severity.WARNING)


def check(facts: Facts) -> Iterator[Diagnosis]:
    """Say which rights are missing, by purpose, and which rights on Secrets are too many."""
    if isinstance(facts.rights, Unread):
        yield not_known("the rights of the service", facts.rights.reason)
        return
    options = arguments(facts.deployment)
    wanted = rights.purposes(facts.location, ca_secret=facts.certificates.ca_secret, options=options)
    yield from missing(wanted, facts.rights, fix=facts.again)
    if open_ := [right for right in rights.excess(facts.location, options=options) if facts.rights.get(right)]:
        yield SECRETS_OPEN(
            f"the service may {_words(open_)}, and needs it for nothing",
            fix=f"kubectl get clusterrolebindings,rolebindings -A -o wide | grep {PROGRAM}; "
            "take away the one that is not of the manifests",
        )
    yield ok(f"all {sum(len(purpose.rights) for purpose in wanted)} rights, and no others on Secrets")


def missing(purposes: Iterable[rights.Purpose], allowed: Mapping[Right, bool], *, fix: str) -> Iterator[Diagnosis]:
    """For each purpose the rights that are not allowed."""
    for purpose in purposes:
        if lacking := [right for right in purpose.rights if not allowed.get(right)]:
            kind = RIGHT_ESSENTIAL if purpose.essential else RIGHT_MISSING
            yield kind(f"the service may not {_words(lacking)}: {purpose.without}", fix=fix)


def _words(found: list[Right], most: int = 4) -> str:
    """Verbs and their resources, only the first few of each."""
    verbs: dict[str, list[str]] = {}
    for right in found:
        verbs.setdefault(str(right).partition(" ")[2], []).append(right.verb)
    things: dict[str, list[str]] = {}
    for thing, names in verbs.items():
        things.setdefault(", ".join(names), []).append(thing)
    return "; ".join(
        f"{names} {', '.join(each[:most])}" + (f" and {len(each) - most} more" if len(each) > most else "")
        for names, each in things.items()
    )
