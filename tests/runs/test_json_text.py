import pytest

from concont.errors import DataError
from concont.runs import json_text
from concont.runs.json_text import read_json


def test_what_was_written_is_read(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('{"a": [1, null]}')
    assert read_json(path) == {"a": [1, None]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is damaged"),
        (b"{", "is damaged"),
        (b"[" * 10**6, "nested too deep"),
        (b"\xff", "cannot be read"),
        (b"1" * 10**5, "is damaged"),
    ],
)
def test_what_is_no_json_is_refused_in_a_line(content, message, tmp_path):
    path = tmp_path / "a\n.json"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message) as caught:
        read_json(path)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_too_large_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(json_text, "LARGEST", 3)
    (tmp_path / "a.json").write_text("[1, 2]")
    with pytest.raises(DataError, match="too many"):
        read_json(tmp_path / "a.json")
