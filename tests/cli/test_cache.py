import pytest

from concont.cli.app import app
from concont.images.cache import load_images
from pictures import noise


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(capsys, *words):
    app(["data", "cache", *words], standalone_mode=False)
    return capsys.readouterr().out.splitlines()


def test_sizes_are_listed_and_what_can_be_made_again_is_removed(place, save, capsys):
    downloaded = place / "cifar10.npz"
    path = save("image.png", noise(8, 8, 3))
    load_images([path], (1000, 1000), 3, "crop")
    (place / "gist").mkdir()
    (place / "gist" / f"{'0a' * 16}-64-1.npy").write_bytes(bytes(2_000_000))
    downloaded.write_bytes(b"pixels")
    images, gist = run(capsys)
    assert images == f"decoded images: 0.003 GB kept in {place / 'images'}"
    assert gist == f"GIST features: 0.002 GB kept in {place / 'gist'}"
    assert "0.003 GB removed" in run(capsys, "--clear")[0]
    assert list(place.iterdir()) == [downloaded]
    assert "0.000 GB kept" in run(capsys)[0]
    load_images([path], (10, 10), 3, "crop")  # as before


def test_what_the_cache_has_not_made_stays(place, save, capsys):
    load_images([save("image.png", noise(8, 8, 3))], (10, 10), 3, "crop")
    (place / "images" / ".1234-0a0a0a0a.tmp").touch()  # of a killed process
    others = [
        place / name for name in ("images/holiday.jpg", "images/index/mine.json", "gist/x.npy")
    ]
    (place / "gist").mkdir()
    for path in others:
        path.write_text("mine")
    run(capsys, "--clear")
    assert sorted(path for path in place.rglob("*") if path.is_file()) == sorted(others)


def test_there_may_be_no_cache_yet(place, capsys):
    assert all("0.000 GB" in line for line in run(capsys) + run(capsys, "--clear"))
    assert not place.exists()
