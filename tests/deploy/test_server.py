import io
import re
import socket

import numpy as np
import pytest
from PIL import Image

from asgi import ask, form
from concont.deploy.server import Service, make_app, open_port
from concont.deploy.uploads import Limits
from concont.errors import ConcontError, DataError
from pictures import noise, vast_png


class Brightness:
    """Knows dark images from bright ones."""

    classes, shape, fit, gives_probabilities = ("dark", "<b>bright"), (4, 4, 1), "stretch", True

    def predict_proba(self, images):
        bright = images.reshape(len(images), -1).mean(axis=1) / 255
        return np.stack([1 - bright, bright], axis=1).astype(np.float32)

    def predict(self, images):
        return self.predict_proba(images).argmax(axis=1)


class Broken(Brightness):
    """Cannot be run."""

    def predict_proba(self, images):
        raise DataError("the model cannot be run: no memory")


def png(value, side=4):
    file = io.BytesIO()
    Image.new("L", (side, side), value).save(file, format="png")
    return file.getvalue()


def serve(*requests, model=None, **limits):
    service = Service(model or Brightness(), Limits(**limits), batch=8, wait=0.01)
    return ask(make_app(service), service.lifespan, *requests)


def post(body, kind="image/png", path="/predict"):
    return ("POST", path, body, kind)


def test_a_body_is_an_image():
    ((status, found),) = serve(post(png(255)))
    assert status == 200
    label = {"label": "<b>bright", "probability": 1.0}
    assert found == {"predictions": [{"image": None, **label, "top": [label]}]}


def test_the_files_of_a_form_are_images_in_their_order():
    body, kind = form(("a.png", png(255)), ("b.png", png(0)), ("ü.png", png(51, side=9)))
    ((status, found),) = serve(post(body, kind, "/predict?top=2"))
    assert status == 200
    assert [(one["image"], one["label"]) for one in found["predictions"]] == [
        ("a.png", "<b>bright"),
        ("b.png", "dark"),
        ("ü.png", "dark"),
    ]
    assert [each["probability"] for each in found["predictions"][2]["top"]] == [0.8, 0.2]


def test_a_bad_image_spoils_neither_its_request_nor_others_at_the_same_time():
    good, cut = png(255), noise_png()[:-30]
    body, kind = form(("a.png", good), ("b.png", b"no image"), ("c.png", cut), ("d.png", b""))
    others = [post(png(0)) for _ in range(20)]
    (status, found), *rest = serve(post(body, kind), *others)
    assert status == 400
    assert found["detail"] == "3 of 4 images could not be read"
    first, *bad = found["predictions"]
    assert (first["image"], first["label"]) == ("a.png", "<b>bright")
    assert [one["image"] for one in bad] == ["b.png", "c.png", "d.png"]
    assert bad[0]["error"] == "not an image that can be read"
    assert "truncated" in bad[1]["error"]
    assert bad[2]["error"] == "the file is empty"
    assert [(status, got["predictions"][0]["label"]) for status, got in rest] == [
        (200, "dark")
    ] * 20


def noise_png():
    file = io.BytesIO()
    Image.fromarray(noise(20, 20)).save(file, format="png")
    return file.getvalue()


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "the file is empty"),
        (b"GIF89a", "not an image"),
        (vast_png(10_000, 10_000), "decompression bomb"),
        (vast_png(60_000, 60_000), "decompression bomb"),
    ],
)
def test_what_is_no_image_is_a_bad_request(body, reason):
    ((status, found),) = serve(post(body))
    assert status == 400
    assert reason in found["predictions"][0]["error"]


def test_too_many_bytes_images_or_classes_are_refused():
    many, kind = form(*((f"{k}.png", png(0)) for k in range(3)))
    large = bytes(3000)
    found = serve(
        *(post(large), post(*form(("a.png", large))), post(many, kind)),
        post(png(0), path="/predict?top=3"),
        post(png(0), path="/predict?top=0"),
        post(*form()),
        post(b"--B\r\nno form", "multipart/form-data; boundary=B"),
        post(b"", "multipart/form-data"),
        megabytes=0.002,
        images=2,
    )
    assert [status for status, _ in found] == [413, 413, 413, 400, 422, 400, 400, 400]
    details = [content["detail"] for _, content in found]
    assert details[0] == details[1] == "the request has more than 0.002 MB"
    assert details[2] == "more than 2 images in one request"
    assert details[3] == "top is 3; it must be 1 to 2"
    assert details[5] == "the form holds no file; send images as its files"


def test_a_name_of_no_letters_is_told_as_it_can_be_printed():
    body, kind = form((rb"\ud800\x1b", png(0)))
    ((status, found),) = serve(post(body, f"{kind}; charset=unicode_escape"))
    assert status == 200
    assert found["predictions"][0]["image"].isprintable()


def test_a_model_that_fails_says_so():
    ((status, found),) = serve(post(png(0)), model=Broken())
    assert (status, found) == (500, {"detail": "the model cannot be run: no memory"})


def test_health_says_for_what_it_is_ready():
    ((status, found),) = serve(("GET", "/health"))
    assert status == 200
    assert (found["status"], found["classes"]) == ("ready", ["dark", "<b>bright"])
    assert found["image"] == {"height": 4, "width": 4, "channels": 1}


def test_the_page_loads_nothing_and_escapes_names():
    (status, page), (_, api), *rest = serve(
        *(("GET", path) for path in ("/", "/openapi.json", "/docs", "/redoc"))
    )
    assert status == 200
    assert "dark, &lt;b&gt;bright" in page
    assert not re.search(r'(?:src|href)="(?!/)|//|<b>|<script', page)
    assert "multipart/form-data" in api["paths"]["/predict"]["post"]["requestBody"]["content"]
    assert [status for status, _ in rest] == [404, 404]


def test_a_port_in_use_or_a_host_that_is_none_is_one_line():
    with open_port("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(
            ConcontError, match=f"port {port} of 127.0.0.1 cannot be used: Addr"
        ) as e:
            open_port("127.0.0.1", port)
        assert "\n" not in str(e.value)
    with pytest.raises(ConcontError, match="port 80 of nosuch.invalid cannot be used: "):
        open_port("nosuch.invalid", 80)


@pytest.mark.skipif(not socket.has_ipv6, reason="no IPv6 here")
def test_another_family_of_addresses():
    try:
        with open_port("::1", 0) as listening:
            assert listening.family == socket.AF_INET6
    except ConcontError:
        pytest.skip("no IPv6 here")
