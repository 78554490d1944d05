"""How long `concont data check --no-decode` takes on a large table, and how much memory.

    python benchmarks/table_check.py --rows 1000000

Makes the table and as many empty files in a temporary folder, checks them in a process of its own,
and prints seconds and peak memory as JSON.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv


def make_table(folder: Path, n_rows: int, n_classes: int = 100) -> Path:
    """A table with candidates, votes, labels and a split, and the files that it names."""
    stream = np.random.RandomState(0)
    names = np.array([f"class {k}" for k in range(n_classes)])
    sets = np.stack([stream.permutation(n_classes)[:4] for _ in range(1000)])[
        stream.randint(0, 1000, n_rows)
    ]  # (N, 4) classes, no two the same
    sizes = stream.randint(0, 5, n_rows)
    images = [f"images/{k // 50_000:02}/{k:07}.jpg" for k in range(n_rows)]
    candidates = ["|".join(names[row[:n]]) for row, n in zip(sets, sizes, strict=True)]
    votes = ["|".join("3211"[i] for i in range(n)) for n in sizes]
    is_test = stream.rand(n_rows) < 0.1
    columns = {
        "image": images,
        "candidates": candidates,
        "votes": votes,
        "label": names[sets[:, 0]],
        "split": np.where(is_test, "test", "train"),
    }
    pa.csv.write_csv(pa.table(columns), folder / "table.csv")
    for inner in {os.path.dirname(name) for name in images}:
        (folder / inner).mkdir(parents=True)
    for name in images:
        os.close(os.open(folder / name, os.O_CREAT | os.O_WRONLY))
    return folder / "table.csv"


def measure(table: Path) -> dict[str, float | int]:
    """Check a table in this process."""
    start = time.perf_counter()
    from concont.tables.check import check_table

    report = check_table(table, decode=False)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return {
        "rows": report.rows,
        "errors": report.errors,
        "warnings": report.warnings,
        "seconds": round(seconds, 2),
        "peak_memory_gb": round(peak, 3),
    }


def main() -> None:
    """Make, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    n_rows = parser.parse_args().rows
    with tempfile.TemporaryDirectory() as folder:
        table = make_table(Path(folder), n_rows)
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            print(json.dumps(pool.apply(measure, (table,))))


if __name__ == "__main__":
    main()
