import pytest
import torch

from concont.errors import DataError
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


def test_a_damaged_one_falls_back_and_two_are_an_error(tmp_path, caplog):
    folder = RunFolder(tmp_path)
    for step in (1, 2):
        checkpoint.save(folder, {"step": step})
    content = (folder / checkpoint.CURRENT).read_bytes()
    (folder / checkpoint.CURRENT).write_bytes(content[:-9] + b"!" + content[-8:])
    assert checkpoint.load(folder, CPU)["step"] == 1
    (said,) = caplog.messages
    assert said == (
        f"{tmp_path}: checkpoint.pt does not fit its checksum; going on from checkpoint.previous.pt"
    )
    (folder / checkpoint.PREVIOUS).write_bytes(b"damage")
    with pytest.raises(DataError, match="does not fit its checksum; put it back from a copy, or"):
        checkpoint.load(folder, CPU)


@pytest.mark.parametrize(
    "content", [[1, 2], {}, {"step": "1"}, {"step": True}, torch.ones(2), None], ids=str
)
def test_what_is_no_checkpoint_is_refused_in_a_line(tmp_path, content):
    folder = RunFolder(tmp_path)
    torch.save(content, folder / checkpoint.CURRENT)  # without a checksum, as by earlier versions
    with pytest.raises(DataError, match=r"checkpoint\.pt holds no checkpoint; put it") as error:
        checkpoint.load(folder, CPU)
    assert "\n" not in str(error.value)


class Bomb:
    def __reduce__(self):
        return (exec, ("raise SystemExit('code ran')",))


def test_code_in_a_checkpoint_never_runs(tmp_path):
    folder = RunFolder(tmp_path)
    torch.save({"bomb": Bomb()}, folder / checkpoint.CURRENT)
    with pytest.raises(DataError, match=r"cannot be read \(UnpicklingError\)") as error:
        checkpoint.load(folder, CPU)
    assert "weights_only" not in str(error.value)  # torch's advice to run the code after all
