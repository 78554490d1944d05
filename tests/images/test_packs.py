import os

import numpy as np
import pytest

from concont.images.packs import (
    MISSING,
    Form,
    find_packs,
    name_pack,
    name_part,
    open_pack,
    remove_abandoned,
    remove_parts,
    start_pack,
    write_all,
)
from pictures import noise

FORM = Form(3, 4, 3, "crop")
SUMS = [f"{k:02x}" * 32 for k in range(5)]


def make(folder, pixels, sums, form=FORM):
    path = name_pack(folder, form, sums)
    with start_pack(folder, form, len(sums)) as writer:
        for row, image in enumerate(pixels):
            write_all(writer.handle, image.tobytes(), writer.first_row + row * form.nbytes)
        writer.finish(sums, path)
    return path


def test_a_pack_is_an_npy_file_that_is_mapped(tmp_path):
    pixels = noise(5, 3, 4, 3)
    path = make(tmp_path, pixels, SUMS)
    assert np.array_equal(np.load(path), pixels)
    pack = open_pack(path, FORM)
    assert isinstance(pack.pixels, np.memmap)
    assert not pack.pixels.flags.writeable
    assert np.array_equal(pack.pixels, pixels)
    assert pack.contents == SUMS
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_name_tells_images_their_order_and_their_form(tmp_path):
    other = [Form(4, 3, 3, "crop"), Form(3, 4, 1, "crop"), Form(3, 4, 3, "pad")]
    names = {name_pack(tmp_path, form, SUMS) for form in [FORM, *other]}
    names |= {name_pack(tmp_path, FORM, sums) for sums in (SUMS[::-1], SUMS[:-1], SUMS + SUMS[:1])}
    assert len(names) == 7


@pytest.mark.parametrize("damage", ["gone", "empty", "short", "long", "head", "other"])
def test_what_is_not_whole_is_not_opened(tmp_path, damage):
    path = make(tmp_path, noise(5, 3, 4, 3), SUMS)
    whole = path.read_bytes()
    changed = {
        "empty": b"",
        "short": whole[:-1],
        "long": whole + b"x",
        "head": b"x" + whole[1:],
        "other": whole.replace(b"(5, 3, 4, 3)", b"(5, 4, 3, 3)"),
    }
    path.unlink() if damage == "gone" else path.write_bytes(changed[damage])
    assert open_pack(path, FORM) is None
    assert find_packs(tmp_path, FORM) == []


def test_packs_of_a_form_are_found_the_newest_first(tmp_path):
    first, second = make(tmp_path, noise(2, 3, 4, 3), SUMS[:2]), make(tmp_path, [], [])
    make(tmp_path, [], [], Form(3, 4, 3, "pad"))
    third = make(tmp_path, noise(1, 3, 4, 3), SUMS[:1])
    second.unlink()  # no image: a file that cannot be mapped
    os.utime(first, (1, 1))
    assert [pack.contents for pack in find_packs(tmp_path, FORM)] == [SUMS[:1], SUMS[:2]]
    os.utime(third, (0, 0))
    assert [pack.contents for pack in find_packs(tmp_path, FORM)] == [SUMS[:2], SUMS[:1]]


def test_images_are_taken_from_another_pack(tmp_path):
    pixels = noise(5, 3, 4, 3)
    old = open_pack(make(tmp_path, pixels, SUMS), FORM)
    rows = [4, 0, 0]
    with start_pack(tmp_path, FORM, 3) as writer:
        for row, old_row in enumerate(rows):
            writer.copy(row, old.pixels, old_row)
        writer.finish([SUMS[row] for row in rows], tmp_path / "new.npy")
    assert np.array_equal(open_pack(tmp_path / "new.npy", FORM).pixels, pixels[rows])


def test_a_pack_that_is_not_finished_is_removed(tmp_path):
    with pytest.raises(KeyboardInterrupt), start_pack(tmp_path, FORM, 5):
        assert len(list(tmp_path.iterdir())) == 1
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_packs_with_gaps_go_once_another_holds_their_images(tmp_path):
    for sums in ([SUMS[0], MISSING], [MISSING, SUMS[1]], [SUMS[4], MISSING]):
        with start_pack(tmp_path, FORM, 2) as writer:
            write_all(writer.handle, noise(2, 3, 4, 3).tobytes(), writer.first_row)
            writer.finish(sums, name_part(tmp_path, FORM, sums))
    assert len(find_packs(tmp_path, FORM)) == 3
    remove_parts(tmp_path, FORM, SUMS[:3])
    (left,) = find_packs(tmp_path, FORM)
    assert left.contents == [SUMS[4], MISSING]


def test_only_what_nobody_is_writing_counts_as_abandoned(tmp_path):
    left = tmp_path / ".123-abc.tmp"
    left.write_bytes(b"half")
    with start_pack(tmp_path, FORM, 5) as writer:
        assert not left.exists()
        remove_abandoned(tmp_path)
        assert writer.path.exists()


def test_short_writes_go_on_where_they_ended(tmp_path, monkeypatch):
    own = os.pwrite
    monkeypatch.setattr("os.pwrite", lambda handle, text, place: own(handle, text[:3], place))
    with open(tmp_path / "file", "wb") as file:
        write_all(file.fileno(), b"0123456789", 2)
    assert (tmp_path / "file").read_bytes() == b"\0\0" + b"0123456789"
