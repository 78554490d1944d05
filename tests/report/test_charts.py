import itertools

from concont.report.charts import COLOURS, POINTS, Chart, make_layout, make_line, pick_colour, thin


def test_a_long_line_is_thinned_and_keeps_both_ends():
    points = [(x, x * x) for x in range(10_001)]
    kept = thin(points)
    assert len(kept) == POINTS
    assert (kept[0], kept[-1]) == (points[0], points[-1])
    steps = [b[0] - a[0] for a, b in itertools.pairwise(kept)]
    assert max(steps) - min(steps) <= 1
    assert thin(points[:POINTS]) == points[:POINTS]


def test_lines_are_told_apart_beyond_the_palette():
    lines = [make_line(str(k), [(0, 0), (1, 1)], k) for k in range(20)]
    looks = {(line["line"]["color"], line["line"]["dash"]) for line in lines}
    assert len(looks) == 20
    assert pick_colour(COLOURS) == pick_colour(0) == "var(--series-0)"
    assert lines[0]["mode"] == "lines+markers"
    assert make_line("long", [(x, x) for x in range(100)])["mode"] == "lines"


def test_a_name_in_a_legend_holds_no_markup():
    assert make_line("<b>", [(0, 0)])["name"] == "&lt;b&gt;"


def test_a_layout_is_laid_on_the_shared_look():
    layout = make_layout("x", "y", yaxis={"ticksuffix": " %"}, barmode="stack")
    assert layout["yaxis"]["ticksuffix"] == " %"
    assert layout["yaxis"]["title"]["text"] == "y"
    assert layout["barmode"] == "stack"
    assert "ticksuffix" not in layout["xaxis"]


def test_a_chart_is_plain_data():
    chart = Chart("t", "s", [{"x": [1]}], {}, ("a",), [("1",)])
    assert chart.as_dict() == {
        **{"title": "t", "sentence": "s", "data": [{"x": [1]}], "layout": {}},
        **{"head": ["a"], "rows": [["1"]]},
    }
