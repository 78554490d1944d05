"""The systems without a network: image descriptors, neighbour graphs, SSPL and PARM.

`gist` is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from concont.classic.descriptor import gist

__all__ = ["gist"]


def __getattr__(name: str) -> Any:
    if name != "gist":
        raise AttributeError(f"module 'concont.classic' has no attribute {name!r}")
    from concont.classic.descriptor import gist

    return gist
