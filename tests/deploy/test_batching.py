import asyncio
import time

import numpy as np
import pytest

from concont.deploy.batching import Batcher
from concont.errors import DataError, UsageError


class Recorded:
    """Answers each image by its own number, and remembers the sizes of the batches."""

    def __init__(self, seconds=0.0):
        self.sizes, self.seconds = [], seconds

    def __call__(self, images):
        self.sizes.append(len(images))
        time.sleep(self.seconds)
        if (images == 255).any():
            raise DataError("it fails")
        return images.reshape(len(images), -1)[:, :1].astype(np.float32)


def image(value):
    return np.full((2, 2, 1), value, np.uint8)


def run(work, compute, size=4, wait=0.05):
    async def whole():
        batcher = Batcher(compute, size, wait)
        running = asyncio.create_task(batcher.run())
        try:
            return await asyncio.wait_for(work(batcher), 20)
        finally:
            running.cancel()
            batcher.close()

    return asyncio.run(whole())


def test_images_of_many_requests_are_gathered_and_each_gets_its_own_answer():
    compute = Recorded()

    async def ask(batcher):
        many = [batcher.ask([image(k), image(100 + k)]) for k in range(10)]
        return await asyncio.gather(*many)

    found = run(ask, compute)
    assert [[row[0] for row in answers] for answers in found] == [[k, 100 + k] for k in range(10)]
    assert compute.sizes == [4, 4, 4, 4, 4]


def test_a_lone_image_waits_no_longer_than_it_should():
    async def ask(batcher):
        began = time.monotonic()
        (answer,) = await batcher.ask([image(7)])
        return answer[0], time.monotonic() - began

    answer, took = run(ask, Recorded(), wait=0.2)
    assert answer == 7
    assert 0.19 < took < 5


def test_a_full_batch_does_not_wait():
    async def ask(batcher):
        return await batcher.ask([image(k) for k in range(4)])

    began = time.monotonic()
    assert len(run(ask, Recorded(), wait=15)) == 4
    assert time.monotonic() - began < 10


def test_while_one_is_computed_the_next_gathers():
    compute = Recorded(seconds=0.2)

    async def ask(batcher):
        first = asyncio.create_task(batcher.ask([image(0)]))
        await asyncio.sleep(0.1)
        await asyncio.gather(first, *(batcher.ask([image(k)]) for k in range(4)))

    run(ask, compute, wait=0)
    assert compute.sizes == [1, 4]


def test_nothing_is_computed_for_no_image():
    compute = Recorded()

    async def ask(batcher):
        return await batcher.ask([])

    assert run(ask, compute) == []
    assert compute.sizes == []


def test_a_failure_is_told_to_its_batch_and_the_next_is_computed():
    async def ask(batcher):
        with pytest.raises(DataError, match="it fails"):
            await batcher.ask([image(255)] * 4)
        return await batcher.ask([image(3)])

    assert run(ask, Recorded())[0] == 3


def test_who_has_gone_is_not_answered_and_nobody_else_is_hurt():
    async def ask(batcher):
        gone = asyncio.create_task(batcher.ask([image(1)]))
        await asyncio.sleep(0)
        gone.cancel()
        return await batcher.ask([image(2)])

    assert run(ask, Recorded())[0] == 2


@pytest.mark.parametrize("wait", [-1, 61, float("nan"), float("inf")])
def test_a_wait_that_cannot_be_is_refused(wait):
    with pytest.raises(UsageError, match="is to wait"):
        Batcher(Recorded(), 4, wait)
