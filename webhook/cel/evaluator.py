"""The engine for an event loop, which must not wait for it."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from webhook.cel.engine import LATE, Engine, without_value
from webhook.cel.line import Line
from webhook.kit.own_rules import Answers, Evaluate, Outcome, Unanswered

T = TypeVar("T")
# Of a question that nobody waits for with a bound of his own: all others wait for its end.
MOST_SECONDS: Final = 4.0


class Evaluator:
    """An engine in a thread of its own: questions wait for each other, and the event loop for none.

    Of each namespace one question has its turn, then the next namespace's. Time counts from that turn on: what did not
    get one is not answered at all (`Busy`), so nobody's questions cost another namespace its answers.
    """

    def __init__(self, engine: Engine | None = None) -> None:
        self.engine = engine or Engine()
        self._line = Line()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="own-rules")

    async def run(
        self,
        work: Callable[[Evaluate], T],
        *,
        namespace: str = "",
        wait: float | None = None,
        seconds: float | None = None,
    ) -> T:
        """What `work` comes to, which evaluates.

        Busy where it is not its turn within `wait` seconds, TimeoutError where it then takes longer than `seconds`. Of
        no namespace are those who judge what exists.
        """
        await self._line.turn(namespace, wait)
        try:
            evaluate = partial(self.engine.evaluate, seconds=MOST_SECONDS if seconds is None else seconds)
            working = asyncio.get_running_loop().run_in_executor(self._thread, work, evaluate)
        except BaseException:
            self._line.over()
            raise
        working.add_done_callback(lambda _: self._line.over())
        async with asyncio.timeout(seconds):
            return await asyncio.shield(working)  # the turn lasts until the thread is free, whoever waits for it

    async def evaluate(
        self, question: bytes, *, namespace: str = "", wait: float | None = None, seconds: float | None = None
    ) -> tuple[Outcome, ...]:
        """What came of each expression of the question; of none where that takes longer than `seconds`. Busy."""
        try:
            return await self.run(lambda evaluate: evaluate(question), namespace=namespace, wait=wait, seconds=seconds)
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
