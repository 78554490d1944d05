"""The page for everybody: colours, keyboard, readers of the screen, small screens."""

import itertools

import numpy as np
import pytest

from browser import needs_browser
from made_runs import TRACES

pytestmark = needs_browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_can_be_read(visit, whole, scheme):
    """Contrast of text by WCAG, as the system asks and after the switch."""
    seen = visit(color_scheme=scheme).open(whole)
    seen.show_everything()
    first = measure_contrasts(seen)
    seen.page.click("#theme")
    second = measure_contrasts(seen)
    assert min(*first.values(), *second.values()) >= 4.5, (first, second)
    background = seen.page.evaluate("getComputedStyle(document.body).backgroundColor")
    dark_now = sum(parse_colour(background)) < 300
    assert dark_now == (scheme == "light")
    seen.show("figure[data-chart='accuracy']")
    text = seen.page.locator("figure[data-chart='accuracy'] .legendtext").first
    fill = text.evaluate("each => getComputedStyle(each).fill")
    assert (sum(parse_colour(fill)) > 400) == dark_now  # charts change with the page


def parse_colour(text):
    return [float(part) for part in text[text.index("(") + 1 : -1].split(",")[:3]]


def measure_contrasts(seen):
    paper = luminance(seen.page.evaluate("getComputedStyle(document.body).backgroundColor"))
    found = {}
    for selector in ("h1", ".lead", ".facts dt", ".sentence", "nav a", "summary", ".cards p"):
        colour = seen.page.locator(selector).first.evaluate("each => getComputedStyle(each).color")
        pair = sorted((paper, luminance(colour)))
        found[selector] = (pair[1] + 0.05) / (pair[0] + 0.05)
    return found


def luminance(colour):
    parts = np.array(parse_colour(colour)) / 255
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return float(linear @ (0.2126, 0.7152, 0.0722))


def test_everything_is_reached_by_keyboard(visit, whole):
    seen = visit().open(whole)
    seen.page.keyboard.press("Tab")
    assert seen.page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(60):
        seen.page.keyboard.press("Tab")
        reached.add(
            seen.page.evaluate(
                "document.activeElement.id || document.activeElement.getAttribute('href')"
                " || document.activeElement.tagName"
            )
        )
    assert {"theme", "words", "class", "order", "#review", "#main", "SUMMARY"} <= reached
    seen.page.focus("figure[data-chart='accuracy'] summary")
    seen.page.keyboard.press("Enter")
    rows = seen.page.locator("figure[data-chart='accuracy'] tbody tr")
    rows.last.wait_for()
    assert rows.count() == 4
    outline = seen.page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"  # the focus can be seen


def test_a_reader_of_the_screen_is_told_what_charts_show(visit, whole):
    seen = visit().open(whole)
    seen.show_everything()
    for name in TRACES:
        figure = seen.page.locator(f"figure[data-chart='{name}']")
        told = [figure.get_attribute(f"aria-{kind}") for kind in ("labelledby", "describedby")]
        title, sentence = (seen.page.text_content(f"#{each}") for each in told)
        assert (len(title) > 5, len(sentence) > 30) == (True, True), name
        label = figure.locator("[role=group]").get_attribute("aria-label")
        assert label == f"Chart: {title}"
        assert figure.locator(".main-svg:not([aria-hidden])").count() == 0
    headings = seen.page.locator("h1, h2, h3").evaluate_all(
        "all => all.map(each => +each.tagName[1])"
    )
    assert headings[0] == 1
    assert all(b - a <= 1 for a, b in itertools.pairwise(headings))
    unnamed = seen.page.locator("input:not([aria-label]), select:not([aria-label])").evaluate_all(
        "all => all.filter(each => !each.labels.length).length"
    )
    assert unnamed == 0
    assert seen.page.locator("main, header, nav, footer").count() == 4


def test_a_phone_shows_all_without_scrolling_sideways(visit, whole):
    seen = visit(viewport={"width": 390, "height": 844}).open(whole)
    seen.show_everything()
    wide = seen.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390
