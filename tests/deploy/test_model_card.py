import html
import re
from dataclasses import replace

import numpy as np
import pytest
import yaml
from markdown_it import MarkdownIt

import concont
from concont.deploy.export import export_run
from concont.deploy.model_card import (
    MARKER,
    escape_markdown,
    refuse_card,
    render_card,
    write_card,
)
from concont.errors import UsageError
from concont.report.finished import view_run
from concont.report.measured import Measured
from concont.report.record import read_record
from exports import toy_arrays, train_toy

HEADINGS = ["Data", "Settings", "Figures", "Check of the export", "Limits", "How to run it"]


def to_html(card):
    """The card's body as a browser would have it."""
    body = card.split("\n---\n", 1)[1]
    return MarkdownIt("commonmark", {"html": True}).enable("table").render(body)


@pytest.fixture(scope="module")
def card(run, exported):
    return render_card(run, exported)


def test_it_has_all_its_sections_and_a_head_that_others_read(card):
    head = yaml.safe_load(card.split("---")[1])
    assert head["license"] == "MIT"
    assert head["pipeline_tag"] == "image-classification"
    assert re.findall(r"<h2>(.*)</h2>", to_html(card)) == HEADINGS
    assert "\n\n\n" not in card
    assert "None" not in card


@pytest.mark.parametrize("form", ["torchscript", "safetensors"])
def test_every_format_says_how_it_is_run(run, exported, form):
    code = render_card(run, replace(exported, form=form)).split("```python")[1]
    assert {"torchscript": "torch.jit.load", "safetensors": "safe_open"}[form] in code


def test_the_example_of_the_card_runs(card, exported, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    monkeypatch.chdir(exported.path.parent)
    names = {}
    exec(code, names)
    assert names["probabilities"].shape == (1, 3)


def test_figures_are_those_of_the_run(run, card):
    figures = run.evaluate()
    assert f"Accuracy {100 * run.summary.accuracy_last:.2f} % at the last epoch, on 30" in card
    assert f"Calibration error {100 * figures['calibration_error']:.2f} %" in card
    for (name, own), counts in zip(figures["per_class"].items(), figures["confusion"], strict=True):
        assert f"| {escape_markdown(name)} | {sum(counts)} | {100 * own:.2f} % |" in card
    assert run.data["digest"] in card
    assert "| training images | 90 |" in card
    assert f"| of them with a candidate set | {run.data['n_partial']} |" in card


def test_a_hold_out_says_what_a_temperature_would_make_of_it(card, tmp_path):
    assert "as the network does: they are not calibrated" in card
    assert "temperature" not in card
    stream = np.random.RandomState(0)
    arrays = {
        "x_train": stream.randint(0, 256, (150, 8, 8), np.uint8),
        "y_train": np.arange(150) % 3,
    }
    run = train_toy(tmp_path, arrays=arrays, data={"holdout": 0.4}, train={"epochs": 1})
    calibration = concont.resolve(run).calibration
    made = export_run(run, tmp_path / "model.pt", "torchscript")
    said = " ".join(render_card(run, made).split())
    assert (
        f"by a temperature of {calibration.temperature:.4g}, fitted on 60 held-out images" in said
    )
    assert f"the error is then {100 * calibration.error_after:.2f} %, on images" in said


def test_names_from_outside_are_text_and_nothing_else(card):
    page = to_html(card)
    assert "<td>right|*_&lt;b&gt;</td>" in page
    assert "&lt;script&gt;" in page
    assert not re.search(r"<(?!/?(?:h1|h2|p|table|thead|tbody|tr|th|td|ul|li|pre|code)\b)", page)
    name = "[x](http://y) `a`\n# b | **c** _d_ <e> \x1b[31m &amp; ~f~ ![g](h)"
    assert to_html(f"---\n---\n{escape_markdown(name)}").strip() == (
        "<p>[x](http://y) `a`\\n# b | **c** _d_ &lt;e&gt; \\x1b[31m &amp;amp; ~f~ ![g](h)</p>"
    )


def test_no_path_is_in_it(run, card):
    for path in (run.path, run.settings.data.source, run.path.parent.name):
        assert str(path) not in card


def test_no_path_of_the_run_that_it_began_from_is_in_it(continued, exported):
    for text in (
        render_card(continued, exported),
        str(view_run(read_record(continued.path), Measured())),
    ):
        assert str(continued.path.parents[1]) not in text
        assert continued.settings.model.start_digest in text


def test_settings_unlike_the_recipe_are_those_of_the_report(run, card, exported):
    record = read_record(run.path)
    rows = view_run(record, Measured()).changes.rows
    assert {"model.width", "optimizer.lr"} < {name for name, *_ in rows}
    table = to_html(card).split("<h2>Settings</h2>")[1].split("<h2>")[0]
    cells = [html.unescape(cell) for cell in re.findall(r"<td>(.*?)</td>", table)]
    assert cells == [cell for row in rows for cell in row]
    assert not {"data.source", "train.device", "method.name"} & set(cells)
    lost = replace(run, settings=replace(run.settings, recipe="no-longer-there"))
    assert "differ from the built-in defaults" in to_html(render_card(lost, exported))


def test_without_a_test_set_it_says_so(tmp_path):
    run = train_toy(tmp_path, arrays=toy_arrays(tests=0))
    exported = export_run(run, tmp_path / "model.pt", "torchscript")
    card = render_card(run, exported)
    assert "Not measured: there were no labelled images to measure on." in card
    assert "on 42 training images" in card
    assert "license:" not in card
    assert "| licence | not stated |" in card


def test_with_data_that_is_gone_it_says_so(run, exported):
    card = render_card(run, replace(exported, problem=None))
    assert "Class by class it was not measured again" in card
    assert re.findall(r"<h2>(.*)</h2>", to_html(card)) == HEADINGS


def test_only_its_own_card_is_replaced(run, exported):
    path = write_card(run, exported)
    assert path.read_text("utf-8") == render_card(run, exported)
    refuse_card(path, overwrite=False)
    for content in (b"mine", f"mine\n---\n# {MARKER}".encode(), b"\xff\xfe"):
        path.write_bytes(content)
        with pytest.raises(UsageError, match=r"MODEL_CARD.md is there and is not by this command"):
            refuse_card(path, overwrite=False)
        refuse_card(path, overwrite=True)
    path.unlink()
    refuse_card(path, overwrite=False)
