from pathlib import Path

import pytest

from concont.cache import cache_folder


@pytest.mark.parametrize(
    ("variables", "place"),
    [
        ({"CONCONT_CACHE": "/a", "XDG_CACHE_HOME": "/b"}, "/a"),
        ({"XDG_CACHE_HOME": "/b"}, "/b/concont"),
        ({"HOME": "/c"}, "/c/.cache/concont"),
    ],
)
def test_the_cache_lies_where_the_user_says(variables, place, monkeypatch):
    for name in ("CONCONT_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert cache_folder() == Path(place)
