"""Readers of models in a file, of weights and rows for them, and of what is sent to a server."""

import asyncio
import io
import json
import shutil

import numpy as np
from PIL import Image
from safetensors.numpy import load, save
from scipy.io import savemat
from starlette.exceptions import HTTPException
from starlette.requests import Request

import concont
from concont.answers.predict import predict_files
from concont.config.start import resolve_start
from concont.data.feature_files import FEATURE_FILES, read_feature_file
from concont.data.sources import from_arrays
from concont.deploy import checksum
from concont.deploy.export import export_run
from concont.deploy.onnx_model import load_onnx
from concont.deploy.uploads import Limits, read_uploads
from concont.estimator.trained import KEY, seal
from concont.runs.folder import RunFolder
from concont.training.prepare import prepare
from exports import TEXTS, tiny_onnx
from fuzz_data import ARRAYS, IMAGES
from fuzz_reader import Reader
from fuzz_runs import SMALL, Run

SENTENCES = (
    *('"a"', "null", "[]", '["a"]', '["a", "a"]', "1e400", "-1", "{", "[" * 5000, '"\\ud800"'),
    *('["\\u001b[31m", "[/x]"]', '"\\u0000"', "9" * 5000),
)
BORDER = b"0123456789abcdef"


class Exported(Reader):
    """A model as ONNX: bytes, what it says of itself, and the shapes of its tensors."""

    name = "model.onnx"

    def prepare(self, folder):
        run = concont.train(SMALL, data=ARRAYS, out=folder / "run")
        export_run(run, folder / "good.onnx", "onnx", "MIT")
        # Without its checksum: with it, nothing spoilt would be read any further.
        self.content = (folder / "good.onnx").read_bytes()[: -checksum.SIZE]
        Image.fromarray(IMAGES[0]).save(folder / "one.png")

    def make(self, folder, draw):
        return self.content

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        path = folder / self.name
        if draw.random() < 0.7:
            return super().write_spoilt(folder, draw, spoil, spoil_values)
        texts = {name: text for name, text in TEXTS.items() if draw.random() < 0.95}
        if texts and draw.random() < 0.8:
            texts[draw.choice(list(texts))] = draw.choice(SENTENCES)
        shape = draw.choice(((8, 8, 1), (8, 8, 1), (8, 8, 3), (0, 8, 1), (8,), ()))
        classes, place = draw.choice((0, 1, 2, 2, 3)), draw.choice((None, None, "one.png", ".."))
        return tiny_onnx(path, texts, shape, classes, place)

    def read(self, path):
        model = load_onnx(path)
        model.predict(np.zeros((1, *model.shape), np.uint8))  # as `concont serve` begins
        list(predict_files(model, [path.parent / "one.png"]))


class StartWeights(Reader):
    """The weights of a run that another one starts from, in a folder that nobody has checked."""

    def prepare(self, folder):
        Run().prepare(folder)

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(folder / "good", folder / "run")
        path = folder / "run" / "model.safetensors"
        if draw.random() < 0.5:
            path.write_bytes(spoil(path.read_bytes(), draw))
        else:
            weights = load(path.read_bytes())
            name = draw.choice(list(weights))
            odd = (weights[name][None], weights[name] * np.nan, weights[name].astype("f8"))
            weights[draw.choice((name, f"{name}x"))] = draw.choice(odd)
            path.write_bytes(save({name: np.array(each) for name, each in weights.items()}))
        return folder / "run"

    def read(self, path):
        settings = resolve_start(path, {"train": {"epochs": 1}})
        prepare(settings, RunFolder(path.with_name("next")), from_arrays(ARRAYS))


class Upload(Reader):
    """What is sent to a server as a form."""

    def make(self, folder, draw):
        file = io.BytesIO()
        Image.fromarray(IMAGES[0]).save(file, "PNG")
        name = draw.choice((b"a.png", b"../a", b"\x1b[31m", b"", b"a" * 5000))
        head = b'Content-Disposition: form-data; name="x"; filename="%s"\r\n\r\n' % name
        parts = [b"--" + BORDER + b"\r\n" + head + file.getvalue() + b"\r\n"] * draw.choice((1, 3))
        return b"".join(parts) + b"--" + BORDER + b"--\r\n"

    def read(self, path):
        content = path.read_bytes()

        async def receive():
            return {"type": "http.request", "body": content}

        kind = (b"content-type", b"multipart/form-data; boundary=" + BORDER)
        request = Request({"type": "http", "headers": [kind], "app": None}, receive)
        try:
            uploads = asyncio.run(read_uploads(request, Limits(1, 2)))
        except HTTPException:  # a refusal
            return
        assert all(each.name is None or each.name.isprintable() for each in uploads)


class Features(Reader):
    """Rows of features to be labelled, in a file of each kind."""

    SIZE = 3

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        rows, file = np.arange(4.0 * self.SIZE).reshape(4, -1), io.BytesIO()
        if draw.random() < 0.3:
            odd = (rows * np.nan, rows[0], rows[:, :2], rows.astype("O"), rows > 1, rows * 1e300)
            rows = draw.choice((*odd, np.array("text")))
        ending = draw.choice(FEATURE_FILES)
        if ending == ".npy":
            np.save(file, rows)
        elif ending == ".npz":
            np.savez(file, **{draw.choice(("x_train", "x_test", "x")): rows})
        elif ending == ".mat":
            savemat(file, {draw.choice(("data", "data", "x")): rows})
        else:
            file.write("\n".join(",".join(map(str, row)) for row in np.atleast_2d(rows)).encode())
        path, content = folder / f"rows{ending}", file.getvalue()
        path.write_bytes(content if draw.random() < 0.3 else spoil(content, draw))
        return path

    def read(self, path):
        assert read_feature_file(path, self.SIZE).shape[1] == self.SIZE


class Classifier(Reader):
    """A classifier in a file: bytes, and what it says of itself."""

    name = "classifier.safetensors"

    def prepare(self, folder):
        rows = np.random.RandomState(0).rand(8, 3)
        model = concont.PartialLabelClassifier(epochs=1, random_state=1, device="cpu")
        model.fit(rows, ["a|b", "a", "b", None] * 2).save(folder / "good.safetensors")
        self.content = (folder / "good.safetensors").read_bytes()

    def make(self, folder, draw):
        return self.content

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        if draw.random() < 0.5:
            return super().write_spoilt(folder, draw, spoil, spoil_values)
        length = int.from_bytes(self.content[:8], "little")
        header = json.loads(self.content[8 : 8 + length])
        said = json.loads(header["__metadata__"][KEY].partition(" ")[2])
        text = draw.choice(SENTENCES)
        if draw.random() < 0.9:
            text = json.dumps(spoil_values(said, draw))
        header["__metadata__"][KEY] = seal(text, load(self.content))
        start = json.dumps(header).encode()
        path = folder / self.name
        path.write_bytes(len(start).to_bytes(8, "little") + start + self.content[8 + length :])
        return path

    def read(self, path):
        try:
            found = concont.PartialLabelClassifier.load(path, device="cpu")
        except ValueError:  # what scikit-learn's users expect of a refusal
            return
        found.predict(np.zeros((2, found.n_features_in_)))
