import torch

from concont.rng import derive, frozen_stream, torch_stream


def test_streams_depend_on_seed_and_every_name():
    seeds = {derive(s, *n) for s in (1, 2) for n in [("a",), ("b",), ("a", 1), ("a", 11), (1, 1)]}
    assert len(seeds) == 10
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_same_numbers_on_every_machine():
    assert derive(1, "candidates") == 8249734759745676220
    assert frozen_stream(1, "candidates").randint(1000, size=5).tolist() == [518, 80, 60, 491, 351]


def test_torch_streams_repeat():
    one, two = (torch.rand(4, generator=torch_stream(3, "views")) for _ in range(2))
    assert torch.equal(one, two)
