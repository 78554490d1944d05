"""`concont serve` as a real process, asked by real clients."""

import http.client
import json
import re
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest
from PIL import Image

from asgi import form
from concont.answers.predict import predict_files
from concont.deploy.export import export_run
from concont.deploy.onnx_model import load_onnx
from exports import train_toy
from pictures import noise, save_image
from processes import concont, start

pytestmark = pytest.mark.slow
REQUESTS = 200


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    return export_run(train_toy(folder), folder / "model.onnx").path


@pytest.fixture(scope="module")
def images(tmp_path_factory):
    folder = tmp_path_factory.mktemp("images")
    sides = np.random.RandomState(0).randint(8, 40, (REQUESTS, 2))
    return [
        save_image(folder / f"{k}.png", noise(*size, 3, seed=k)) for k, size in enumerate(sides)
    ]


@contextmanager
def serving(model, *words):
    """A server on a free port; its process and the port."""
    process = start("serve", model, "--port", "0", *words)
    try:
        line = process.stdout.readline()
        found = re.fullmatch(rf"{model} answers at http://127\.0\.0\.1:(\d+) until Ctrl-C\n", line)
        assert found, line + process.stderr.read()
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


def post(port, body, path="/predict?top=3", kind="image/png"):
    """Status and content."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, body, {"Content-Type": kind})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def close_to(top, expected):
    """Whether the answer has the same classes with the same probabilities."""
    probs = [each["probability"] for each in top]
    return [each["label"] for each in top] == [name for name, _ in expected] and probs == (
        pytest.approx([prob for _, prob in expected], abs=1e-5)
    )


def test_many_clients_at_once_get_each_its_own_answer(model, images):
    expected = [found.top for found in predict_files(load_onnx(model), images, 3)]
    contents = [path.read_bytes() for path in images]
    with serving(model) as (process, port), ThreadPoolExecutor(REQUESTS) as clients:
        found = list(clients.map(lambda content: post(port, content), contents))
        assert [status for status, _ in found] == [200] * REQUESTS
        for (_, answer), top in zip(found, expected, strict=True):
            assert close_to(answer["predictions"][0]["top"], top)
        files = form(*((path.name, path.read_bytes()) for path in images[:10]))
        status, answer = post(port, *files[:1], kind=files[1])
        assert status == 200
        for one, path, top in zip(answer["predictions"], images, expected, strict=False):
            assert one["image"] == path.name
            assert close_to(one["top"], top)
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


def test_bad_and_huge_uploads_between_good_ones(model, images):
    good = images[0].read_bytes()
    bodies = [b"", b"no image", good[:-30], bytes(300_000), good] * 8
    with serving(model, "--max-mb", "0.2") as (process, port), ThreadPoolExecutor(16) as clients:
        found = list(clients.map(lambda body: post(port, body), bodies))
        assert [status for status, _ in found] == [400, 400, 400, 413, 200] * 8
        assert found[3][1] == {"detail": "the request has more than 0.2 MB"}
        assert post(port, good)[0] == 200
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert process.stderr.read() == ""


def test_requests_in_flight_are_answered_when_it_is_stopped(model, images):
    contents = [path.read_bytes() for path in images[:20]]
    words = ("--wait-ms", "3000", "--batch", "64")  # so that they are in flight for long
    with serving(model, *words) as (process, port), ThreadPoolExecutor(20) as clients:
        asked = [clients.submit(post, port, content) for content in contents]
        time.sleep(1.5)
        assert not any(each.done() for each in asked)
        process.send_signal(signal.SIGTERM)
        assert [each.result()[0] for each in asked] == [200] * 20
        assert process.wait(20) == 0
        assert process.stderr.read() == ""
        with pytest.raises(ConnectionError):
            post(port, contents[0])


def test_under_load_a_stop_leaves_whole_answers_or_none(model, images):
    expected = [found.top for found in predict_files(load_onnx(model), images, 3)]
    contents = [path.read_bytes() for path in images]

    def ask_until_it_stops(k):
        answered = 0
        while True:
            try:
                status, answer = post(port, contents[k])
            except (ConnectionError, http.client.HTTPException):
                return answered
            assert status == 200
            assert close_to(answer["predictions"][0]["top"], expected[k])
            answered += 1

    with serving(model) as (process, port), ThreadPoolExecutor(16) as clients:
        asked = [clients.submit(ask_until_it_stops, k) for k in range(16)]
        time.sleep(1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
        assert sum(each.result() for each in asked) > 16


def test_what_cannot_be_served_is_one_line(model, tmp_path):
    with serving(model) as (_, port):
        done = concont("serve", model, "--port", port)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.startswith(f"error: port {port} of 127.0.0.1 cannot be used: Address")
        assert done.stderr.count("\n") == 1
    (tmp_path / "text.onnx").write_text("no model")
    for words, code, message in (
        ((tmp_path / "text.onnx",), 1, "is no model that can be read"),
        ((tmp_path / "none.onnx",), 2, "no such file"),
        ((model, "--max-mb", "inf"), 2, "holds no image"),
        ((model, "--wait-ms", "1e9"), 2, "is to wait 1e+06 s for others; at most 60 s"),
    ):
        done = concont("serve", *words, "--port", "0")
        assert (done.returncode, done.stdout) == (code, "")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_picture_of_a_camera_is_fitted_as_predict_does(model, tmp_path):
    picture = Image.fromarray(noise(60, 90, 3))
    picture.save(tmp_path / "photo.jpg")
    (expected,) = predict_files(load_onnx(model), [tmp_path / "photo.jpg"], 3)
    with serving(model) as (_, port):
        status, answer = post(port, (tmp_path / "photo.jpg").read_bytes(), kind="image/jpeg")
    assert status == 200
    assert close_to(answer["predictions"][0]["top"], expected.top)
