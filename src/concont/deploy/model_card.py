"""A model card: what an exported model is, what it learned from, how good it is, and its limits."""

import json
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from concont.answers.resolution import calibrate_run
from concont.api import Run
from concont.config.changes import find_changes
from concont.data.candidate_file import read_candidate_sets
from concont.deploy.export import Exported
from concont.deploy.wording import describe_check, describe_quantised
from concont.errors import ConcontError, UsageError, printable
from concont.runs.folder import write_whole
from concont.runs.settings import NAMED_SOURCES

NAME, MARKER = "MODEL_CARD.md", "written by concont export"
SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|<>&~$-])")
CONFUSIONS = 10  # pairs of classes, the commonest


def refuse_card(path: Path, overwrite: bool) -> None:
    """Before the work: a card of this name that is not by this command stays, unless asked."""
    if not path.exists() or overwrite:
        return
    try:
        own = MARKER in path.read_text("utf-8").split("\n---", 1)[0]
    except (OSError, UnicodeDecodeError):
        own = False
    if not own:
        raise UsageError(
            f"{printable(path)} is there and is not by this command; --no-card writes none, "
            "--overwrite replaces it"
        )


def write_card(run: Run, exported: Exported) -> Path:
    """Write the card beside the exported file; returns its path."""
    path, text = exported.path.with_name(NAME), render_card(run, exported)
    write_whole(path, lambda temporary: _write(temporary, text))
    return path


def render_card(run: Run, exported: Exported) -> str:
    """The card as Markdown."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    loader = PackageLoader("concont.deploy", ".")
    environment = Environment(
        loader=loader, undefined=StrictUndefined, trim_blocks=True, keep_trailing_newline=True
    )
    environment.filters |= {"md": escape_markdown, "json": json.dumps}
    environment.filters |= {"percent": _percent, "setting": _as_set}
    template = environment.get_template("model_card.md.jinja")
    text = template.render(_collect(run, exported))
    return re.sub(r"\n{3,}", "\n\n", text)  # where a part is left out


def escape_markdown(text: object) -> str:
    """Text on one line of which Markdown makes nothing, whatever a class is called."""
    return SPECIAL.sub(r"\\\1", printable(text))


def _collect(run: Run, exported: Exported) -> dict[str, Any]:
    """All that the template names."""
    made, data, figures = exported.description, run.data, _measure(run, exported)
    source = run.summary.data if run.summary.data in NAMED_SOURCES else "a user's own"
    quantised, known = exported.quantised, exported.problem
    what, changes = find_changes(run.path, run.settings)
    return {
        "marker": MARKER,
        "form": exported.form,
        "file": exported.path.name,
        "command": shlex.quote(printable(exported.path.name)),
        "made": made,
        "licence": made.licence,
        "classes": made.classes,
        "shape": made.shape,
        "size": f"{made.height} x {made.width}, {'RGB' if made.channels == 3 else 'grey'}",
        "inputs": "images" if made.features is None else "rows",
        "fit": made.fit,
        "network": made.model["name"],
        "source": source,
        "data": data,
        "mean_set": _mean_set_size(run),
        "summary": run.summary,
        "epochs": run.summary.epochs,
        "usual": what,
        "changed": changes,
        "figures": figures,
        "calibration": None if known is None else calibrate_run(run, known),
        "per_class": [] if figures is None else _count_classes(figures),
        "confusions": [] if figures is None else _find_confusions(figures),
        "check": describe_check(exported.checked).capitalize(),
        "quantised": None if quantised is None else describe_quantised(quantised),
    }


def _measure(run: Run, exported: Exported) -> dict[str, Any] | None:
    """Figures on the images that the run was measured on, where they can be read."""
    problem = exported.problem
    if problem is None or problem.test_images is None or problem.test_labels is None:
        return None
    return run.predictor.evaluate(np.asarray(problem.test_images), problem.test_labels)


def _count_classes(figures: Mapping[str, Any]) -> list[tuple[str, int, float | None]]:
    rows = zip(figures["per_class"].items(), figures["confusion"], strict=True)
    return [(name, sum(counts), own) for (name, own), counts in rows]


def _find_confusions(figures: Mapping[str, Any]) -> list[tuple[str, str, int]]:
    """The commonest pairs of a true class and what it was taken for."""
    names = list(figures["per_class"])
    pairs = [
        (names[true], names[taken], count)
        for true, counts in enumerate(figures["confusion"])
        for taken, count in enumerate(counts)
        if count and true != taken
    ]
    return sorted(pairs, key=lambda pair: -pair[2])[:CONFUSIONS]


def _mean_set_size(run: Run) -> float | None:
    try:
        sets = read_candidate_sets(run.path / "candidates.npz")
    except ConcontError:
        return None
    kept = sets.candidates[sets.labeled]
    return float(kept.sum(axis=1).mean()) if len(kept) else None


def _as_set(value: Any) -> str:
    """A setting as `--set` takes it."""
    return value if isinstance(value, str) else json.dumps(value)


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f} %"
