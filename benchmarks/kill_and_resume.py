"""One training command run to its end, and again with a kill and a resume; both as one record.

python benchmarks/kill_and_resume.py --after 4 --out benchmarks/results/NAME.json -- \
    --data cifar10 --root DATA --seed 1 --epochs 10
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = [sys.executable, "-m", "concont", "train"]


def read_metrics(folder: Path) -> list[dict]:
    path = folder / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def run_training(words: list[str], folder: Path, kill_after: int | None = None) -> str:
    """Train until the end, or until so many epochs are in the log; returns what was printed."""
    process = subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    while kill_after is not None and process.poll() is None:
        if (folder / "checkpoint.pt").exists() and len(read_metrics(folder)) >= kill_after:
            process.kill()
        time.sleep(0.05)
    printed, _ = process.communicate()
    if process.returncode not in (0, -9):
        sys.exit(printed)
    return printed


def describe_result(folder: Path, printed: str) -> dict:
    """What a run has left behind, and printed."""
    environment = json.loads((folder / "environment.json").read_text())
    kept = ("epoch", "step", "seconds", "images_per_s", "loss", "confident", "accuracy")
    return {
        "summary": json.loads((folder / "summary.json").read_text()),
        "environment": {k: v for k, v in environment.items() if k not in ("command", "earlier")},
        "metrics": [{name: row[name] for name in kept} for row in read_metrics(folder)],
        "log": [line for line in printed.splitlines() if not line.startswith("Run:")],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--after", type=int, required=True, help="epochs before the kill")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("words", nargs="+", help="options of `concont train`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        whole, broken = Path(scratch) / "whole", Path(scratch) / "broken"
        record = {"command": "concont train " + " ".join(options.words)}
        record["whole"] = describe_result(
            whole, run_training([*options.words, "--out", str(whole)], whole)
        )
        # A checkpoint at each epoch, so that the kill finds one.
        often = ["--set", "train.checkpoint_every=0"]
        killed = run_training([*options.words, *often, "--out", str(broken)], broken, options.after)
        killed_at = read_metrics(broken)[-1]["epoch"]
        resumed = describe_result(broken, run_training(["--resume", str(broken)], broken))
        resumed["log"] = [*killed.splitlines(), "(killed, resumed)", *resumed["log"]]
        record["killed"] = {"at_epoch": killed_at, **resumed}
    options.out.write_text(json.dumps(record, indent=1) + "\n")
    for name in ("whole", "killed"):
        print(name, record[name]["summary"]["accuracy_last"], record[name]["summary"]["seconds"])


if __name__ == "__main__":
    main()
