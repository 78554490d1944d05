"""The images of a request, within limits: as files of a form, or as the body itself."""

import math
from dataclasses import dataclass

from starlette.datastructures import UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.types import Message, Receive

from concont.errors import UsageError, printable

DISCARDED = 64  # how many times the limit is read of a request that is refused


@dataclass(frozen=True)
class Limits:
    """What one request may hold."""

    megabytes: float = 10
    images: int = 64

    def __post_init__(self) -> None:
        if not 0 < self.megabytes < math.inf:
            raise UsageError(f"a request of {self.megabytes:g} MB holds no image")

    @property
    def bytes(self) -> int:
        """The same as `megabytes`."""
        return int(self.megabytes * 1e6)


@dataclass(frozen=True)
class Upload:
    """An image file as it came."""

    name: str | None  # as it can be printed; None: it was the body
    content: bytes


async def read_uploads(request: Request, limits: Limits) -> list[Upload]:
    """The images of a request; an HTTPException of status 413 or 400 if they cannot be taken."""
    limited = Request(request.scope, _limit(request.receive, limits))
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        found = await _read_form(limited, limits)
    else:
        found = [Upload(None, await limited.body())]
    if not found:
        raise HTTPException(400, "the form holds no file; send images as its files")
    return found


async def _read_form(request: Request, limits: Limits) -> list[Upload]:
    try:
        async with request.form(max_files=limits.images, max_fields=limits.images) as form:
            files = [item for _, item in form.multi_items() if isinstance(item, UploadFile)]
            return [Upload(printable(file.filename), await file.read()) for file in files]
    except HTTPException as error:
        if str(error.detail).startswith("Too many files"):
            detail = f"more than {limits.images} images in one request"
            raise HTTPException(413, detail) from None
        raise


def _limit(receive: Receive, limits: Limits) -> Receive:
    """The same messages, until they hold too many bytes."""
    seen = 0

    async def receive_limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > limits.bytes:
            await _discard(receive, message, DISCARDED * limits.bytes)
            raise HTTPException(413, f"the request has more than {limits.megabytes:g} MB")
        return message

    return receive_limited


async def _discard(receive: Receive, message: Message, most: int) -> None:
    """Read on, for who is still sending does not hear an answer yet; keep nothing."""
    while message.get("more_body") and most > 0:
        message = await receive()
        most -= len(message.get("body", b""))
