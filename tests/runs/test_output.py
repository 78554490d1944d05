import pytest

from concont.errors import UsageError
from concont.runs.output import refuse_output


@pytest.fixture
def there(tmp_path):
    path = tmp_path / "there.csv"
    path.write_text("x")
    return path


def test_a_new_file_may_be_written(tmp_path):
    refuse_output(tmp_path / "new.csv", overwrite=False, suffixes=(".csv", ".parquet"))
    refuse_output(tmp_path / "NEW.PARQUET", overwrite=False, suffixes=(".csv", ".parquet"))


def test_a_file_that_is_there_is_replaced_only_on_request(there):
    with pytest.raises(UsageError, match="there.csv is there already; --overwrite replaces it"):
        refuse_output(there, overwrite=False)
    refuse_output(there, overwrite=True)


def test_what_is_read_is_never_written_over(there, tmp_path):
    link = tmp_path / "link.csv"
    link.symlink_to(there)
    for name in (there, link):
        with pytest.raises(UsageError, match="is what is read"):
            refuse_output(name, overwrite=True, inputs=[None, "", tmp_path / "no", str(there)])


def test_a_link_that_leads_nowhere_is_there(tmp_path):
    (tmp_path / "link.csv").symlink_to(tmp_path / "gone")
    with pytest.raises(UsageError, match="is there and is not a file"):
        refuse_output(tmp_path / "link.csv", overwrite=False)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("labels.txt", "labels.txt: its name must end in .csv or .parquet"),
        ("no/labels.csv", "there is no folder"),
        ("folder.csv", "is there and is not a file"),
    ],
)
def test_what_cannot_be_written_is_refused(name, message, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(UsageError, match=message):
        refuse_output(tmp_path / name, overwrite=True, suffixes=(".csv", ".parquet"))


def test_files_of_a_run_are_never_replaced(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    refuse_output(run / "summary.json", overwrite=False)  # a folder like any other
    (run / "config.yaml").touch()
    (tmp_path / "link").symlink_to(run)
    for name in ("run/model.safetensors", "run/config.yaml", "link/summary.json"):
        with pytest.raises(UsageError, match="is the name of a file of the run itself"):
            refuse_output(tmp_path / name, overwrite=True)
    refuse_output(run / "model.onnx", overwrite=False)
