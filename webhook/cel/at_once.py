"""The engine for a command, which may wait for it."""

import atexit
from functools import cache

from webhook.cel.engine import Engine
from webhook.kit.own_rules import Outcome


def evaluate(question: bytes) -> tuple[Outcome, ...]:
    """What came of each expression of the question; what evaluates ends with the command."""
    return _engine().evaluate(question)


@cache
def _engine() -> Engine:
    engine = Engine()
    atexit.register(engine.close)
    return engine
