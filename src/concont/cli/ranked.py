"""Commands that torchrun may start as one of several ranks."""

import os
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from concont.ranks import world

P = ParamSpec("P")


def on_every_rank(command: Callable[P, None]) -> Callable[P, None]:
    """The command as one of several ranks, where a launcher started it so; else as it is."""

    @wraps(command)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        if not world.is_started_as_rank():
            command(*args, **kwargs)
            return
        # Said before torch is imported: what the others' ends look like in C++ helps nobody.
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
        from concont.ranks.ends import joined

        with joined():
            command(*args, **kwargs)

    return call
