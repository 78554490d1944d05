import hashlib

import numpy as np
import onnx
import pytest

from concont.deploy import checksum
from concont.deploy.export import export_run
from concont.deploy.onnx_model import load_onnx
from concont.errors import DataError
from exports import tiny_onnx, toy_arrays
from pictures import noise

FLIPPED = 1000  # bits, all over the file


def flip(content, bit):
    spoilt = bytearray(content)
    spoilt[bit // 8] ^= 1 << bit % 8
    return bytes(spoilt)


def test_every_flipped_bit_is_refused_or_leaves_the_answers_as_they_are(exported, tmp_path):
    content, images = exported.path.read_bytes(), noise(3, 8, 8, 3)
    end = 8 * (len(content) - checksum.SIZE)
    chosen = np.unique(np.linspace(0, end - 1, FLIPPED).astype(int))
    path, expected = tmp_path / "flipped.onnx", load_onnx(exported.path).compute(images)
    for bit in chosen:
        path.write_bytes(flip(content, bit))
        with pytest.raises(DataError, match="was damaged or changed after its export"):
            load_onnx(path)
    read = 0
    for bit in range(end, 8 * len(content)):
        path.write_bytes(flip(content, bit))
        try:
            found = load_onnx(path).compute(images)
        except DataError:
            continue
        read += 1
        assert all(map(np.array_equal, found, expected)), bit
    assert read <= 8 * len(checksum.OPENING)  # the checksum's own digits are checked, all of them


@pytest.mark.parametrize("int8", [False, True])
def test_it_is_a_property_of_the_model_which_onnx_writes_as_it_was(run, tmp_path, int8):
    path = tmp_path / "model.onnx"
    export_run(run, path, int8=int8)
    content, model = path.read_bytes(), onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    last = model.metadata_props[-1]
    before = content[: -checksum.SIZE]
    assert (last.key, last.value) == ("sha256", hashlib.sha256(before).hexdigest())
    onnx.save(model, tmp_path / "again.onnx")
    assert (tmp_path / "again.onnx").read_bytes() == content
    assert load_onnx(tmp_path / "again.onnx").classes == run.classes


def test_what_was_changed_by_another_program_is_refused(exported, tmp_path):
    model = onnx.load(exported.path)
    weights = next(each for each in model.graph.initializer if each.raw_data)
    weights.raw_data = bytes(len(weights.raw_data))
    onnx.save(model, tmp_path / "changed.onnx")
    (tmp_path / "longer.onnx").write_bytes(exported.path.read_bytes() + b"\x7a\x00")
    for name in ("changed.onnx", "longer.onnx"):
        with pytest.raises(DataError, match=f"{name} was damaged or changed"):
            load_onnx(tmp_path / name)


def test_a_file_without_one_is_taken_as_it_is(run, exported, tmp_path):
    path = tmp_path / "without.onnx"
    path.write_bytes(exported.path.read_bytes()[: -checksum.SIZE])
    images = toy_arrays()["x_test"]
    assert np.array_equal(load_onnx(path).predict(images), run.predict(images))
    assert load_onnx(tiny_onnx(tmp_path / "tiny.onnx")).classes == ("a", "b")
