import base64
import gzip
import hashlib
import json
import re
from importlib import resources

import pytest
from markupsafe import escape

from concont.report.page import (
    PLOTLY,
    Page,
    escape_in_script,
    lay_out,
    make_policy,
    read_plotly,
    render,
    view_record,
)
from concont.report.record import read_record
from made_runs import (
    HOSTILE,
    make_measured,
    make_page_of,
    make_quality,
    make_resolution,
    make_run,
    read_data,
)

ASSETS = resources.files("concont.report") / "assets"


def test_plotly_is_the_file_that_was_published():
    told = json.loads((ASSETS / "plotly.json").read_text())
    packed = (ASSETS / f"{PLOTLY}.gz").read_bytes()
    assert len(packed) < 2**20
    assert hashlib.sha256(gzip.decompress(packed)).hexdigest() == told["sha256"]
    assert f"v{told['version']}" in read_plotly()[:200]
    assert "MIT License" in (ASSETS / "plotly-LICENSE").read_text()


@pytest.fixture
def page(tmp_path):
    measured = make_measured(make_resolution(n=60), quality=make_quality())
    return make_page_of(make_run(tmp_path / "run"), measured)


def test_the_answer_stands_before_everything_else(page):
    html = render(page).split("<main")[1]
    places = [html.index(text) for text in ("87.50\u00a0%", "54 of 60", "While it trained")]
    assert places == sorted(places)
    order = re.findall(r'<section id="(\w+)"', html)
    assert order == ["training", "labels", "held", "map", "review", "origin"]


def test_the_script_gets_every_chart(page):
    data = read_data(render(page))
    assert set(data["charts"]["shared"]) == {"accuracy", "losses", "confident", "precision"}
    own = data["charts"]["runs"]["run"]
    assert set(own) == {"thresholds", "classes", "confusion", "map"}
    assert data["live"] is False


def test_every_chart_is_also_said_in_words(page):
    html = render(page)
    for chart in (*page.shared.values(), *page.runs[0].charts.values()):
        assert str(escape(chart.sentence)) in html
        assert chart.rows


def test_only_the_pages_own_scripts_may_run_and_no_network_is_asked(page):
    html = render(page)
    (policy,) = re.findall(r'Content-Security-Policy" content="([^"]*)"', html)
    policy = policy.replace("&#39;", "'")
    assert policy.startswith("default-src 'none';")
    assert "connect-src 'none'" in policy
    scripts = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    assert len(scripts) == 2
    for text in scripts:
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "connect-src 'self'" in make_policy([], live=True)
    outside = re.sub(r"<script>.*?</script>", "", html, flags=re.DOTALL)
    assert not re.search(r"https?://|src=\"(?!data:)", outside)


def test_what_a_users_table_holds_is_text_everywhere(tmp_path):
    path = make_run(tmp_path / "run", classes=HOSTILE)
    resolution = make_resolution(n=60, classes=HOSTILE, names=[HOSTILE[k % 6] for k in range(60)])
    measured = make_measured(resolution, quality=make_quality(HOSTILE))
    html = render(make_page_of(path, measured))
    assert len(re.findall(r"<script", html.replace(read_plotly(), ""))) == 3
    own = html.replace(read_plotly(), "").split('<script type="application/json"')[0]
    assert not re.search(r"<(img src=x|svg|b>|a href='java)", own)
    assert "{{ 7 * 7 }}" in own
    charts = json.dumps(read_data(html)["charts"])
    labels = [trace.get("name", "") for chart in page_charts(read_data(html)) for trace in chart]
    assert not any("<" in label for label in labels)
    assert "hacked" in charts  # it is there, as text


def page_charts(data):
    runs = [chart for own in data["charts"]["runs"].values() for chart in own.values()]
    return [chart["data"] for chart in [*data["charts"]["shared"].values(), *runs]]


def test_json_in_a_script_cannot_end_it():
    text = escape_in_script(json.dumps({"a": "</script><!-- & \u2028"}, ensure_ascii=False))
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": "</script><!-- & \u2028"}


def test_several_runs_begin_with_what_differs(tmp_path):
    paths = [make_run(tmp_path / name, seed) for seed, name in ((3, "one"), (5, "two"))]
    records = [read_record(path) for path in paths]
    page = lay_out(records, [view_record(record) for record in records], title="2 runs")
    html = render(page).split("<main")[1]
    words = ("Settings that differ", "What came of them", "One run in detail", "While it trained")
    places = [html.index(text) for text in words]
    assert places == sorted(places)
    assert re.findall(r'<option value="(\w+)">', html)[:2] == ["one", "two"]
    assert set(read_data(html)["charts"]["runs"]) == {"one", "two"}
    assert '<dl class="facts"' not in html


def test_a_page_without_a_run_says_so():
    html = render(Page("Waiting for a run in x", [], {}, live=True))
    assert "Waiting for a run in x" in html
    assert "<code>concont report RUN</code> makes a page that has them" in html


def test_a_damaged_file_is_told_of(tmp_path):
    path = make_run(tmp_path / "run")
    (path / "verdict.json").write_text("{")
    view = view_record(read_record(path))
    assert "is damaged" in view.missing[0]
    assert "classes" not in view.charts
