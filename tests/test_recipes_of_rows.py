"""What each row of the paper's tables is, and what each method asks for, written out by hand."""

from dataclasses import fields, replace
from functools import cache

import pytest

from concont.config.recipe_files import row_names
from concont.config.registry import load_registered, registered_names
from concont.config.resolve import resolve
from concont.runs.settings import Optimizer
from concont.runs.view_settings import NAMED_VIEWS, View, Views
from concont.types import find_unused

PAPER = ("cifar10", "cifar100", "svhn")
NAMED = ("digits", *PAPER, "fashion-mnist")
UNLABELED = {"unlabeled": True}
EVERYTHING = {"unlabeled": True, "labeled": None, "ambiguity": None}
PARTIAL_ONLY = {"unlabeled": False}

# The methods of others with the values of their papers. Thresholds, and how many keys are kept how
# long, are the data's.
DPLL = {"name": "dpll", "weight": 1.0, "ramp": 0.5, "controlled": False}
PICO = {
    "name": "pico",
    "repr_weight": 0.5,
    "temperature": 0.07,
    "prototype_momentum": 0.99,
    "confidence_momentum": (0.95, 0.8),
}
LWS = {"name": "lws", "leverage": 1.0}
SSPL = {"name": "sspl", "size": 32, "k": 10, "alpha": 0.7, "beta": 0.25, "r": 0.7}
PARM = {
    **{"name": "parm", "size": 32, "lam": 1.0, "mu": 1.0, "k": 8, "alpha": 0.95, "gamma": 0.01},
    **{"rounds": 5, "tolerance": 1e-3, "max_steps": 1000},
}
OF_THE_DATA = (
    *("threshold", "threshold_lower", "threshold_upper", "threshold_rate"),
    *("queue", "momentum"),
)

# Row -> what of `method` and of `data` is not as in the data set's own recipe, which is `ConCont`
# in Tables 1 to 3, `Adaptive` in Table 5 and `Ours` in Table 6.
ROWS = {
    # Tables 1 to 3; a star: also the examples without labels
    "two-branch": ({"branches": "two"}, {}),
    "partial-only": ({}, PARTIAL_ONLY),
    "dpll": (DPLL, PARTIAL_ONLY),
    "dpll-star": (DPLL, UNLABELED),
    "dpll-controller": ({**DPLL, "controlled": True, "balance": "adaptive"}, UNLABELED),
    "pico": (PICO, PARTIAL_ONLY),
    "pico-star": (PICO, UNLABELED),
    "sspl": (SSPL, UNLABELED),
    "parm": ({**PARM, "lam": "cv", "mu": "cv"}, UNLABELED),
    "fully-supervised": ({"name": "supervised"}, EVERYTHING),  # every image, with its true label
    # Table 4: without L_part, in two readings, without L_reg, without L_reg', without both
    "wo-part": ({"part_loss": "uniform", "part_rows": "partial"}, {}),
    "wo-part-all": ({"part_loss": "uniform", "part_rows": "all", "part_mean": "batch"}, {}),
    "wo-reg": ({"label_weight": 0.0}, {}),
    "wo-repr": ({"repr_weight": 0.0}, {}),
    "wo-both": ({"label_weight": 0.0, "repr_weight": 0.0}, {}),
    # Table 5
    "da": ({"balance": "da"}, {}),
    "cpl": ({"balance": "cpl"}, {}),
    "vanilla": ({"balance": "fixed"}, {}),
    "adaptive-soft": ({"balance": "adaptive", "pseudo": "soft"}, {}),
    "da-soft": ({"balance": "da", "pseudo": "soft"}, {}),
    "vanilla-soft": ({"balance": "fixed", "pseudo": "soft"}, {}),
    # Table 6
    "hcpn": ({"selection": "hcpn"}, {}),
    "hcp": ({"selection": "hcp"}, {}),
    "supcon": ({"selection": "supcon"}, {}),
    "unsupcon": ({"selection": "unsupcon"}, {}),
    "y-true": ({"selection": "true"}, {}),
    # in no table
    "partial-loss": ({"name": "partial", "part_mean": "batch"}, PARTIAL_ONLY),
    "proden": ({"name": "proden"}, PARTIAL_ONLY),
    "lws": (LWS, PARTIAL_ONLY),
}

# The 14 of RandAugment, and how far they go.
OPERATIONS = (
    *("identity", "autocontrast", "equalize", "rotate", "posterize", "solarize", "color"),
    *("contrast", "brightness", "sharpness", "shear_x", "shear_y", "translate_x", "translate_y"),
)
REACH = {
    "operations": OPERATIONS,
    "rotate": 30.0,
    "posterize": (4.0, 8.0),
    "solarize": (0.0, 256.0),
    "shear": 0.3,
    "translate": 0.3,
}
SIDES = (3 / 4, 4 / 3)
WHOLE = {"crop": (1.0, 1.0), "ratio": (1.0, 1.0), "pad": 0}
PICO_CROP = {"crop": (0.2, 1.0), "ratio": SIDES}

WEAK = View(crop=(0.5, 1.0), ratio=SIDES)
PLAIN = View(**WHOLE)  # the image as it is
PAD4 = View(crop=(1.0, 1.0), pad=4)
WEAK_PICO = View(**PICO_CROP, jitter=(0.4, 0.4, 0.4, 0.1), jitter_chance=0.8, grey_chance=0.2)
MEASURED = View(**PICO_CROP, **REACH, draws=2, enhance=(0.1, 1.9), cutout=(16.0, 16.0))
STRONG_PICO = View(**PICO_CROP, **REACH, draws=3, enhance=(0.05, 0.95), cutout=(0.0, 16.0))
STRONG_DPLL = View(crop=(1.0, 1.0), pad=4, policy="cifar10", cutout=(16.0, 16.0))
STRONG_SVHN = View(**WHOLE, policy="svhn", cutout=(20.0, 20.0))

OURS = Views(flip=True, weak=WEAK, strong=MEASURED)
OF_PICO = Views(flip=True, weak=WEAK_PICO, strong=STRONG_PICO)
OF_DPLL = Views(flip=True, weak=PAD4, strong=STRONG_DPLL)
OF_DPLL_ON_SVHN = Views(flip=False, weak=PLAIN, strong=STRONG_SVHN)

# Method -> views, learning rate, weight decay, schedule, batch, embedding on the paper's data.
ASKED = {
    "concont": (OURS, 0.01, 1e-3, "cosine", 256, 64),
    "dpll": (OF_DPLL, 0.1, 1e-4, "steps", 64, 64),
    "pico": (OF_PICO, 0.01, 1e-3, "cosine", 256, 128),
    "supervised": (OURS, 0.01, 1e-3, "cosine", 256, 64),  # view and schedule are ours
    "partial": (OURS, 0.01, 1e-3, "cosine", 256, 64),
    "proden": (OURS, 0.05, 1e-3, "cosine", 256, 64),  # the same, and not its constant rate
    "lws": (OURS, 0.05, 1e-3, "halving", 256, 64),
}


@cache
def recipe(data):
    return resolve({"data": {"source": data}})


@cache
def recipe_of(method, data):
    return resolve({"data": {"source": data}, "method": {"name": method}})


def section(base, said):
    """A row's `method`: the recipe's with what was said, or another method with the data's."""
    name = said.get("name", base.name)
    if name == base.name:
        return without_unused(replace(base, **said))
    kind = load_registered(name)
    taken = {field.name for field in fields(kind)}.intersection(OF_THE_DATA)
    return without_unused(kind(**said, **{key: getattr(base, key) for key in taken}))


def without_unused(method):
    """The bounds of thresholds mean nothing unless these move, and none without a controller."""
    unused = () if getattr(method, "balance", "adaptive") == "adaptive" else OF_THE_DATA[1:4]
    unused = unused if getattr(method, "controlled", True) else (*OF_THE_DATA[:4], "balance")
    unused = [name for name in unused if hasattr(method, name)]
    return replace(method, **{name: getattr(type(method), name) for name in unused})


def test_every_row_is_in_the_table_and_no_two_are_the_same():
    assert sorted(row_names()) == sorted(ROWS)
    assert len({repr(said) for said in ROWS.values()}) == len(ROWS)


@pytest.mark.parametrize("data", NAMED)
@pytest.mark.parametrize("row", ROWS)
def test_a_row_is_what_it_is_called_and_nothing_else(data, row):
    own, (said, kept) = recipe(data), ROWS[row]
    found = resolve({"data": {"source": data}}, row)
    wanted = section(own.method, said)
    unused = find_unused(type(wanted), vars(wanted))
    assert found.method == replace(wanted, **{k: getattr(type(wanted), k) for k in unused})
    assert found.data == replace(own.data, **kept)
    rest = recipe_of(said.get("name", "concont"), data) if data in PAPER else own
    assert replace(found, method=rest.method, data=rest.data, recipe=rest.recipe) == rest


@pytest.mark.parametrize("data", NAMED)
def test_what_the_rows_differ_from_is_concont_with_all_images(data):
    method = recipe(data).method
    named = (method.name, method.branches, method.part_loss, method.balance, method.pseudo)
    assert named == ("concont", "three", "partial", "adaptive", "hard")
    assert (method.selection, method.teacher, method.part_rows) == ("ours", "online", "partial")
    assert min(method.label_weight, method.repr_weight) > 0
    assert recipe(data).data.unlabeled is True


@pytest.mark.parametrize("data", PAPER)
@pytest.mark.parametrize("method", ASKED)
def test_what_a_method_asks_for_on_the_papers_data(method, data):
    views, lr, decay, schedule, batch, embedding = ASKED[method]
    own, found = recipe(data), recipe_of(method, data)
    assert found.views == (OF_DPLL_ON_SVHN if (method, data) == ("dpll", "svhn") else views)
    assert found.optimizer == Optimizer(lr, 0.9, decay, nesterov=False, schedule=schedule)
    assert found.model == replace(own.model, embedding=embedding)
    assert found.train == replace(own.train, batch_size=batch)
    assert found.train.epochs == 800


@pytest.mark.parametrize("data", PAPER)
def test_keys_and_thresholds_of_other_methods_on_the_papers_data(data):
    tau = {"cifar100": (0.6, 0.4, 0.8, 1.0)}.get(data, (0.8, 0.5, 0.95, 1.0))
    pico = recipe_of("pico", data).method
    dpll = resolve({"data": {"source": data}}, "dpll-controller").method
    assert (pico.queue, pico.momentum) == (8192, 0.999)
    assert tuple(getattr(dpll, name) for name in OF_THE_DATA[:4]) == tau


def test_the_named_views_are_the_published_ones():
    assert NAMED_VIEWS == {
        "weak": {"pico": WEAK_PICO, "pad4": PAD4},
        "strong": {
            "measured": MEASURED,
            "pico": STRONG_PICO,
            "dpll": STRONG_DPLL,
            "dpll-svhn": STRONG_SVHN,
        },
    }


@pytest.mark.parametrize("method", registered_names())
@pytest.mark.parametrize("data", PAPER)
def test_a_recipe_that_extends_a_data_sets_is_for_a_method_what_that_is(tmp_path, method, data):
    (tmp_path / "mine.yaml").write_text(f"extends: {data}\ntrain: {{epochs: 7}}\n")
    found = resolve({"method": {"name": method}}, str(tmp_path / "mine.yaml"))
    wanted = resolve({"method": {"name": method}}, data, ["train.epochs=7"])
    assert found.recipe == "mine"
    assert replace(found, recipe=wanted.recipe) == wanted
