"""The readers of files from outside, a good file for each, and how its values can be spoilt."""

import io
import json
import pickle
import shutil
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import torch
import yaml
from PIL import Image
from scipy.io import savemat

import concont
from concont.answers.predict import predict_files
from concont.classic.features import compute_features
from concont.config.resolve import parse_assignments, read_settings, resolve
from concont.data.candidate_file import CandidateSets, read_candidate_sets
from concont.data.own_data import load_labelled_images, measure_data
from concont.data.pickled_arrays import unpickle_arrays
from concont.data.sources import load
from concont.images.files import read_image, read_size, verify_image
from concont.images.packs import Form, open_pack
from concont.runs.folder import RunFolder
from concont.runs.settings import Data
from concont.sweep.ledger import Ledger
from concont.sweep.merge import collect_records
from concont.sweep.record import key_of, of_run
from concont.sweep.sweep_file import read_jobs
from concont.tables.add_votes import add_votes
from concont.tables.agreement import measure_agreement
from concont.tables.check import check_table
from concont.tables.problems import Problems
from concont.tables.table import read_images_table
from concont.tables.votes import choose_candidates, count_votes, read_votes
from concont.training import checkpoint

CPU = torch.device("cpu")
IMAGES = np.random.RandomState(0).randint(0, 255, (12, 8, 8), np.uint8)
LABELS = np.arange(12) % 3
SETS = np.eye(3, dtype=bool)[LABELS]
ARRAYS = {
    **{"x_train": IMAGES, "y_train": LABELS, "candidates": SETS, "x_test": IMAGES[:4]},
    **{"y_test": LABELS[:4], "classes": np.array(["a", "b", "c"])},
}
DTYPES = ("u1", "<i8", ">i4", "f4", "f8", "?", "U3", "S2", "M8[s]", "c8", "u1,f4", "V0")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO")


class Reader:
    """Files of one kind: a good one, how it is spoilt, and what reads it."""

    name = "file"

    def prepare(self, folder):
        """Write what stands beside the file."""

    def make(self, folder, draw):
        """The bytes of a good file."""
        raise NotImplementedError

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        """A spoilt file in the folder; returns where."""
        path = folder / self.name
        path.write_bytes(spoil(self.make(folder, draw), draw))
        return path

    def read(self, path):
        """Read it as the package does."""
        raise NotImplementedError


class Tree(Reader):
    """JSON or YAML: spoilt as bytes, or value by value."""

    yaml = False

    def good(self, folder, draw):
        """Nested values of a good file."""
        raise NotImplementedError

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        tree, path = self.good(folder, draw), folder / self.name
        whole = draw.random() < 0.6
        tree = spoil_values(tree, draw) if whole else tree
        text = (yaml.safe_dump if self.yaml else json.dumps)(tree).encode("utf-8", "replace")
        path.write_bytes(text if whole else spoil(text, draw))
        return path


def make_table(draw):
    """Rows of a table of images, some of them odd."""
    rows = [["image", "candidates", "votes", "label", "split"]]
    for k in range(8):
        split, label = ("test", "a") if k == 7 else ("", draw.choice("abc"))
        rows.append([f"{k}.png", "a|b" if k % 2 else "c", "2|1" if k % 2 else "1", label, split])
    return rows


class Table(Reader):
    """A table of candidate sets."""

    name = "table.csv"

    def prepare(self, folder):
        for k in range(8):
            Image.fromarray(IMAGES[k]).save(folder / f"{k}.png")

    def make(self, folder, draw):
        return "\n".join(",".join(row) for row in make_table(draw)).encode()

    def read(self, path):
        check_table(path, decode=False)
        read_images_table(path)


class Parquet(Table):
    """The same as Parquet."""

    name = "table.parquet"

    def make(self, folder, draw):
        names, *rows = make_table(draw)
        columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
        if draw.random() < 0.3:
            columns["candidates"] = [cell.split("|") for cell in columns["candidates"]]
        file = io.BytesIO()
        pa.parquet.write_table(pa.table(columns), file)
        return file.getvalue()


class Votes(Table):
    """Annotators' votes, long or wide."""

    name = "votes.csv"

    def make(self, folder, draw):
        rows = ["image,annotator,label"]
        rows += [f"{k}.png,{who},{draw.choice('abc')}" for k in range(8) for who in ("x", "y")]
        if draw.random() < 0.3:
            rows = ["image,x,y", *(f"{k}.png,a,{draw.choice('ab')}" for k in range(8))]
        return "\n".join(rows).encode()

    def read(self, path):
        votes = read_votes(path, path.parent, Problems())
        measure_agreement(votes, choose_candidates(count_votes(votes), 1))


class Labels(Votes):
    """A sheet that comes back with answers."""

    def prepare(self, folder):
        super().prepare(folder)
        (folder / "t.csv").write_text("image,candidates\n0.png,a|b\n1.png,b\n2.png,c\n")

    def read(self, path):
        add_votes(path.parent / "t.csv", path, Problems(), path.parent, 1, replace=False)


class Truth(Table):
    """A table of labels to measure on."""

    def read(self, path):
        load_labelled_images(Data(str(path), image_size=8), ("a", "b", "c"))


class Npz(Reader):
    """Arrays of every kind, and their files spoilt."""

    name = "x.npz"

    def make(self, folder, draw):
        arrays = {name: array for name, array in ARRAYS.items() if draw.random() < 0.9}
        if draw.random() < 0.5:
            name = draw.choice([*ARRAYS, "X_train", "more", "\x1b"])
            shape = tuple(draw.choice((0, 1, 2, 3, 12)) for _ in range(draw.randrange(5)))
            arrays[name] = np.zeros(shape, draw.choice(DTYPES))
        elif draw.random() < 0.5 and "y_train" in arrays:
            odd = draw.choice((-2, 255, 10**9, 2**62, 3))
            arrays["y_train"] = np.where(np.arange(12) == 5, odd, LABELS)
        file = io.BytesIO()
        draw.choice((np.savez, np.savez_compressed))(file, **arrays)
        return file.getvalue()

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        content, path = self.make(folder, draw), folder / self.name
        path.write_bytes(content if draw.random() < 0.3 else spoil(content, draw))
        return path

    def read(self, path):
        measure_data(Data(str(path)))
        load(str(path))


class Mat(Npz):
    """MATLAB's files."""

    name = "x.mat"

    def make(self, folder, draw):
        content = {"data": IMAGES.reshape(12, -1) / 7, "partial_target": SETS.T * 1.0}
        content["target"] = SETS.T * 1
        if draw.random() < 0.4:
            shape = tuple(draw.choice((0, 1, 3, 12)) for _ in range(draw.choice((1, 2, 3))))
            odd = draw.choice((np.zeros(shape), "text", {"a": 1}, np.array([["a"]], dtype=object)))
            content[draw.choice(("data", "partial_target", "target", "more"))] = odd
        file = io.BytesIO()
        savemat(file, content, do_compression=draw.random() < 0.5)
        return file.getvalue()

    def read(self, path):
        load(str(path))


class Sets(Npz):
    """A file of candidate sets."""

    name = "sets.npz"

    def prepare(self, folder):
        CandidateSets(LABELS > 0, SETS, "digest").write(folder / "good.npz")

    def make(self, folder, draw):
        if draw.random() < 0.3:
            file, odd = io.BytesIO(), np.zeros((2, 2), draw.choice(DTYPES))
            arrays = {"labeled": LABELS > 0, "candidates": SETS, "data": "x", "hash": "y"}
            np.savez(file, **{**arrays, draw.choice(list(arrays)): odd})
            return file.getvalue()
        return (folder / "good.npz").read_bytes()

    def read(self, path):
        read_candidate_sets(path)


class Cifar(Reader):
    """A pickle of arrays."""

    name = "data_batch_1"

    def make(self, folder, draw):
        content = {b"data": IMAGES.reshape(12, -1), b"labels": LABELS.tolist(), b"x": b"y" * 9}
        return pickle.dumps(content, draw.choice((3, 4)))

    def read(self, path):
        unpickle_arrays(path)


class ImageFile(Reader):
    """Images of several formats."""

    name = "image"

    def make(self, folder, draw):
        file = io.BytesIO()
        mode = draw.choice(("L", "RGB"))
        pixels = np.repeat(np.repeat(IMAGES[0], 4, 0), 4, 1)
        image = Image.fromarray(pixels).convert(mode)
        image.save(file, draw.choice(FORMATS))
        return file.getvalue()

    def read(self, path):
        verify_image(path)
        for work in (read_size, partial(read_image, size=(9, 7), channels=3, fit="pad")):
            try:
                work(path)
            except concont.errors.ConcontError:
                continue


class Recipe(Tree):
    """A recipe."""

    name, yaml = "recipe.yaml", True

    def good(self, folder, draw):
        settings = resolve({"data": {"source": "digits"}}).as_dict()
        del settings["recipe"]
        if draw.random() < 0.3:
            settings["extends"] = draw.choice(("digits", "recipe.yaml", "none", ".."))
        return settings

    def read(self, path):
        resolve({"data": {"source": "digits"}}, recipe=str(path))


class Config(Recipe):
    """A run's own settings."""

    def good(self, folder, draw):
        return resolve({"data": {"source": "digits"}}, recipe="digits").as_dict()

    def read(self, path):
        read_settings(path).hash("x", "y")


class Sweep(Tree):
    """A sweep's file."""

    name, yaml = "sweep.yaml", True

    def good(self, folder, draw):
        axes = {"method.threshold": [0.7, 0.8], "train.partial_share": [None, 0.25]}
        base = {"recipe": "digits", "train": {"epochs": 3}}
        return {"base": base, "axes": axes, "seeds": [1, 2], "runs": [{"name": "a"}, {}]}

    def read(self, path):
        read_jobs(path)


class Assignment(Reader):
    """`--set` on the command line."""

    def make(self, folder, draw):
        section, values = draw.choice(
            list(resolve({"data": {"source": "digits"}}).as_dict().items())[1:]
        )
        name, value = draw.choice(list(values.items()))
        return f"{section}.{name}={json.dumps(value)}".encode()

    def read(self, path):
        text = path.read_text("utf-8", "replace")
        parse_assignments([text])
        resolve({"data": {"source": "digits"}}, assignments=[text])


class Run(Reader):
    """A run folder, one of whose files is spoilt."""

    parts = ("config.yaml", "data.json", "summary.json", "model.safetensors")

    def prepare(self, folder):
        small = {"name": "small", "width": 2, "hidden": 4, "embedding": 4}
        train = {"epochs": 2, "batch_size": 6, "device": "cpu", "checkpoint_every": 0}
        config = {"model": small, "method": {"queue": 8}, "train": train}
        concont.train(config, data=ARRAYS, out=folder / "good")

    def write_spoilt(self, folder, draw, spoil, spoil_values):
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(folder / "good", folder / "run")
        path = folder / "run" / draw.choice(self.parts)
        content = path.read_bytes()
        if path.suffix == ".json" and draw.random() < 0.6:
            path.write_text(json.dumps(spoil_values(json.loads(content), draw)))
        elif path.suffix == ".yaml" and draw.random() < 0.6:
            tree = spoil_values(yaml.safe_load(content), draw)
            path.write_text(yaml.safe_dump(tree), "utf-8", "replace")
        else:
            path.write_bytes(spoil(content, draw))
        return folder / "run"

    def read(self, path):
        run = concont.load(path)
        run.predict_proba(IMAGES[:2])
        list(predict_files(run, []))


class Weights(Run):
    """Its weights alone."""

    parts = ("model.safetensors",)


class Checkpoint(Run):
    """Its checkpoint."""

    parts = ("checkpoint.pt",)

    def read(self, path):
        checkpoint.load(RunFolder(path), CPU)


class RunRecord(Run):
    """A run that becomes a record."""

    parts = ("config.yaml", "data.json", "summary.json", "metrics.jsonl", "environment.json")

    def read(self, path):
        key_of(of_run(RunFolder(path)))


class Record(Tree):
    """A record from elsewhere, on its way into a ledger and the tables."""

    name = "record.json"

    def prepare(self, folder):
        Run().prepare(folder)
        self.record = of_run(RunFolder(folder / "good"))

    def good(self, folder, draw):
        return self.record if draw.random() < 0.5 else [self.record]

    def read(self, path):
        from concont.paper.comparison import own_rows
        from concont.paper.plan import cells_of
        from concont.sweep.groups import group_records

        ledger = Ledger(path.parent / "ledger.sqlite")
        ledger.path.unlink(missing_ok=True)
        ledger.add(collect_records(path))
        records = ledger.records()
        group_records(records, ["method.threshold"])
        own_rows(cells_of("table4"), records)


class LedgerFile(Reader):
    """A ledger's file."""

    name = "ledger.sqlite"

    def prepare(self, folder):
        Run().prepare(folder)
        Ledger(folder / "good.sqlite").add([of_run(RunFolder(folder / "good"))])

    def make(self, folder, draw):
        return (folder / "good.sqlite").read_bytes()

    def read(self, path):
        for end in ("-wal", "-journal", "-shm"):
            path.with_name(path.name + end).unlink(missing_ok=True)
        ledger = Ledger(path)
        ledger.records()
        keys = ledger.keys()
        for key in keys:
            ledger.forget(key)


class Caches(Reader):
    """Kept features and pixels, which are made again where they are damaged."""

    form = Form(8, 8, 1, "crop")

    def prepare(self, folder):
        compute_features(IMAGES[..., None], 16, "cpu")
        (self.kept,) = (folder.parent / "cache" / "gist").iterdir()
        self.content = self.kept.read_bytes()
        self.found = compute_features(IMAGES[..., None], 16, "cpu").copy()

    def make(self, folder, draw):
        return self.content

    def read(self, path):
        shutil.copy(path, self.kept)
        assert compute_features(IMAGES[..., None], 16, "cpu").shape == self.found.shape
        open_pack(path, self.form)


READERS: dict[str, Any] = {
    "table": Table(),
    "parquet": Parquet(),
    "votes": Votes(),
    "labels": Labels(),
    "npz": Npz(),
    "mat": Mat(),
    "sets": Sets(),
    "cifar": Cifar(),
    "image": ImageFile(),
    "recipe": Recipe(),
    "config": Config(),
    "sweep": Sweep(),
    "set": Assignment(),
    "run": Run(),
    "weights": Weights(),
    "checkpoint": Checkpoint(),
    "run-record": RunRecord(),
    "record": Record(),
    "ledger": LedgerFile(),
    "caches": Caches(),
}
