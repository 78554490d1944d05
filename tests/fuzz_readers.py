"""Every reader of files from outside, by name."""

from typing import Any

from fuzz_data import Cifar, ImageFile, Labels, Mat, Npz, Parquet, Sets, Table, Truth, Votes
from fuzz_models import Classifier, Exported, Features, StartWeights, Upload
from fuzz_runs import Caches, Checkpoint, LedgerFile, Record, Run, RunRecord, Watched, Weights
from fuzz_settings import Assignment, Config, Recipe, Sweep

READERS: dict[str, Any] = {
    "table": Table(),
    "parquet": Parquet(),
    "votes": Votes(),
    "labels": Labels(),
    "truth": Truth(),
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
    "watched": Watched(),
    "exported": Exported(),
    "start": StartWeights(),
    "upload": Upload(),
    "features": Features(),
    "classifier": Classifier(),
    "caches": Caches(),
}
