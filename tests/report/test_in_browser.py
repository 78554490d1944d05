"""The page as a browser shows it: drawn, filtered and used by keyboard."""

import socket

import numpy as np
import pytest

from browser import needs_browser
from concont.report.finished import view_run
from concont.report.page import lay_out
from concont.report.record import read_record
from made_runs import (
    BINS,
    CLASSES,
    HOSTILE,
    TRACES,
    make_measured,
    make_page_of,
    make_quality,
    make_resolution,
    make_rows,
    make_run,
)

pytestmark = needs_browser


def count_traces(visit, name):
    plot = f"figure[data-chart='{name}'] .plot"
    return visit.page.locator(plot).evaluate("plot => plot._fullData.length")


def test_every_chart_is_drawn_and_nothing_is_asked_of_the_network(visit, whole):
    seen = visit().open(whole)
    seen.show_everything()
    assert {name: count_traces(seen, name) for name in TRACES} == TRACES
    lines = seen.page.locator("figure[data-chart='thresholds'] .scatterlayer .trace")
    assert lines.count() == 3
    points = seen.page.locator("figure[data-chart='map'] .scatterlayer .point")
    assert points.count() == 60 + 20
    buttons = seen.page.locator(".modebar-btn").evaluate_all(
        "all => all.map(each => each.getAttribute('aria-label'))"
    )
    assert set(buttons) == {"Zoom in", "Zoom out", "Reset axes", "Download plot as a PNG"}
    assert (seen.said, seen.outside) == ([], [])


def test_charts_wait_until_they_are_near(visit, whole):
    seen = visit(viewport={"width": 1280, "height": 500}).open(whole)
    seen.page.wait_for_selector("figure[data-chart='accuracy'] .main-svg")
    assert seen.page.locator("figure[data-chart='map'] .main-svg").count() == 0


def test_the_policy_keeps_the_network_out_whatever_a_script_tries(visit, whole):
    seen = visit().open(whole)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(1)
        address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        tried = seen.page.evaluate(f"fetch('{address}').then(() => 'sent', () => 'refused')")
        assert tried == "refused"
        mark = f"<img src=x onerror=hacked=1><img src={address}>"
        seen.page.evaluate("mark => document.body.insertAdjacentHTML('beforeend', mark)", mark)
        with pytest.raises(TimeoutError):
            listener.accept()
    assert seen.page.evaluate("window.hacked") is None


def test_hostile_names_do_nothing(visit, write, tmp_path):
    names = [f"{HOSTILE[k % 6]}{k}" for k in range(60)]
    resolution = make_resolution(n=60, classes=HOSTILE, names=names)
    measured = make_measured(resolution, quality=make_quality(HOSTILE), bins=BINS)
    path = make_run(tmp_path / HOSTILE[3].replace("/", "-"), classes=HOSTILE)
    seen = visit().open(write(make_page_of(path, measured)))
    seen.show_everything()
    seen.show("figure[data-chart='map']")
    seen.page.locator("figure[data-chart='map'] .plot").evaluate(
        "plot => Plotly.Fx.hover(plot, [{curveNumber: 0, pointNumber: 0}])"
    )
    seen.page.locator("figure[data-chart='confusion'] .plot").evaluate(
        "plot => Plotly.Fx.hover(plot, [{curveNumber: 0, pointNumber: [0, 1]}])"
    )
    seen.page.wait_for_timeout(200)
    for each in seen.page.locator("details").all():
        each.evaluate("each => each.open = true")
    seen.page.select_option("#class", index=3)
    seen.page.fill("#words", "<img")
    assert seen.page.evaluate("window.hacked") is None
    assert (
        seen.page.locator("main [onerror], main [onload], main a[href^='javascript']").count() == 0
    )
    assert seen.page.locator("main script, .plot b, .plot svg a").count() == 0
    drawn = seen.page.locator("figure[data-chart='confusion'] .xtick text").all_text_contents()
    assert drawn[0] == "<img src=…d=1>"  # as it is written, its middle left out
    text = seen.page.evaluate("document.querySelector('main').textContent + document.title")
    assert sorted({letter for letter in text if not letter.isprintable()} - set("\n\t\xa0")) == []
    assert (seen.said, seen.outside) == ([], [])


def test_long_names_of_classes_leave_room_for_what_is_drawn(visit, write, tmp_path):
    names = [f"a breed of dogs with a very long name, {k}" for k in range(10)]
    resolution = make_resolution(n=60, classes=names)
    measured = make_measured(resolution, quality=make_quality(names), bins=BINS)
    path = make_run(tmp_path / "run", classes=names)
    url = write(make_page_of(path, measured))
    phone = visit(viewport={"width": 390, "height": 844}).open(url)
    phone.show_everything()
    print({name: measure_room(phone, name) for name in TRACES})
    seen = visit().open(url)
    seen.show_everything()
    print({name: measure_room(seen, name) for name in TRACES})
    assert min(measure_room(seen, name) for name in TRACES) >= 0.5
    for name in ("thresholds", "classes", "confusion"):
        seen.show(f"figure[data-chart='{name}']")
        figure = seen.page.locator(f"figure[data-chart='{name}'] .plot")
        figure.locator(".nsewdrag").hover(position={"x": 20, "y": 20})
        figure.locator(".hoverlayer", has_text=names[0]).wait_for(timeout=10_000)


def measure_room(seen, name):
    """What the labels and the legend leave of a figure's width, or height."""
    return seen.page.locator(f"figure[data-chart='{name}'] .plot").evaluate(
        "plot => { const { w, h } = plot._fullLayout._size;"
        " return Math.min(w / plot.clientWidth, h / plot.clientHeight); }"
    )


def shown_cards(seen):
    return seen.page.locator("[data-gallery] li:visible")


def test_the_review_list_is_filtered_by_class_and_words_and_sorted(visit, whole):
    seen = visit().open(whole)
    assert shown_cards(seen).count() == 20
    seen.page.select_option("#class", label="dog")
    labels = shown_cards(seen).evaluate_all("all => all.map(each => each.dataset.class)")
    assert set(labels) == {"dog"}
    count = len(labels)
    assert seen.page.text_content("#shown") == f"{count} of 20 images"
    seen.page.fill("#words", "0010 DOG")
    assert shown_cards(seen).count() == 1
    seen.page.fill("#words", "nothing like this")
    assert seen.page.text_content("#shown") == "0 of 20 images"
    seen.page.fill("#words", "")
    seen.page.select_option("#class", label="all")
    seen.page.select_option("#order", "-rank")
    ranks = shown_cards(seen).evaluate_all("all => all.map(each => +each.dataset.rank)")
    assert ranks == list(range(20, 0, -1))
    seen.page.select_option("#order", "probability")
    shares = shown_cards(seen).evaluate_all("all => all.map(each => +each.dataset.probability)")
    assert shares == sorted(shares)
    assert seen.said == []


def test_several_runs_share_charts_and_one_is_shown_in_detail(visit, write, tmp_path):
    records, views = [], []
    for name, n in (("one", 30), ("two", 60)):
        record = read_record(make_run(tmp_path / name))
        measured = make_measured(make_resolution(n=n), most=n // 6, quality=make_quality())
        records.append(record)
        views.append(view_run(record, measured))
    begun = read_record(make_run(tmp_path / "begun", rows=make_rows(1), finished=False))
    records.append(begun)
    views.append(view_run(begun, make_measured(make_resolution(n=3), most=0)))
    seen = visit().open(write(lay_out(records, views, title="3 runs")))
    seen.show("figure[data-chart='accuracy']")
    assert count_traces(seen, "accuracy") == 3
    assert shown_cards(seen).count() == 5
    seen.page.select_option("#run", "two")
    assert shown_cards(seen).count() == 10
    seen.show("figure[data-chart='map']")
    points = seen.page.locator("figure[data-chart='map'] .scatterlayer .point")
    assert points.count() == 60 + 10
    seen.page.select_option("#run", "begun")
    assert seen.page.locator("#review").is_hidden()
    assert seen.page.locator("figure[data-chart='confusion']").is_hidden()
    assert seen.said == []


def test_a_page_prints_light_with_every_chart(visit, whole):
    seen = visit(color_scheme="dark").open(whole)
    assert seen.page.pdf()[:4] == b"%PDF"
    drawn = seen.page.locator("figure .main-svg")
    assert drawn.count() >= len(TRACES)
    assert seen.page.evaluate("document.documentElement.dataset.theme ?? 'none'") == "none"


@pytest.mark.long
def test_fifty_thousand_images_are_shown_within_two_seconds(visit, write, tmp_path):
    n, random = 50_000, np.random.RandomState(0)
    images = random.randint(0, 256, (n, 32, 32, 3), np.uint8)
    resolution = make_resolution(n=n, dim=128, classes=(*CLASSES, *map(str, range(7))))
    classes = resolution.classes
    measured = make_measured(resolution, images, most=200, quality=make_quality(classes), bins=BINS)
    path = make_run(tmp_path / "run", epochs=800, classes=classes)
    url = write(make_page_of(path, measured))
    assert (tmp_path / "page.html").stat().st_size < 10 * 2**20
    seen = visit().open(url)
    seen.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length")
    paint = seen.page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime"
    )
    print(f"first paint {paint:.0f} ms, {(tmp_path / 'page.html').stat().st_size / 2**20:.1f} MB")
    assert paint < 2000
