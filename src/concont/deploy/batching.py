"""Images of many requests gathered into batches, which one thread computes."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from concont.errors import UsageError

LONGEST = 60  # seconds that an image may wait for others
Image = NDArray[np.uint8]  # (H, W, channels)
Compute = Callable[[NDArray[np.uint8]], NDArray[np.float32]]  # (M, H, W, channels) -> (M, C)
Waiting = tuple[Image, "asyncio.Future[NDArray[np.float32]]"]


class Batcher:
    """Answers each image by its row of a batch's answer.

    A batch starts when `size` images are there, or `wait` seconds after the first of them. While
    one is computed the next one gathers.
    """

    def __init__(self, compute: Compute, size: int, wait: float) -> None:
        if not 0 <= wait <= LONGEST:
            raise UsageError(f"an image is to wait {wait:g} s for others; at most {LONGEST} s")
        self.compute, self.size, self.wait = compute, size, wait
        self.waiting: deque[Waiting] = deque()
        self.some, self.full = asyncio.Event(), asyncio.Event()
        self.thread = ThreadPoolExecutor(1, "model")

    async def ask(self, images: Sequence[Image]) -> list[NDArray[np.float32]]:
        """The answer (C,) to each image, once they were computed."""
        loop = asyncio.get_running_loop()
        asked: list[Waiting] = [(image, loop.create_future()) for image in images]
        self.waiting.extend(asked)
        self._signal()
        return await asyncio.gather(*(answer for _, answer in asked))

    async def run(self) -> None:
        """Compute batch after batch, until it is cancelled."""
        while True:
            await self._compute(await self._gather())

    def close(self) -> None:
        """Let the thread end."""
        self.thread.shutdown()

    async def _gather(self) -> list[Waiting]:
        await self.some.wait()
        try:
            async with asyncio.timeout(self.wait):
                await self.full.wait()
        except TimeoutError:
            pass
        batch = [self.waiting.popleft() for _ in range(min(self.size, len(self.waiting)))]
        self._signal()
        return batch

    async def _compute(self, batch: list[Waiting]) -> None:
        loop = asyncio.get_running_loop()
        pixels = np.stack([image for image, _ in batch])
        try:
            found = await loop.run_in_executor(self.thread, self.compute, pixels)
        except Exception as error:
            for _, answer in batch:
                if not answer.done():
                    answer.set_exception(error)
            return
        for (_, answer), row in zip(batch, found, strict=True):
            if not answer.done():  # who asked may have gone
                answer.set_result(row)

    def _signal(self) -> None:
        for event, fewest in ((self.some, 1), (self.full, self.size)):
            if len(self.waiting) >= fewest:
                event.set()
            else:
                event.clear()
