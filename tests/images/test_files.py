import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, TiffImagePlugin

from concont.errors import DataError, UsageError
from concont.images.files import find_images, read_image, read_size, verify_image, walk_images
from pictures import noise, vast_png

COLOUR = (8, 8, 3)
SQUARE = (8, 8)


def test_grey_and_colour_are_turned_into_each_other(save):
    grey, colour = noise(8, 8), noise(*COLOUR)
    assert np.array_equal(read_image(save("grey.png", grey), SQUARE, 1), grey[..., None])
    assert np.array_equal(read_image(save("colour.png", colour), SQUARE, 3), colour)
    assert np.array_equal(read_image(save("grey.png", grey), SQUARE, 3), np.dstack([grey] * 3))
    luma = colour @ np.array([0.299, 0.587, 0.114])
    got = read_image(save("colour.png", colour), SQUARE, 1)
    assert got[..., 0] == pytest.approx(luma, abs=1)


@pytest.mark.parametrize("kind", ["RGBA", "LA", "palette", "key"])
def test_transparent_pixels_are_seen_over_white(save, kind):
    colour, alpha = noise(*COLOUR), noise(8, 8, seed=1)
    if kind == "RGBA":
        path = save("image.png", np.dstack([colour, alpha]))
    elif kind == "LA":
        colour = np.dstack([colour[..., 0]] * 3)
        path = save("image.png", Image.fromarray(np.dstack([colour[..., 0], alpha]), "LA"))
    elif kind == "palette":
        alpha = np.arange(64, dtype=np.uint8).reshape(8, 8)
        image = Image.fromarray(alpha)
        image.putpalette(colour.tobytes())
        path = save("image.png", image, transparency=bytes(range(64)))
    else:  # one colour of the image counts as transparent
        alpha = np.where((colour == colour[2, 3]).all(axis=2), 0, 255)
        path = save("image.png", colour, transparency=tuple(map(int, colour[2, 3])))
    with Image.open(path) as image:
        assert image.mode == {"palette": "P", "key": "RGB"}.get(kind, kind)
    share = alpha[..., None] / 255
    expected = share * colour + (1 - share) * 255
    assert read_image(path, SQUARE, 3).astype(float) == pytest.approx(expected, abs=1)


def test_an_opaque_image_keeps_its_colours(save):
    colour = noise(*COLOUR)
    opaque = np.dstack([colour, np.full((8, 8), 255, np.uint8)])
    assert np.array_equal(read_image(save("rgba.png", opaque), SQUARE, 3), colour)
    palette = Image.fromarray(np.arange(64, dtype=np.uint8).reshape(8, 8))
    palette.putpalette(colour.tobytes())
    assert np.array_equal(read_image(save("palette.png", palette), SQUARE, 3), colour)


@pytest.mark.parametrize("name", ["deep.png", "deep.tiff", "big.tiff", "deep.pgm", "deep.jp2"])
def test_the_upper_bits_of_16_are_kept(save, name):
    values = noise(8, 8).astype(np.uint16) * 256 + 77
    if name == "big.tiff":  # the high byte of each pixel first
        image = Image.frombytes("I;16B", SQUARE, values.astype(">u2").tobytes())
        path = save(name, image)
    elif name == "deep.pgm":
        path = save(name, noise(8, 8))
        path.write_bytes(b"P5 8 8 65535\n" + values.astype(">u2").tobytes())
    else:
        path = save(name, values)
    assert np.array_equal(read_image(path, SQUARE, 1)[..., 0], values >> 8)
    assert verify_image(path) is None


@pytest.mark.parametrize("mode", ["I", "F"])
def test_pixels_without_a_known_range_are_refused(save, mode):
    path = save("image.tiff", Image.fromarray(noise(8, 8)).convert(mode))
    with pytest.raises(DataError, match=f"mode {mode}, whose range is not known; save it with 8"):
        read_image(path, SQUARE, 1)
    assert f"mode {mode}" in verify_image(path)


def test_one_bit_and_print_colours(save):
    bits = noise(8, 8) > 127
    path = save("bits.png", Image.fromarray(bits))
    assert np.array_equal(read_image(path, SQUARE, 1)[..., 0], bits * np.uint8(255))
    inks = noise(8, 8, 4)
    path = save("inks.tiff", Image.fromarray(inks, "CMYK"))
    expected = (255 - inks[..., :3].astype(float)) * (255 - inks[..., 3:]) / 255
    assert read_image(path, SQUARE, 3).astype(float) == pytest.approx(expected, abs=1.5)
    path = save("inks.jpg", Image.fromarray(np.full((8, 8, 4), (0, 255, 255, 0), np.uint8), "CMYK"))
    assert read_image(path, SQUARE, 3).mean(axis=(0, 1)) == pytest.approx([255, 0, 0], abs=3)


FORMATS = ["bmp", "gif", "ico", "jp2", "pcx", "png", "ppm", "sgi", "tga", "tiff", "webp"]


@pytest.mark.parametrize("suffix", FORMATS)
def test_formats_without_loss_are_read_as_they_are(save, suffix):
    colour = noise(16, 16, 3) // 128 * 255  # eight colours, which a GIF holds too
    options = {"lossless": True} if suffix == "webp" else {}
    path = save(f"image.{suffix}", colour, **options)
    assert np.array_equal(read_image(path, (16, 16), 3), colour)
    assert verify_image(path) is None
    assert read_size(path) == (16, 16)


@pytest.mark.parametrize("suffix", ["gif", "png", "webp", "tiff"])
def test_of_an_animated_image_the_first_frame_is_read(save, suffix):
    frames = [noise(16, 16, 3, seed=seed) // 128 * 255 for seed in range(3)]
    first, *others = map(Image.fromarray, frames)
    options = {"lossless": True} if suffix == "webp" else {}
    path = save(f"moving.{suffix}", first, save_all=True, append_images=others, **options)
    with Image.open(path) as image:
        assert image.n_frames == 3
    assert np.array_equal(read_image(path, (16, 16), 3), frames[0])
    assert verify_image(path) is None


TURNS = {
    1: lambda a: a,
    2: np.fliplr,
    3: lambda a: np.rot90(a, 2),
    4: np.flipud,
    5: lambda a: a.T,
    6: lambda a: np.rot90(a, -1),
    7: lambda a: np.rot90(a, 2).T,
    8: np.rot90,
}


@pytest.mark.parametrize("suffix", ["png", "tiff", "webp"])
@pytest.mark.parametrize("orientation", TURNS)
def test_a_turned_photograph_is_read_upright(save, orientation, suffix):
    stored = noise(6, 8)
    exif = Image.Exif()
    exif[0x0112] = orientation
    upright = TURNS[orientation](stored)
    options = {"lossless": True} if suffix == "webp" else {}
    path = save(f"photo.{suffix}", stored, exif=exif, **options)
    assert np.array_equal(read_image(path, upright.shape, 1)[..., 0], upright)
    assert read_size(path) == upright.shape[::-1]


def test_damaged_metadata_leaves_an_image_as_it_is_stored(save):
    stored = noise(6, 8)
    path = save("photo.png", stored, exif=b"Exif\0\0II*\0\x08\0\0\0\xff\xff")
    assert np.array_equal(read_image(path, (6, 8), 1)[..., 0], stored)
    assert read_size(path) == (8, 6)


def test_the_size_is_read_from_the_head_alone(save):
    path = save("photo.jpg", noise(300, 200, 3))
    path.write_bytes(path.read_bytes()[:1000])
    assert read_size(path) == (200, 300)
    with pytest.raises(DataError, match="not an image that can be read"):
        read_size(Path(__file__))


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "tiff", "bmp", "jp2"])
def test_a_cut_file_is_noticed(save, suffix):
    path = save(f"cut.{suffix}", noise(90, 90, 3))
    assert verify_image(path) is None
    whole = path.read_bytes()
    for share in (0.3, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        reason = verify_image(path)
        assert reason
        assert "\n" not in reason
        with pytest.raises(DataError):
            read_image(path, SQUARE, 3)


def test_what_cannot_be_read_is_said_in_one_line(save, tmp_path, monkeypatch):
    empty, text, bomb, vast = (
        tmp_path / f"{name}.png" for name in ("empty", "text", "bomb", "vast")
    )
    empty.touch()
    text.write_text("this is no image")
    bomb.write_bytes(vast_png(60_000, 60_000))
    vast.write_bytes(vast_png(10_000, 10_000))  # Pillow only warns of this one
    assert verify_image(tmp_path / "none.png") == "No such file or directory"
    assert verify_image(tmp_path) == "a folder, not a file"
    assert verify_image(empty) == "the file is empty"
    assert verify_image(text) == "not an image that can be read"
    assert "decompression bomb" in verify_image(bomb)
    assert "decompression bomb" in verify_image(vast)
    good = save("good.png", noise(8, 8))
    assert verify_image(good) is None
    monkeypatch.setattr("concont.images.files.LARGEST_FILE", 10)
    assert verify_image(good) == "the file has 0.0 GB, too many for an image"
    monkeypatch.undo()
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 63)
    assert "decompression bomb" in verify_image(good)

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert verify_image(good) == "Permission denied"


def test_a_pipe_is_not_waited_for(tmp_path):
    path = tmp_path / "pipe.png"
    os.mkfifo(path)
    assert verify_image(path) == "not a plain file"
    with pytest.raises(DataError, match="not a plain file"):
        read_image(path, SQUARE, 3)
    with pytest.raises(DataError, match="not a plain file"):
        read_size(path)


def test_damage_anywhere_is_never_more_than_a_refusal(save):
    path = save("whole.png", noise(8, 8, 3))
    whole = path.read_bytes()
    refused = 0
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            assert read_image(path, SQUARE, 3).shape == COLOUR
        except DataError:
            refused += 1
    assert refused > len(whole) // 2


def test_a_tiff_with_strange_tags_is_no_more_than_a_refusal(save):
    tags = TiffImagePlugin.ImageFileDirectory_v2()
    tags[0x0112] = 9  # no such orientation
    path = save("image.tiff", noise(8, 8), tiffinfo=tags)
    assert np.array_equal(read_image(path, SQUARE, 1)[..., 0], noise(8, 8))


def test_folders_are_searched_and_hidden_files_left_out(save, tmp_path):
    names = ("b.png", "a/z.JPG", "a/c/d.bmp", ".hidden.png", ".cache/e.png", "a/.f.png")
    kept = {name: save(name, noise(8, 8)) for name in names}
    folder = tmp_path / "images"
    for name in ("notes.txt", "table.h5", "page.eps", "plain"):
        (folder / name).write_text("")
    inside = [kept["a/c/d.bmp"], kept["a/z.JPG"], kept["b.png"]]
    assert find_images([folder]) == inside
    missing, hidden = tmp_path / "x.png", kept[".hidden.png"]
    assert find_images([missing, folder, hidden]) == [missing, *inside, hidden]  # as they are given
    assert find_images([folder / ".cache"]) == [kept[".cache/e.png"]]
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="no image in .*empty"):
        find_images([tmp_path / "empty"])


def test_links_to_folders_are_not_followed_and_what_cannot_be_listed_is_told(save, tmp_path):
    path = save("a/b.png", noise(8, 8))
    folder = tmp_path / "images"
    (folder / "again.png").symlink_to(folder / "a")
    (folder / "broken.png").symlink_to("nothing")  # told when it is read
    assert find_images([folder]) == [path, folder / "broken.png"]
    assert [name for name, _ in walk_images(folder)] == ["broken.png", "a/b.png"]
    with pytest.raises(DataError, match="nowhere/ cannot be listed: No such file"):
        list(walk_images(tmp_path / "nowhere"))


def test_reading_images_needs_no_torch():
    text = "import sys, concont.images.files; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0
