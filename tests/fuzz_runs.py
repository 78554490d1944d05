"""Readers of run folders, records, ledgers and caches."""

import json
import shutil

import torch
import yaml

import concont
from concont.answers.predict import predict_files
from concont.classic.features import compute_features
from concont.images.packs import Form, open_pack
from concont.report.watched import Watch
from concont.runs.folder import RunFolder
from concont.sweep.ledger import Ledger
from concont.sweep.merge import collect_records
from concont.sweep.record import key_of, of_run
from concont.training import checkpoint
from fuzz_data import ARRAYS, IMAGES
from fuzz_reader import Reader, Tree

CPU = torch.device("cpu")
SMALL = {
    "model": {"name": "small", "width": 2, "hidden": 4, "embedding": 4},
    "method": {"queue": 8},
    "train": {"epochs": 2, "batch_size": 6, "device": "cpu", "checkpoint_every": 0},
}


class Run(Reader):
    """A run folder, one of whose files is spoilt."""

    parts = ("config.yaml", "data.json", "summary.json", "model.safetensors")

    def prepare(self, folder):
        concont.train(SMALL, data=ARRAYS, out=folder / "good")

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


class Watched(Run):
    """A run folder that `concont watch` draws, whatever is in it."""

    parts = (*RunRecord.parts, "verdict.json")

    def read(self, path):
        Watch(path).make_page()


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
