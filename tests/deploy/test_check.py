import numpy as np
import pytest

from concont.deploy.check import Sample, compare, read_problem_if_there, spread, take_sample
from concont.errors import ConcontError
from exports import toy_arrays, train_toy
from pictures import noise

IMAGES = noise(42, 4, 4, 1)


def answers(images):
    scores = images.reshape(len(images), -1)[:, :3] / 255
    return [scores.astype(np.float32), scores.astype(np.float32) / 3]


def test_the_same_answers_differ_by_nothing():
    found = compare(answers, answers, Sample(IMAGES, "test"))
    assert (found.difference, found.images, found.kind) == (0, 42, "test")


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_difference_in_one_answer_at_one_batch_size_is_found(place, size):
    def odd(images):
        found = answers(images)
        if len(images) == size:
            found[place][-1, 2] += 1e-3
        return found

    with pytest.raises(ConcontError, match=r"otherwise than the network, by up to 0.001"):
        compare(answers, odd, Sample(IMAGES, "test"))


def test_what_is_no_number_differs():
    with pytest.raises(ConcontError, match="nan"):
        compare(answers, lambda images: [a * np.nan for a in answers(images)], Sample(IMAGES, ""))


def test_large_logits_count_by_their_size():
    def scaled(factor):
        return lambda images: [answers(images)[0] * factor + 5000, answers(images)[1]]

    assert compare(scaled(1), scaled(1.01), Sample(IMAGES, "")).difference < 1e-4


def test_images_are_taken_from_all_over_the_set():
    assert spread(np.arange(100), 5).tolist() == [0, 25, 50, 74, 99]
    assert spread(np.arange(3), 5).tolist() == [0, 1, 2]


def test_test_images_else_training_images_else_random_ones(tmp_path, run):
    problem = run.read_problem()
    sample = take_sample(run, problem, 30)
    assert sample.kind == "test"
    assert np.array_equal(sample.images, toy_arrays()["x_test"])
    alone = train_toy(tmp_path, arrays=toy_arrays(tests=0))
    sample = take_sample(alone, read_problem_if_there(alone), 90)
    assert sample.kind == "training"
    assert np.array_equal(sample.images, toy_arrays()["x_train"])
    (tmp_path / "toy.npz").unlink()
    assert read_problem_if_there(alone) is None
    sample = take_sample(alone, None)
    assert sample.kind == "random"
    assert sample.images.shape == (42, 8, 8, 3)


def test_a_hold_out_is_taken_and_named(tmp_path):
    run = train_toy(tmp_path, arrays=toy_arrays(tests=0), data={"holdout": 0.2})
    assert take_sample(run, run.read_problem()).kind == "holdout"
