import asyncio

import pytest
from starlette.exceptions import HTTPException
from starlette.requests import Request

from asgi import form
from concont.deploy.uploads import DISCARDED, Limits, Upload, read_uploads
from concont.errors import UsageError


def read(body, kind="image/png", chunk=100, **limits):
    """What was read, and how much of the body was taken."""
    chunks = [body[k : k + chunk] for k in range(0, len(body), chunk)] or [b""]
    taken = []

    async def receive():
        taken.append(chunks.pop(0))
        return {"type": "http.request", "body": taken[-1], "more_body": bool(chunks)}

    headers = [(b"content-type", kind.encode())]
    scope = {"type": "http", "method": "POST", "headers": headers, "app": None}
    try:
        found = asyncio.run(read_uploads(Request(scope, receive), Limits(**limits)))
    except HTTPException as error:
        found = error
    return found, sum(map(len, taken))


def test_a_body_and_a_form():
    assert read(b"abc")[0] == [Upload(None, b"abc")]
    large = bytes(range(256)) * 8000  # kept on disk until it is read
    files = form(("a", b"one"), ("b\x1b", large))
    assert read(*files)[0] == [Upload("a", b"one"), Upload("b\\x1b", large)]


def test_a_body_of_just_as_many_bytes_as_there_may_be():
    assert read(bytes(2000), megabytes=0.002)[0] == [Upload(None, bytes(2000))]
    found, taken = read(bytes(2001), megabytes=0.002)
    assert (found.status_code, taken) == (413, 2001)


def test_the_rest_of_a_large_body_is_read_within_reason_and_not_kept():
    found, taken = read(bytes(10_000), megabytes=0.001)
    assert (found.status_code, taken) == (413, 10_000)
    found, taken = read(bytes(1_000_000), megabytes=0.001)
    assert found.status_code == 413
    assert DISCARDED * 1000 <= taken < DISCARDED * 1000 + 2000


def test_as_many_images_as_there_may_be():
    files = [(f"{k}", b"x") for k in range(4)]
    assert len(read(*form(*files), images=4)[0]) == 4
    found, _ = read(*form(*files), images=3)
    assert (found.status_code, found.detail) == (413, "more than 3 images in one request")


@pytest.mark.parametrize("megabytes", [0, -1, float("nan"), float("inf")])
def test_a_limit_that_is_none_is_refused(megabytes):
    with pytest.raises(UsageError, match="holds no image"):
        Limits(megabytes)
