import hashlib
import io
import json
import subprocess
import sys
from contextlib import closing
from dataclasses import asdict

import numpy as np
import pytest

from concont.images import decoding
from concont.images.decoding import Decoded, Decoder, verify_file
from concont.images.files import read_image
from concont.images.packs import Form
from pictures import noise

FORM = Form(5, 4, 3, "pad")


@pytest.fixture
def pack(tmp_path):
    path = tmp_path / "pack"
    path.write_bytes(bytes(7 + 3 * FORM.nbytes))
    return path


def sum_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_image_goes_to_its_row_and_its_sum_is_told(save, pack):
    path = save("image.png", noise(9, 9, 3))
    with closing(Decoder(str(pack), 7, FORM, [])) as decode:
        assert decode(2, str(path)) == Decoded(2, sum_of(path), written=True)
    rows = np.frombuffer(pack.read_bytes()[7:], np.uint8).reshape(3, 5, 4, 3)
    assert np.array_equal(rows[2], read_image(path, (5, 4), 3, "pad"))
    assert not rows[:2].any()


def test_a_known_image_is_not_decoded(save, pack, monkeypatch):
    path = save("image.png", noise(9, 9, 3))
    monkeypatch.setattr(decoding, "decode_image", None)
    with closing(Decoder(str(pack), 7, FORM, [sum_of(path)])) as decode:
        assert decode(1, str(path)) == Decoded(1, sum_of(path), written=False)


def test_what_cannot_be_read_is_told(tmp_path, pack):
    with closing(Decoder(str(pack), 7, FORM, [])) as decode:
        got = decode(1, str(tmp_path / "none.png"))
    assert got == Decoded(1, problem="No such file or directory")


def test_a_file_is_verified_and_summed_in_one_reading(save, tmp_path, monkeypatch):
    path, cut = save("image.png", noise(9, 9, 3)), tmp_path / "cut.png"
    cut.write_bytes(path.read_bytes()[:-30])
    own, read = decoding.read_content, []
    monkeypatch.setattr(decoding, "read_content", lambda path: read.append(path) or own(path))
    assert verify_file(2, str(path)) == Decoded(2, sum_of(path))
    damaged = verify_file(0, str(cut))
    assert damaged.content == sum_of(cut)
    assert damaged.problem
    (tmp_path / "empty.png").touch()
    assert verify_file(1, str(tmp_path / "empty.png")) == Decoded(1, problem="the file is empty")
    assert len(read) == 3


class Lines(io.BytesIO):
    buffer = property(lambda self: self)


def serve(job, *lines):
    text = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", Lines(text))
        patch.setattr(sys, "stdout", Lines())
        decoding.serve(job)
        return [json.loads(line) for line in sys.stdout.getvalue().splitlines()]


def test_each_line_is_answered(save, pack):
    path = save("image.png", noise(9, 9, 3))
    job = {"pack": str(pack), "first_row": 7, "form": asdict(FORM), "known": []}
    answers = serve(job, [[0, str(path)], [1, "none"]], [[2, str(path)]])
    found = [0, sum_of(path), True, None]
    assert answers == [
        [found, [1, None, False, "No such file or directory"]],
        [[2, *found[1:]]],
    ]
    assert serve(None, [[0, str(path)]]) == [[[0, sum_of(path), False, None]]]


def test_what_the_disk_refuses_is_told(save, pack, monkeypatch):
    def refuse(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(decoding, "write_all", refuse)
    job = {"pack": str(pack), "first_row": 7, "form": asdict(FORM), "known": []}
    path = save("image.png", noise(9, 9, 3))
    assert serve(job, [[0, str(path)]]) == [{"error": [28, "No space left on device"]}]


def test_the_process_imports_little():
    text = (
        "import sys, concont.images.decoding; sys.exit(bool({'torch', 'scipy'} & {*sys.modules}))"
    )
    assert subprocess.run([sys.executable, "-c", text]).returncode == 0
