import pytest

from concont.report.wording import (
    hide_folders,
    show_duration,
    show_in_chart,
    show_number,
    show_setting,
    show_share,
)


def test_shares_and_numbers():
    assert show_share(0.94312) == "94.31\u00a0%"
    assert show_share(0.5, 0) == "50\u00a0%"
    assert show_share(None) == show_number(None) == show_duration(None) == "unknown"
    assert [show_number(value) for value in (1250.4, 958, 10, 0.03171)] == [
        *("1,250", "958", "10.0", "0.0317")
    ]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        *((0.44, "0.4 s"), (48.4, "48 s"), (59.6, "1 min"), (108, "1 min 48 s")),
        *((3600, "1 h"), (7500, "2 h 5 min"), (3_600_000, "1,000 h")),
    ],
)
def test_durations(seconds, words):
    assert show_duration(seconds) == words


def test_settings_read_as_in_yaml():
    values = (None, True, 0.5, [1, 2], "three", "a\nb")
    assert [show_setting(value) for value in values] == [
        *("null", "true", "0.5", "[1, 2]", "three", "a\\nb")
    ]


def test_a_name_holds_no_markup_in_a_chart():
    assert show_in_chart("<b>x</b> & y") == "&lt;b&gt;x&lt;/b&gt; &amp; y"
    assert show_in_chart("a\u202eb") == "a\\u202eb"
    assert show_in_chart("&lt;") == "&amp;lt;"
    assert len(show_in_chart("x" * 100)) == 40


def test_folders_are_hidden_and_names_stay(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = f"{tmp_path}/photos/a.png of {tmp_path}/photos: no such file"
    assert hide_folders(text, tmp_path / "photos") == "photos/a.png of photos: no such file"
    assert hide_folders(text, "photos") == "photos/a.png of photos: no such file"
    assert hide_folders("x/run/b: gone", "x/run") == "run/b: gone"
    assert hide_folders("/run: gone", "/run") == "/run: gone"
