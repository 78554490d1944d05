"""`concont serve`."""

from pathlib import Path
from typing import Annotated

import typer

from concont.cli.app import Device, app
from concont.errors import UsageError, printable


@app.command()
def serve(
    model: Annotated[Path, typer.Argument(help="An ONNX file of `concont export`.")],
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port; 0: one that is free.")
    ] = 8000,
    max_mb: Annotated[float, typer.Option(min=0.001, help="Megabytes of a request.")] = 10,
    max_images: Annotated[int, typer.Option(min=1, help="Images of a request.")] = 64,
    batch: Annotated[int, typer.Option(min=1, help="Images computed at once.")] = 32,
    wait_ms: Annotated[float, typer.Option(min=0, help="How long an image waits for others.")] = 5,
    device: Annotated[Device, typer.Option(help="The GPU where there is one.")] = Device.AUTO,
) -> None:
    """Answer POST /predict with labels for image files, over HTTP, until it is stopped."""
    import numpy as np
    import python_multipart  # noqa: F401  (else it is missed at the first form)

    from concont.deploy.onnx_model import load_onnx
    from concont.deploy.server import Service, make_app, open_port
    from concont.deploy.server import serve as run_server
    from concont.deploy.uploads import Limits

    loaded = load_onnx(model, device)
    if len(loaded.shape) == 1:
        raise UsageError("this model labels rows of features, not image files: concont predict")
    loaded.predict(np.zeros((1, *loaded.shape), np.uint8))  # what fails fails before the first user
    service = Service(loaded, Limits(max_mb, max_images), batch, wait_ms / 1000)
    listening = open_port(host, port)
    address, number = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    typer.echo(f"{printable(model)} answers at http://{shown}:{number} until Ctrl-C")
    run_server(make_app(service), listening)
