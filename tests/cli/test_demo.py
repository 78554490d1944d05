import pytest

from processes import concont


@pytest.mark.slow
def test_a_used_folder_is_refused_before_anything_is_trained(tmp_path):
    (tmp_path / "file").write_text("")
    done = concont("demo", "--out", tmp_path)
    assert done.returncode == 2
    assert "is not empty; choose another --out" in done.stderr


def test_the_files_of_the_walk_alone(tmp_path):
    done = concont("demo", "--votes", "--files", "--out", tmp_path / "example")
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "example").iterdir()) == [
        *("new", "photos", "votes.csv")
    ]
    done = concont("demo", "--files", "--out", tmp_path / "other")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: --files goes with --votes\n"
    assert not (tmp_path / "other").exists()
