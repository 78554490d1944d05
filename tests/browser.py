"""A real Chromium without a window, and what a page did in it."""

import shutil
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]
needs_browser = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium"),
]


class Visit:
    """An open page, and all that it said on the console and asked of the network."""

    def __init__(self, page):
        self.page, self.said, self.asked = page, [], []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))

    @property
    def outside(self):
        """Requests for what is neither the page's own file nor inside of it."""
        return [url for url in self.asked if not url.startswith(("file:", "data:", "blob:"))]

    def open(self, url):
        self.page.goto(url, wait_until="load")
        return self

    def show(self, selector):
        """Scroll to it, and wait until its chart is drawn as the page is now."""
        self.page.locator(selector).first.evaluate(
            "each => each.scrollIntoView({behavior: 'instant', block: 'center'})"
        )
        if selector.startswith("figure"):
            self.page.wait_for_selector(f"{selector}[data-drawn='yes']", timeout=20_000)

    def show_everything(self):
        for name in self.page.locator("figure:visible").evaluate_all(
            "all => all.map(each => each.dataset.chart)"
        ):
            self.show(f"figure[data-chart='{name}']")


@contextmanager
def open_browser(**options):
    """A new browser with nothing in it; yields a function that makes a visit."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)

        def visit(**more):
            view = {"viewport": {"width": 1280, "height": 900}}
            return Visit(browser.new_page(**{**view, **options, **more}))

        try:
            yield visit
        finally:
            browser.close()
