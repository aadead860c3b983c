"""A Markdown table of the Pod Security checks, for the reference."""

from collections.abc import Iterator
from inspect import cleandoc

from webhook.predict.pod_security.checks import REGISTRY, Check, checks
from webhook.predict.pod_security.levels import NEWEST, Level, Version

HEAD = ("Check", "Baseline", "Restricted", "Requirement", "Restricted fields and allowed values")


def table() -> str:
    rows = [HEAD, ("---",) * len(HEAD), *map(_row, sorted(REGISTRY.values(), key=lambda check: check.level.strictness))]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def _row(check: Check) -> tuple[str, ...]:
    summary, _, rest = cleandoc(check.run.__doc__ or "").partition("\n")
    return (
        f"`{check.id}`",
        _versions(check.id, Level.BASELINE),
        _versions(check.id, Level.RESTRICTED),
        summary,
        "<br>".join(_lines(rest[rest.index("**") :])),
    )


def _lines(text: str) -> Iterator[str]:
    for paragraph in text.split("\n\n"):
        head, *items = paragraph.split("\n- ")
        yield from (" ".join(part.split()) for part in (head, *items))


def _versions(check_id: str, level: Level) -> str:
    """The versions of `level` that have the check, such as `v1.0 - v1.21` or `v1.22+`. Empty if no version has it."""
    minors = [minor for minor in range(NEWEST.minor + 1) if check_id in checks(level, Version(minor))]
    if not minors:
        return ""
    return f"v1.{minors[0]}+" if minors[-1] == NEWEST.minor else f"v1.{minors[0]} - v1.{minors[-1]}"
