import os
import shutil

import numpy as np
import pytest

from cached_images import SIZE, check, names
from concont.errors import DataError
from concont.images.cache import image_cache_folder, load_images
from pictures import noise


def test_pixels_are_mapped_and_read_only(load, paths):
    images = load(paths)
    check(images, paths)
    assert isinstance(images.pixels, np.memmap)
    assert not images.pixels.flags.writeable
    assert len(set(images.contents)) == 8


def test_the_second_start_opens_no_image(load, paths, touched):
    read, _ = touched
    first = load(paths)
    assert len(read) == 8
    second = load(paths, report=pytest.fail)
    assert len(read) == 8
    assert second.contents == first.contents
    assert np.array_equal(second.pixels, first.pixels)


def test_each_form_is_kept_beside_the_others(load, paths, touched):
    for fit in ("crop", "pad", "stretch"):
        for channels in (1, 3):
            check(load(paths, fit, channels), paths, fit, channels)
    assert len(touched[1]) == 6 * 8
    check(load(paths, "pad", 1), paths, "pad", 1)
    assert len(touched[1]) == 6 * 8


def test_a_folder_that_was_moved_is_read_but_not_decoded(load, paths, touched, tmp_path):
    first = load(paths)
    moved = shutil.move(tmp_path / "images", tmp_path / "moved")
    for path in moved.rglob("*.png"):
        os.utime(path)
    now = [moved / path.relative_to(tmp_path / "images") for path in paths]
    second = load(now)
    assert touched == (names(paths) * 2, names(paths))
    assert second.contents == first.contents
    check(second, now)
    load(now)
    assert len(touched[0]) == 16


def test_only_what_is_new_is_decoded(load, paths, touched, save):
    load(paths)
    new = save("new.png", noise(10, 10, 3, seed=99))
    more = [*paths[:3], new, *paths[:2:-1], paths[0]]  # in another order, one of them twice
    check(load(more), more)
    assert touched[1] == [*names(paths), "new.png"]
    check(load(paths[2:5]), paths[2:5])
    assert touched[0] == touched[1] == [*names(paths), "new.png"]


def test_the_same_image_twice_is_no_trouble(load, paths, save):
    twin = save("twin.png", noise(9, 12, 3, seed=0))
    images = load([*paths, twin])
    assert images.contents[0] == images.contents[8]
    check(images, [*paths, twin])


def test_an_image_that_changed_in_place_is_noticed(load, paths, touched, save):
    load(paths)
    before = paths[3].stat()
    save("1/3.png", noise(12, 12, 3, seed=7))
    os.utime(paths[3], ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert paths[3].stat().st_size == before.st_size
    check(load(paths), paths)
    assert touched[1] == [*names(paths), "3.png"]


def test_a_damaged_pack_is_made_again(load, paths, place, touched):
    load(paths)
    (pack,) = place.glob("*.npy")
    whole = pack.read_bytes()
    for damaged in (b"", whole[:-1], b"x" + whole[1:]):
        pack.write_bytes(damaged)
        check(load(paths), paths)
        assert pack.read_bytes() == whole
    assert len(touched[1]) == 4 * 8


def test_a_pack_of_other_images_under_its_name_is_made_again(load, paths, place):
    load(paths)
    (pack,) = place.glob("*.npy")
    load(paths[::-1])
    (other,) = set(place.glob("*.npy")) - {pack}
    shutil.copy(other, pack)
    check(load(paths), paths)


def test_a_lost_index_costs_no_decoding(load, paths, place, touched):
    load(paths)
    shutil.rmtree(place / "index")
    check(load(paths), paths)
    assert len(touched[0]) == 16
    assert len(touched[1]) == 8


def test_unreadable_images_are_named_and_counted(load, paths, place):
    for k in (1, 2, 5, 6, 7):
        paths[k].write_text("no image")
    paths[2].unlink()
    with pytest.raises(DataError) as caught:
        load([*paths])
    said = str(caught.value)
    assert said.startswith(f"5 of 8 images cannot be read: {paths[1]}: not an image that can be")
    assert f"{paths[2]}: No such file or directory; {paths[5]}: " in said
    assert said.endswith("; ...")
    assert str(paths[6]) not in said


def test_where_nothing_can_be_read_nothing_is_kept(load, paths, place):
    paths[0].write_text("no image")
    with pytest.raises(DataError, match="1 of 1 image cannot be read"):
        load(paths[:1])
    assert list(place.iterdir()) == []


def test_after_a_repair_only_what_could_not_be_read_is_read_again(load, paths, place, touched):
    whole = {k: paths[k].read_bytes() for k in (3, 5)}
    for k in whole:
        paths[k].write_text("no image")
    with pytest.raises(DataError, match="2 of 8 images"):
        load(paths)
    paths[3].write_bytes(whole[3])
    with pytest.raises(DataError, match="1 of 8 images"):
        load(paths)
    assert touched[0] == [*names(paths), "3.png", "5.png"]
    paths[5].write_bytes(whole[5])
    check(load(paths), paths)
    assert touched[0][10:] == ["5.png"]
    assert len(list(place.glob("*.npy"))) == 1  # what was kept in parts is in it


def test_a_swapped_file_of_the_same_size_and_time_is_noticed(load, save):
    paths = [save(name, noise(9, 9, 3, seed=k)) for k, name in enumerate(("a.bmp", "b.bmp"))]
    for path in paths:
        os.utime(path, ns=(10**18, 10**18))
    check(load(paths), paths)
    os.rename(paths[0], paths[0].with_name("c"))
    os.rename(paths[1], paths[0])
    os.rename(paths[0].with_name("c"), paths[1])
    check(load(paths), paths)


def test_no_image_at_all(load):
    with pytest.raises(DataError, match="no image to read"):
        load([])


def test_progress_is_told(load, paths):
    heard = []
    load(paths, report=lambda *counts: heard.append(counts))
    assert heard == [(8, 8)]


def test_the_cache_lies_where_the_environment_says(monkeypatch, tmp_path, paths):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "all"))
    assert image_cache_folder() == tmp_path / "all" / "concont" / "images"
    monkeypatch.setenv("CONCONT_CACHE", str(tmp_path / "own"))
    assert image_cache_folder() == tmp_path / "own" / "images"
    load_images(paths, SIZE, 3, "crop")
    assert len(list((tmp_path / "own" / "images").glob("*.npy"))) == 1
