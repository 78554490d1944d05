"""What happens on several ranks is in tests/training/test_ranks.py."""

import inspect

from concont.cli.ranked import on_every_rank


def test_alone_a_command_is_what_it_was(monkeypatch):
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    called = []

    def command(name: str, times: int = 2) -> None:
        called.append((name, times))

    wrapped = on_every_rank(command)
    wrapped("a", times=3)
    assert called == [("a", 3)]
    assert inspect.signature(wrapped) == inspect.signature(command)
