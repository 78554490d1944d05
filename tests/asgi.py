"""A web application asked without a network, as a server would ask it."""

import asyncio
import json


def ask(app, lifespan, *requests):
    """The (status, content) of each (method, path, body, content type), all asked at once."""

    async def whole():
        async with lifespan(app):
            return await asyncio.gather(*(_ask(app, *each) for each in requests))

    return asyncio.run(whole())


def form(*files, kind="multipart/form-data; boundary=B"):
    """Body and content type of a form with these (name, content)."""
    parts = [
        b'--B\r\nContent-Disposition: form-data; name="images"; filename="%b"\r\n\r\n%b\r\n'
        % (name if isinstance(name, bytes) else name.encode(), content)
        for name, content in files
    ]
    return b"".join([*parts, b"--B--\r\n"]), kind


async def _ask(app, method, path, body=b"", kind="application/octet-stream"):
    path, _, query = path.partition("?")
    scope = {
        **{"type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1"},
        **{"method": method, "path": path, "raw_path": path.encode(), "root_path": ""},
        **{"query_string": query.encode(), "scheme": "http", "server": ("test", 80)},
        "headers": [(b"content-type", kind.encode())],
    }
    chunks = [body[k : k + 1000] for k in range(0, len(body), 1000)] or [b""]
    sent = []

    async def receive():
        if not chunks:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    content = b"".join(message.get("body", b"") for message in sent).decode()
    try:
        return sent[0]["status"], json.loads(content)
    except ValueError:
        return sent[0]["status"], content
