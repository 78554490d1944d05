"""A small server, for this machine alone, of a page that follows runs while they train.

It answers two addresses from memory and knows no others, so that no request can name a file.
"""

import errno
import json
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from concont.errors import ConcontError
from concont.report.page import Page, render, render_part
from concont.report.watched import Watch
from concont.types import Plain

HOME = "127.0.0.1"
FRESH = 1.0  # seconds for which what was read last is good enough
DIGITS = 18  # of a version; milliseconds since 1970 have 13
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


class Changes:
    """Named parts of a page, each with the version in which it last changed."""

    def __init__(self) -> None:
        self.version = int(1000 * time.time())  # beyond those of a server that ran before
        self._parts: dict[str, tuple[int, str]] = {}

    def update(self, parts: Plain) -> None:
        """Take in what the parts are now; those that are gone are forgotten."""
        texts = {name: json.dumps(content) for name, content in parts.items()}
        before = {name: text for name, (_, text) in self._parts.items()}
        if texts != before:
            self.version += 1
        self._parts = {
            name: self._parts[name] if before.get(name) == text else (self.version, text)
            for name, text in texts.items()
        }

    def tell_since(self, version: int) -> str:
        """JSON: the version now, and the parts that have changed after that one."""
        newer = {name: text for name, (when, text) in self._parts.items() if when > version}
        inside = ", ".join(f"{json.dumps(name)}: {text}" for name, text in newer.items())
        return f'{{"version": {self.version}, "parts": {{{inside}}}}}'


class LivePage:
    """The page of a watch, made anew when it is asked for and older than a second."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.changes = watch, Changes()
        self._page: Page | None = None
        self._made = 0.0
        self._lock = threading.Lock()  # requests come in threads of their own

    def render(self) -> str:
        """The whole page as HTML."""
        with self._lock:
            page = self._refresh()
            return render(page, self.changes.version)

    def tell_since(self, version: int) -> str:
        """JSON of what has changed after a version of it."""
        with self._lock:
            self._refresh()
            return self.changes.tell_since(version)

    def _refresh(self) -> Page:
        if self._page is None or time.monotonic() - self._made >= FRESH:
            self._page = self.watch.make_page()
            self.changes.update(split(self._page))
            self._made = time.monotonic()
        return self._page


def split(page: Page) -> Plain:
    """The parts of a page that may change, by the names under which its script knows them."""
    charts = page.charts
    return {
        "html/summary": render_part("summary", page),
        "html/origin": render_part("origin", page),
        "runs": [run.name for run in page.runs],
        "shared": charts["shared"],
        **{f"run/{name}": own for name, own in charts["runs"].items()},
    }


class PageServer(ThreadingHTTPServer):
    """Serves one live page on this machine's own address."""

    daemon_threads = True

    def __init__(self, page: LivePage, port: int) -> None:
        self.page = page
        try:
            super().__init__((HOME, port), Handler)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            raise ConcontError(f"port {port} is in use; choose another with --port") from None
        self.hosts = {f"{name}:{self.server_port}" for name in (HOME, "localhost")}

    @property
    def url(self) -> str:
        """Where a browser finds the page."""
        return f"http://{HOME}:{self.server_port}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that went away is no error; anything else is told in a line."""
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"a request failed: {type(error).__name__}: {error}", file=sys.stderr)


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD of the page and of what has changed; of nothing else."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "concont", ""
    timeout = 30  # seconds for which a silent connection is kept

    def do_GET(self) -> None:
        """The page, or what has changed since a version of it."""
        # A name that leads here from elsewhere (DNS rebinding) is not ours.
        if self.headers.get("Host", "").lower() not in self.server.hosts:
            self._answer(HTTPStatus.FORBIDDEN, "this page is for this machine alone", "text/plain")
            return
        address = urlsplit(self.path)
        if address.path == "/":
            self._answer(HTTPStatus.OK, self.server.page.render(), "text/html")
        elif address.path == "/state.json":
            version = _read_version(address.query)
            self._answer(HTTPStatus.OK, self.server.page.tell_since(version), "application/json")
        else:
            self._answer(HTTPStatus.NOT_FOUND, "there is nothing here", "text/plain")

    do_HEAD = do_GET

    def log_message(self, format: str, *values: Any) -> None:
        """Say nothing of each request."""

    def _answer(self, status: HTTPStatus, text: str, kind: str) -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def _read_version(query: str) -> int:
    """The version that a page has; 0, which is before all, where it names none."""
    given = parse_qs(query).get("since", ["0"])[0]
    return int(given) if given.isdecimal() and len(given) <= DIGITS else 0
