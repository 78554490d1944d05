"""Run folders and resolutions written by hand, so that pages can be tested without training."""

import json

import numpy as np

from concont.answers.resolution import Resolution
from concont.config.resolve import resolve, write_yaml
from concont.report.class_charts import Bin
from concont.report.finished import view_run
from concont.report.gallery import list_rows, make_cards
from concont.report.measured import Measured
from concont.report.page import lay_out
from concont.report.record import read_record
from concont.runs.folder import RunFolder

CLASSES = ("cat", "dog", "bird")
# What a table of a user's may hold, and none of which may do anything on a page.
HOSTILE = (
    "<img src=x onerror=hacked=1>",
    "</script><script>hacked=1</script>",
    '"><svg onload=hacked=1>',
    "<b>bold</b><a href='javascript:hacked=1'>%{x}</a>",
    "__proto__",
    "{{ 7 * 7 }}\u2028\u202e\x1b[31m",
)
BINS = {"as trained": [Bin(0.5, 0.6, 10), Bin(0.9, 0.8, 40)]}
# Of a page that has all of its parts: the charts, and how many traces each draws.
TRACES = {
    **{"accuracy": 2, "losses": 4, "confident": 3, "precision": 2, "thresholds": 3, "classes": 3},
    **{"confusion": 1, "reliability": 2, "map": 4},
}


def make_rows(epochs, classes=3, **more):
    """Lines of metrics of a run that grows better."""
    return [
        {
            **{"epoch": k, "step": 10 * k, "seconds": 2.0 * k, "images_per_s": 1000.0},
            **{"loss": 4.0 / k, "loss_part": 1.0 / k, "loss_reg": 0.5, "loss_contrast": 2.5},
            **{"confident": k / (epochs + 1), "pseudo_accuracy": 0.9, "confident_precision": 0.95},
            "thresholds": [0.5 + 0.1 * (k + c) / (epochs + classes) for c in range(classes)],
            **{"accuracy": 1 - 0.5 / k, "accuracy_best": 1 - 0.5 / k, "accuracy_momentum": 0.75},
            **more,
        }
        for k in range(1, epochs + 1)
    ]


def make_run(path, epochs=4, classes=CLASSES, finished=True, rows=None, flags=None, **config):
    """The folder of a run on digits that was never trained; rows: of metrics, else made up."""
    sections = {"train": {"epochs": epochs, **config.pop("train", {})}, **config}
    settings = resolve({"data": {"source": "digits"}, **sections})
    folder = RunFolder(path)
    path.mkdir(parents=True)
    folder.write_text("config.yaml", write_yaml(settings))
    n = 100 * len(classes)
    folder.write_json(
        "data.json",
        {
            **{"classes": list(classes), "shape": [8, 8, 1], "digest": "d" * 64},
            "normalisation": None,
            **{"n_train": n, "n_partial": n // 4, "n_test": 50, "evaluated_on": "test"},
        },
    )
    folder.write_json("environment.json", make_environment())
    rows = make_rows(epochs, len(classes)) if rows is None else rows
    for row in rows:
        folder.append_metrics(row)
    if finished:
        folder.write_json("verdict.json", make_verdict(len(classes)))
        folder.write_json("summary.json", make_summary(settings, rows))
    return path


def make_environment():
    return {
        **{"concont": "0.1.0", "commit": "c0ffee", "clean": False, "torch": "2", "numpy": "2"},
        **{"python": "3.11", "platform": "Linux", "device": "cpu", "cpu": "A processor"},
        **{"cpus": 2, "threads": 1, "command": ["/a/place/concont", "train", "--out", "a b"]},
    }


def make_verdict(classes):
    curve = [round(1 - k / 500, 4) for k in range(100)]
    return {
        "pseudo_labels": [100] * classes,
        "confident": [80] * classes,
        "confident_right": [76] * classes,
        "precision": {"p_score": curve, "max_probability": [value - 0.1 for value in curve]},
    }


def make_summary(settings, rows):
    last = rows[-1]
    return {
        **{"method": settings.method.name, "recipe": settings.recipe, "data": "digits"},
        **{"labeled": 0.1, "ambiguity": 0.3, "unlabeled": True, "seed": 1},
        **{"settings_hash": settings.hash(), "evaluated_on": "test", "seconds": 108.0},
        **{"accuracy_last": last["accuracy"], "accuracy_best": last["accuracy_best"]},
        "epochs": settings.train.epochs,
    }


def make_resolution(n=60, classes=CLASSES, names=None, dim=8, **more):
    """Images of classes in turn, every tenth doubtful, the first third with candidate sets."""
    random, rows = np.random.RandomState(0), np.arange(n)
    label = rows % len(classes)
    candidates = np.ones((n, len(classes)), bool)
    candidates[: n // 3] = np.eye(len(classes), dtype=bool)[label[: n // 3]]
    candidates[rows[: n // 3], (label[: n // 3] + 1) % len(classes)] = True
    doubtful = rows % 10 == 0
    review = np.empty(n, np.int64)
    review[np.argsort(~doubtful, kind="stable")] = rows + 1
    features = np.eye(len(classes), dim, dtype=np.float32)[label] + 0.1 * random.randn(n, dim)
    found = {
        "images": tuple(f"{k:04d}.png" for k in rows) if names is None else tuple(names),
        **{"classes": tuple(classes), "candidates": candidates, "label": label},
        "predicted": np.where(doubtful, (label + 1) % len(classes), label),
        "probability": np.where(doubtful, 0.4, 0.97).astype(np.float32),
        "outside": np.zeros(n, np.float32),
        "score": np.where(doubtful, 0.3, 1.2).astype(np.float32),
        **{"confident": ~doubtful, "overruled": rows == 1},
        "disagreement": np.where(doubtful, 0.6, 0.0).astype(np.float32),
        **{"review": review, "features": features.astype(np.float32)},
        **{"truth": np.full(n, -1), "calibration": None},
    }
    found |= more
    return Resolution(**{"partial": ~found["candidates"].all(axis=1), **found})


def make_measured(resolution, images=None, most=20, **more):
    """What is measured of a run whose training images are these, or noise."""
    if images is None:
        images = np.random.RandomState(1).randint(0, 256, (len(resolution), 8, 8, 1), np.uint8)
    rows = list_rows(resolution.review, most)
    return Measured(resolution, rows, make_cards(resolution, rows, images), **more)


def make_quality(classes=CLASSES):
    counts = np.full((len(classes), len(classes)), 2) + 20 * np.eye(len(classes), dtype=int)
    return {
        **{"n": int(counts.sum()), "accuracy": 0.8, "calibration_error": 0.05},
        **{"per_class": dict.fromkeys(classes, 0.8), "confusion": counts.tolist()},
    }


def make_page_of(path, measured, **more):
    """The page of one run with all of its parts."""
    record = read_record(path)
    return lay_out([record], [view_run(record, measured)], title=record.name, **more)


def read_data(html):
    """What the page's script is given."""
    text = html.split('<script type="application/json" id="data">')[1].split("</script>")[0]
    return json.loads(text)
