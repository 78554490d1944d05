"""The methods by name. A new one is a file here and a line in METHODS."""

from concont.methods.concont import ConCont
from concont.methods.partial import Partial
from concont.types import Method

METHODS: dict[str, type[Method]] = {"concont": ConCont, "partial": Partial}
