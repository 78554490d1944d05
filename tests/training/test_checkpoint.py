import pytest
import torch

from concont.errors import ConcontError
from concont.runs.folder import RunFolder
from concont.training import checkpoint

CPU = torch.device("cpu")


def test_the_newest_is_read_and_the_one_before_kept(tmp_path):
    folder = RunFolder(tmp_path)
    assert checkpoint.load(folder, CPU) is None
    for step in (1, 2):
        checkpoint.save(folder, {"step": step, "z": torch.ones(2)})
    assert checkpoint.load(folder, CPU)["step"] == 2
    (folder / checkpoint.CURRENT).unlink()  # as after a kill between the two renames
    assert checkpoint.load(folder, CPU)["step"] == 1


def test_a_damaged_one_falls_back_and_two_are_an_error(tmp_path):
    folder = RunFolder(tmp_path)
    for step in (1, 2):
        checkpoint.save(folder, {"step": step})
    (folder / checkpoint.CURRENT).write_bytes(b"damage")
    assert checkpoint.load(folder, CPU)["step"] == 1
    (folder / checkpoint.PREVIOUS).write_bytes(b"damage")
    with pytest.raises(ConcontError, match="no readable checkpoint"):
        checkpoint.load(folder, CPU)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code ran')",))


def test_code_in_a_checkpoint_never_runs(tmp_path):
    folder = RunFolder(tmp_path)
    torch.save({"bomb": Bomb()}, folder / checkpoint.CURRENT)
    with pytest.raises(ConcontError, match="no readable checkpoint"):
        checkpoint.load(folder, CPU)
