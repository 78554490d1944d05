"""An exported model behind HTTP: images in, labels with probabilities out, as JSON."""

import asyncio
import html
import os
import signal
import socket
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Annotated, Any

import numpy as np
import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse
from numpy.typing import NDArray

from concont import version
from concont.answers.predict import Labeler, describe_top, rank
from concont.deploy.batching import Batcher
from concont.deploy.uploads import Limits, Upload, read_uploads
from concont.errors import ConcontError, DataError, printable
from concont.images.files import decode_image

CONNECTIONS = 256  # at once; more are answered with 503
PATIENCE = 30  # seconds that a stop waits for requests in flight
PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>concont</title>
<style>body {{ font: 16px sans-serif; max-width: 40em; margin: 3em auto }}</style>
<h1>Which of {count} classes?</h1>
<form action="/predict?top={top}" method="post" enctype="multipart/form-data">
<input type="file" name="images" accept="image/*" multiple required> <button>Ask</button>
</form>
<p>Classes: {classes}</p>
<p>In programs: POST /predict, GET /health; described by <a href="/openapi.json">OpenAPI</a>.</p>
"""
BODY = {  # for OpenAPI, since the body is read by hand
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "images": {"type": "array", "items": {"type": "string", "format": "binary"}}
                    },
                }
            },
            "image/*": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}
HEADERS = {  # the page loads nothing, from here or from elsewhere
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
    "X-Content-Type-Options": "nosniff",
}


@dataclass(frozen=True)
class Bad:
    """Why an upload is no image that can be read."""

    reason: str


class Service:
    """What the server answers."""

    def __init__(self, model: Labeler, limits: Limits, batch: int, wait: float) -> None:
        self.model, self.limits = model, limits
        self.batcher = Batcher(model.predict_proba, batch, wait)
        # One thread: Python's warnings, which turn vast images into errors, are the process's own.
        self.decoder = ThreadPoolExecutor(1, "decoder")

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """Compute batches from the start to the end of the server."""
        running = asyncio.create_task(self.batcher.run())
        yield
        running.cancel()
        self.batcher.close()
        self.decoder.shutdown()

    async def predict(
        self, request: Request, top: Annotated[int, Query(ge=1, description="Classes to name.")] = 1
    ) -> JSONResponse:
        """Label the image files of a form, or the image that is the body.

        Status 400 where one of them cannot be read: its `error` says why, the others are labelled.
        """
        if top > len(self.model.classes):
            detail = f"top is {top}; it must be 1 to {len(self.model.classes)}"
            raise HTTPException(400, detail)
        uploads = await read_uploads(request, self.limits)
        images = [await self._decode(upload) for upload in uploads]
        good = [image for image in images if not isinstance(image, Bad)]
        answers = iter(await self.batcher.ask(good))
        found = [
            {"error": image.reason}
            if isinstance(image, Bad)
            else describe_top(rank(self.model.classes, next(answers), top))
            for image in images
        ]
        named = [{"image": each.name, **one} for each, one in zip(uploads, found, strict=True)]
        return _answer(named, len(images) - len(good))

    async def health(self) -> dict[str, Any]:
        """Whether it is ready, and for what."""
        height, width, channels = self.model.shape
        return {
            "status": "ready",
            "classes": list(self.model.classes),
            "image": {"height": height, "width": width, "channels": channels},
            "version": version.__version__,
        }

    async def page(self) -> HTMLResponse:
        """A form to try it."""
        classes = self.model.classes
        text = PAGE.format(
            count=len(classes),
            top=min(3, len(classes)),
            classes=html.escape(", ".join(map(printable, classes))),
        )
        return HTMLResponse(text, headers=HEADERS)

    async def _decode(self, upload: Upload) -> NDArray[np.uint8] | Bad:
        if not upload.content:
            return Bad("the file is empty")
        height, width, channels = self.model.shape
        wanted = (upload.content, (height, width), channels, self.model.fit)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self.decoder, decode_image, *wanted)
        except DataError as error:
            return Bad(str(error))


def make_app(service: Service) -> FastAPI:
    """The service with its paths; without the pages of documentation, which load from elsewhere."""
    app = FastAPI(
        title="concont",
        version=version.__version__,
        lifespan=service.lifespan,
        docs_url=None,
        redoc_url=None,
    )
    app.add_exception_handler(ConcontError, _tell)
    app.add_api_route("/predict", service.predict, methods=["POST"], openapi_extra=BODY)
    app.add_api_route("/health", service.health)
    app.add_api_route("/", service.page, response_class=HTMLResponse, include_in_schema=False)
    return app


def open_port(host: str, port: int) -> socket.socket:
    """Listen there; a ConcontError where that cannot be."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family, backlog=2 * CONNECTIONS)
    except OSError as error:
        name = isinstance(error, socket.gaierror)  # whose numbers are no system's errors
        reason = error.strerror if name or error.errno is None else os.strerror(error.errno)
        raise ConcontError(f"port {port} of {printable(host)} cannot be used: {reason}") from None


def serve(app: FastAPI, listening: socket.socket) -> None:
    """Answer until SIGTERM or Ctrl-C, and then whoever has asked already."""
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            server_header=False,
            limit_concurrency=CONNECTIONS,
            timeout_graceful_shutdown=PATIENCE,
        )
    )

    def stop(number: int, frame: FrameType | None) -> None:
        server.should_exit = True

    for number in (signal.SIGINT, signal.SIGTERM):  # the server raises them again when it has ended
        signal.signal(number, stop)
    server.run(sockets=[listening])


def _tell(request: Request, error: Exception) -> JSONResponse:
    """A model that fails is the server's fault, said as every other fault."""
    return JSONResponse({"detail": str(error)}, status_code=500)


def _answer(predictions: list[dict[str, Any]], bad: int) -> JSONResponse:
    if not bad:
        return JSONResponse({"predictions": predictions})
    detail = f"{bad} of {len(predictions)} images could not be read"
    return JSONResponse({"detail": detail, "predictions": predictions}, status_code=400)
