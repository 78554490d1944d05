"""The methods by name. A new one is a file here and a line in METHODS."""

from concont.methods.concont import ConCont
from concont.methods.dpll import Dpll
from concont.methods.lws import Lws
from concont.methods.partial import Partial
from concont.methods.pico import Pico
from concont.methods.proden import Proden
from concont.methods.supervised import Supervised
from concont.types import Method

METHODS: dict[str, type[Method]] = {
    "concont": ConCont,
    "dpll": Dpll,
    "pico": Pico,
    "supervised": Supervised,
    "partial": Partial,
    "proden": Proden,
    "lws": Lws,
}
