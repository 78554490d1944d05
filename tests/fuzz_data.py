"""Readers of tables, votes, arrays and images."""

import io
import pickle
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from PIL import Image
from scipy.io import savemat

from concont.data.candidate_file import CandidateSets, read_candidate_sets
from concont.data.own_data import load_labelled_images, measure_data
from concont.data.pickled_arrays import unpickle_arrays
from concont.data.sources import load
from concont.errors import ConcontError
from concont.images.files import read_image, read_size, verify_image
from concont.runs.settings import Data
from concont.tables.add_votes import add_votes
from concont.tables.agreement import measure_agreement
from concont.tables.check import check_table
from concont.tables.problems import Problems
from concont.tables.table import read_images_table
from concont.tables.votes import choose_candidates, count_votes, read_votes
from fuzz_reader import Reader

IMAGES = np.random.RandomState(0).randint(0, 255, (12, 8, 8), np.uint8)
LABELS = np.arange(12) % 3
SETS = np.eye(3, dtype=bool)[LABELS]
ARRAYS = {
    **{"x_train": IMAGES, "y_train": LABELS, "candidates": SETS, "x_test": IMAGES[:4]},
    **{"y_test": LABELS[:4], "classes": np.array(["a", "b", "c"])},
}
DTYPES = ("u1", "<i8", ">i4", "f4", "f8", "?", "U3", "S2", "M8[s]", "c8", "u1,f4", "V0")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO")


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
        if draw.random() < 0.3:
            odd = draw.choice((2.0, 0.0, -1.0, np.nan, np.inf, 5e-324, 1e308))
            arrays["candidate_weights"] = np.where(SETS, draw.choice((odd, 1.0)), 0.0)
            arrays["candidate_weights"][0] *= odd
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
            except ConcontError:
                continue
