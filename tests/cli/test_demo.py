import pytest

from processes import concont


@pytest.mark.slow
def test_a_used_folder_is_refused_before_anything_is_trained(tmp_path):
    (tmp_path / "file").write_text("")
    done = concont("demo", "--out", tmp_path)
    assert done.returncode == 2
    assert "is not empty; choose another --out" in done.stderr
