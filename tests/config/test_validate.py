from dataclasses import dataclass
from typing import Literal

import pytest
import yaml

from concont.config.resolve import check, resolve
from concont.config.validate import RETIRED, check_section, drop_retired, get_section, suggest
from concont.errors import UsageError


@dataclass(frozen=True)
class Words:
    """Texts that YAML does not read as texts."""

    switch: Literal["on", "off"] = "on"
    answer: Literal["true", "maybe"] = "maybe"
    level: Literal["1", "2.5"] | None = None
    plain: bool = False
    number: int = 0


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"switch": False}, Words(switch="off")),
        ({"answer": True, "plain": True}, Words(answer="true", plain=True)),
        ({"level": 1, "number": 1}, Words(level="1", number=1)),
        ({"level": 2.5}, Words(level="2.5")),
        ({"level": None}, Words()),
    ],
)
def test_words_that_yaml_reads_as_something_else_are_words_again(values, expected):
    assert check_section("words", Words, values) == expected


@pytest.mark.parametrize("values", [{"answer": False}, {"level": 3}, {"number": True}])
def test_what_is_no_such_word_is_refused_as_it_was_given(values):
    with pytest.raises(UsageError, match=f"words.{next(iter(values))} is "):
        check_section("words", Words, values)


def test_true_labels_guide_the_contrast_however_that_is_written(tmp_path):
    flags = {"data": {"source": "digits"}}
    assert resolve(flags, None, ["method.selection=true"]).method.selection == "true"
    (tmp_path / "mine.yaml").write_text("method: {name: concont, selection: true}")
    assert resolve(flags, str(tmp_path / "mine.yaml")).method.selection == "true"


def test_settings_that_are_gone_are_read_from_a_run_and_refused_from_a_user(tmp_path):
    assert "train.skip_idle" in RETIRED
    stored = {"recipe": "cifar10", "train": {"skip_idle": True, "epochs": 3}}
    assert drop_retired(stored) == {"recipe": "cifar10", "train": {"epochs": 3}}
    assert check(stored).train.epochs == 3
    (tmp_path / "config.yaml").write_text("recipe: digits\ntrain: {skip_idle: true, epochs: 3}")
    assert resolve({}, str(tmp_path / "config.yaml")).train.epochs == 3
    (tmp_path / "recipe.yaml").write_text("train: {skip_idle: true}")
    for recipe, words in ((None, ["train.skip_idle=true"]), (str(tmp_path / "recipe.yaml"), [])):
        with pytest.raises(UsageError, match="there is no train.skip_idle any more: .*weak_rows"):
            resolve({}, recipe, words)


def test_a_section_holds_settings_and_a_name_is_suggested():
    assert get_section({}, "train") == get_section({"train": None}, "train") == {}
    with pytest.raises(UsageError, match="section train is 5; it must hold key: value lines"):
        get_section({"train": 5}, "train")
    assert suggest("epoch", ["epochs", "seed"]) == "; did you mean epochs?"
    assert suggest("x", ["epochs", "seed"]) == "; there are epochs, seed"


@pytest.mark.parametrize(
    "setting",
    ["model.width", "model.hidden", "model.embedding", "method.queue", "data.image_size"],
)
def test_a_size_that_no_machine_holds_is_refused(setting):
    with pytest.raises(UsageError, match=f"{setting} is 10000000000: input should be less than"):
        resolve({}, assignments=["data.source=digits", "model.name=small", f"{setting}={10**10}"])


@pytest.mark.parametrize("weak", [5, [1], "x" * 9, None])
@pytest.mark.parametrize("model", ["mlp", "small"])
def test_views_that_are_no_settings_are_refused_by_name(weak, model, tmp_path):
    """Also where some of them would be left out, as they have no effect with this network."""
    stored = {"model": {"name": model}, "views": {"weak": weak}}
    (tmp_path / "recipe.yaml").write_text(yaml.safe_dump(stored))
    for read in (
        lambda: check(stored),
        lambda: resolve({"data": {"source": "digits"}}, str(tmp_path / "recipe.yaml")),
    ):
        with pytest.raises(UsageError, match=r"views\.weak"):
            read()
