import io

from rich.console import Console

from concont.cli.display import describe, percent, watch
from concont.training.loop import Progress

ROW = {
    "images_per_s": 1234.5,
    "loss": 1.5,
    "loss_part": 0.25,
    "loss_reg": None,
    "loss_contrast": 4.0,
    "confident": 0.5,
    "accuracy": 0.98765,
}


def points():
    yield Progress(1, 2, 1, False)
    yield Progress(2, 2, 1, True, ROW)


def test_a_row_in_words():
    assert percent(None) == "-"
    text = describe(ROW)
    losses = "loss 1.500  part 0.250  contrast 4.000"
    assert text == f"1,234 images/s  {losses}  confident 50.00 %  accuracy 98.77 %"


def test_what_a_method_of_ones_own_reports_is_shown_too():
    text = describe({**ROW, "loss_smooth": 0.5, "agreement": 0.25, "accuracy_best": 0.9})
    assert "smooth 0.500" in text
    assert "agreement 0.250" in text
    assert "best" not in text


def test_plain_lines_where_there_is_no_terminal():
    out = io.StringIO()
    watch(points(), 1, "concont", Console(file=out, width=40))
    assert out.getvalue() == f"concont  epoch 1/1  {describe(ROW)}\n"


def test_no_epochs_where_there_are_none():
    for terminal in (False, True):
        out = io.StringIO()
        watch(points(), None, "sspl", Console(file=out, width=160, force_terminal=terminal))
        assert "accuracy 98.77 %" in out.getvalue()
        assert "epoch" not in out.getvalue()


def test_a_bar_on_a_terminal():
    out = io.StringIO()
    watch(points(), 1, "concont", Console(file=out, width=160, force_terminal=True))
    assert "epoch 1/1" in out.getvalue()
    assert "accuracy 98.77 %" in out.getvalue()
    assert "\x1b[" in out.getvalue()
