"""How many images a second `concont serve` answers, on one machine with its clients.

    concont train --data digits --out digits && concont export digits -o digits.onnx
    python benchmarks/serving.py digits.onnx

Each client has a connection of its own and asks again as soon as it was answered.
"""

import argparse
import http.client
import io
import json
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import numpy as np
from PIL import Image

from concont.cores import count_cores
from concont.deploy.onnx_model import OnnxModel, load_onnx
from concont.errors import ConcontError

WAYS = {"one": (16, 1), "forms": (4, 32)}  # clients, and images in a request
BOUNDARY = "image"


def draw_image(model: OnnxModel) -> bytes:
    """Noise of the model's size, as PNG."""
    height, width, _ = model.shape
    pixels = np.random.RandomState(0).randint(0, 256, (height, width)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, format="png")
    return file.getvalue()


def make_request(image: bytes, count: int) -> tuple[bytes, dict[str, str]]:
    """The body and the headers of a request with so many images."""
    if count == 1:
        return image, {"Content-Type": "image/png"}
    head = b'--%b\r\nContent-Disposition: form-data; name="images"; filename="x.png"\r\n\r\n'
    part = head % BOUNDARY.encode() + image + b"\r\n"
    body = part * count + b"--%b--\r\n" % BOUNDARY.encode()
    return body, {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}


def ask(port: int, request: tuple[bytes, dict[str, str]], until: float, took: list[float]) -> None:
    """Ask again and again; what each answer took is added to the list."""
    connection = http.client.HTTPConnection("127.0.0.1", port)
    while time.monotonic() < until:
        began = time.monotonic()
        connection.request("POST", "/predict", *request)
        answer = connection.getresponse()
        answer.read()
        if answer.status != 200:
            sys.exit(f"answered with {answer.status}")
        took.append(time.monotonic() - began)


def measure(port: int, image: bytes, clients: int, count: int, seconds: float) -> dict[str, float]:
    """Images a second, and how long an answer took."""
    request, took = make_request(image, count), []
    until = time.monotonic() + seconds
    threads = [Thread(target=ask, args=(port, request, until, took)) for _ in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {
        "clients": clients,
        "images_a_request": count,
        "images_per_s": round(len(took) * count / seconds),
        "median_ms": round(1000 * statistics.median(took), 1),
    }


def measure_model(model: OnnxModel, seconds: float) -> int:
    """Images a second of the model alone, in batches of 32."""
    images, done = np.zeros((32, *model.shape), np.uint8), 0
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        model.predict(images)
        done += len(images)
    return round(done / seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--seconds", type=float, default=10)
    words = parser.parse_args()
    try:
        model = load_onnx(words.model)
    except ConcontError as error:
        print(error, file=sys.stderr)
        sys.exit(2)
    command = [sys.executable, "-m", "concont", "serve", str(words.model), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        port = int(re.search(r":(\d+) until", server.stdout.readline())[1])
        image = draw_image(model)
        measure(port, image, 4, 1, 1)  # warm
        found = {name: measure(port, image, *way, words.seconds) for name, way in WAYS.items()}
        server.terminate()
    alone = measure_model(model, words.seconds)
    print(json.dumps({"cores": count_cores(), "model_alone_images_per_s": alone, **found}))


if __name__ == "__main__":
    main()
