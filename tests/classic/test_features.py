import numpy as np
import pytest

from concont.classic import features as module
from concont.classic.features import compute_features
from processes import at_once, fill_gist_cache


@pytest.fixture
def images():
    return np.random.RandomState(0).randint(0, 256, (3, 12, 12, 1)).astype(np.uint8)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "concont" / "gist"


@pytest.fixture
def counted(monkeypatch):
    calls = []
    real = module.gist
    monkeypatch.setattr(module, "gist", lambda *a, **k: calls.append(k["size"]) or real(*a, **k))
    return calls


def test_rows_of_features_stay_as_they_are(cache):
    rows = np.random.rand(4, 3)
    assert compute_features(rows, 32) is rows
    assert not cache.exists()


def test_images_are_described_once(images, cache, counted):
    first = compute_features(images, 32, "cpu")
    assert first.shape == (3, 512)
    assert np.array_equal(compute_features(images.copy(), 32, "cpu"), first)  # by content
    assert counted == [32]
    assert len(list(cache.iterdir())) == 1
    compute_features(images, 16, "cpu")
    other = compute_features(images[::-1], 32, "cpu")
    assert counted == [32, 16, 32]
    assert np.array_equal(other[::-1], first)


@pytest.mark.parametrize("damage", [b"", b"no array", None])
def test_a_damaged_file_is_made_again(images, cache, counted, damage):
    first = compute_features(images, 32, "cpu")
    (path,) = cache.iterdir()
    path.write_bytes(path.read_bytes()[:-100] if damage is None else damage)
    assert np.array_equal(compute_features(images, 32, "cpu"), first)
    assert counted == [32, 32]


@pytest.mark.parametrize(
    "other", [lambda kept: kept[:2], lambda kept: kept[:, :99], lambda kept: kept.astype(float)]
)
def test_a_file_that_holds_something_else_is_made_again(images, cache, counted, other):
    first = compute_features(images, 32, "cpu")
    (path,) = cache.iterdir()
    np.save(path, other(first))
    found = compute_features(images, 32, "cpu")
    assert found.dtype == np.float32
    assert np.array_equal(found, first)
    assert counted == [32, 32]


def test_a_cache_that_cannot_be_written_is_told_and_no_more(images, tmp_path, monkeypatch, caplog):
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(blocked))
    assert compute_features(images, 32, "cpu").shape == (3, 512)
    (line,) = caplog.messages
    assert line.startswith("the features are not kept: ")


@pytest.mark.slow
@pytest.mark.long
def test_two_processes_may_fill_the_cache_at_once(images, tmp_path, cache, counted):
    assert at_once(fill_gist_cache, tmp_path, images) == [0, 0]
    assert len(list(cache.iterdir())) == 1
    compute_features(images, 16, "cpu")
    assert counted == []  # what they kept is read
