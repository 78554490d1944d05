import pytest

from processes import concont


@pytest.mark.slow
def test_a_folder_that_is_no_run(tmp_path):
    done = concont("evaluate", tmp_path)
    assert done.returncode == 2
    assert "holds no summary.json" in done.stderr
