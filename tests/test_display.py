import io

from rich.console import Console

from concont.display import describe_row, percent, show_progress
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
    text = describe_row(ROW)
    losses = "loss 1.500  part 0.250  contrast 4.000"
    assert text == f"1,234 images/s  {losses}  confident 50.00 %  accuracy 98.77 %"


def test_a_figure_with_a_new_name_is_shown():
    row = {"images_per_s": 9.0, "seconds": 1.0, "loss_entropy": 0.5, "purity": 0.25, "purer": None}
    assert describe_row(row) == "9 images/s  entropy 0.500  purity 0.250"


def test_plain_lines_where_there_is_no_terminal():
    out = io.StringIO()
    show_progress(points(), 1, "concont", Console(file=out, width=40))
    assert out.getvalue() == f"concont  epoch 1/1  {describe_row(ROW)}\n"


def test_no_epochs_where_there_are_none():
    for terminal in (False, True):
        out = io.StringIO()
        show_progress(points(), None, "sspl", Console(file=out, width=160, force_terminal=terminal))
        assert "accuracy 98.77 %" in out.getvalue()
        assert "epoch" not in out.getvalue()


def test_a_bar_on_a_terminal():
    out = io.StringIO()
    show_progress(points(), 1, "concont", Console(file=out, width=160, force_terminal=True))
    assert "epoch 1/1" in out.getvalue()
    assert "accuracy 98.77 %" in out.getvalue()
    assert "\x1b[" in out.getvalue()
