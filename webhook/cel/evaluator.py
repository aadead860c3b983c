"""The engine for an event loop, which must not wait for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

from webhook.cel.engine import Engine, without_value
from webhook.kit.own_rules import Answers, Evaluate, Outcome, Unanswered

LATE: Final = "what evaluates own rules did not answer in time"
T = TypeVar("T")


class Evaluator:
    """An engine in a thread of its own: questions wait for each other, and the event loop for none."""

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="own-rules")

    async def run(self, work: Callable[[Evaluate], T]) -> T:
        """What `work` comes to, which evaluates."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work, self.engine.evaluate)

    async def evaluate(self, question: bytes, seconds: float | None = None) -> tuple[Outcome, ...]:
        """What came of each expression of the question; of none where that takes longer than `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                return await self.run(lambda evaluate: evaluate(question))
        except TimeoutError:
            return without_value(question, LATE)

    async def answered(self, verdict: Callable[[Answers], T]) -> T:
        """The verdict, once everything that it asks is answered."""
        answers: dict[bytes, tuple[Outcome, ...]] = {}
        while True:
            try:
                return verdict(answers)
            except Unanswered as asked:
                answers[asked.question] = await self.evaluate(asked.question)

    async def close(self) -> None:
        """End the worker; nothing may be asked any more."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        await asyncio.to_thread(self._thread.shutdown)
        self.engine.close()
