"""Every regular expression of the packages takes time in proportion to the text, whatever the text is.

What outsiders write reaches many of them while everybody else waits: one that goes back and forth stalls a replica.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from time import process_time
from types import ModuleType
from typing import Any, Final

import pytest

from tests.support.hostile_texts import Shape, shapes, text_of

PACKAGES: Final = ("webhook", "certs", "mpijob_webhook")
# Characters, and seconds: below them nothing is compared, for what takes so little is too quick to tell.
LONG: Final = 6_000
LITTLE: Final = 0.002
# Four times the text is four times the work, or sixteen times.
FOURFOLD: Final = 9
TRIES: Final = 5

CALLED: Final = r"\.(search|match|fullmatch|sub|subn|split|findall|finditer)\("

# What is looked at before the text is, with the characters that it may have.
AT_MOST: Final[Mapping[str, int]] = {
    "webhook.api.duration._PART": 16,
    "webhook.predict.stuck.causes.creation._REFUSALS[3]": 1024,
    "webhook.predict.stuck.causes.logs.KNOWN[1]": 500,
    "webhook.predict.stuck.causes.logs.KNOWN[7]": 500,
    "webhook.server.requests._WHOLE": 32,
    "webhook.server.requests._PART": 32,
}
OF_ONES_OWN_COMMAND_LINE: Final = frozenset({"webhook.cli.policy.configmap._COMMA"})


def modules() -> Iterator[ModuleType]:
    for name in PACKAGES:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(package.__path__, f"{name}."):
            if not found.name.endswith("__main__"):
                yield importlib.import_module(found.name)


def patterns_in(value: Any, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """It, or those within what a module has at its top."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, tuple | list | frozenset):
        for each in value:
            yield from patterns_in(each, depth - 1)
    elif depth and isinstance(value, dict):
        yield from patterns_in([*value.values()], depth)
    elif depth and not isinstance(value, type):
        names = getattr(value, "__struct_fields__", None) or getattr(value, "__dataclass_fields__", ())
        yield from patterns_in([getattr(value, name, None) for name in names], depth)


def patterns() -> dict[str, tuple[re.Pattern[Any], frozenset[str]]]:
    """Each one by its name, with what is called of it in its module."""
    found: dict[str, tuple[re.Pattern[Any], frozenset[str]]] = {}
    seen = set[int]()
    for module in modules():
        source = inspect.getsource(module)
        for name, value in vars(module).items():
            for number, pattern in enumerate(patterns_in(value)):
                if id(pattern) in seen:
                    continue
                seen.add(id(pattern))
                called = frozenset(re.findall(rf"\b{name}{CALLED}", source) or re.findall(CALLED, source))
                key = f"{module.__name__}.{name}" + (f"[{number}]" if number else "")
                found[key] = pattern, called or frozenset({"search", "fullmatch"})
    return found


def seconds(pattern: re.Pattern[Any], called: str, text: str) -> float:
    """Of processor time."""
    given: Any = text if isinstance(pattern.pattern, str) else text.encode()
    began = process_time()
    if called in {"search", "match", "fullmatch"}:
        getattr(pattern, called)(given)
    else:
        for _ in pattern.finditer(given):
            pass
    return process_time() - began


def grows(pattern: re.Pattern[Any], called: str, shape: Shape, length: int = LONG) -> bool:
    """Whether the work grows faster than the text: sizes go up, so that what grows fast is found while it is short."""
    texts = {size: text_of(shape, size) for size in (length // 300, length // 64, length // 16, length // 4, length)}
    for size, text in texts.items():
        if seconds(pattern, called, text) < LITTLE:
            continue
        quarter = min(seconds(pattern, called, text_of(shape, size // 4)) for _ in range(TRIES))
        if all(seconds(pattern, called, text) > max(LITTLE, FOURFOLD * quarter) for _ in range(TRIES)):
            return True
    return False


def slow_with(pattern: re.Pattern[Any], calls: Iterable[str]) -> tuple[str, Shape] | None:
    """What is called, and with which texts, where that is slow."""
    tried = ((called, shape) for called in sorted(calls) for shape in sorted(shapes(pattern)))
    return next((each for each in tried if grows(pattern, *each)), None)


@pytest.mark.parametrize(
    ("source", "called", "is_so"),
    [
        (r"^\s*kind", "search", True),
        (r"(?:a|b)+c", "search", True),
        (r"a+b?a*c", "fullmatch", True),
        (r"\[([^\]]*)\]", "findall", True),
        (r"0/0 nodes: (?P<why>.*?)(?:\. more:.*)?$", "search", True),
        (r"(?:a+)+c", "search", True),
        (r"(?m)^[ \t]*kind", "search", False),
        (r"\[([^\]]*)\]?", "findall", False),
        (r"(?<![ab])(?:a|b)++c", "search", False),
        (r"[a-z0-9]+", "fullmatch", False),
    ],
)
def test_what_is_slow_is_found(source: str, called: str, *, is_so: bool) -> None:
    flags = re.MULTILINE if source.startswith("^") else 0
    pattern = re.compile(source, flags)
    assert (slow_with(pattern, [called]) is not None) is is_so


def test_every_pattern_goes_along_the_text_once() -> None:
    found = patterns()
    assert len(found) > 140
    assert found.keys() >= AT_MOST.keys() | OF_ONES_OWN_COMMAND_LINE
    slow = {
        name: bad
        for name, (pattern, calls) in found.items()
        if name not in AT_MOST and name not in OF_ONES_OWN_COMMAND_LINE and (bad := slow_with(pattern, calls))
    }
    assert not slow


def test_what_takes_the_square_gets_short_texts_alone() -> None:
    found = patterns()
    for name, length in AT_MOST.items():
        pattern, calls = found[name]
        assert slow_with(pattern, calls), name
        assert all(
            any(seconds(pattern, called, text_of(shape, length)) < 5 * LITTLE for _ in range(TRIES))
            for shape in shapes(pattern)
            for called in calls
        ), name
