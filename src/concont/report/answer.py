"""What came of a run in a few figures, each with what it means and what it was measured on."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from concont.classic.options import CLASSICS
from concont.errors import printable
from concont.report.record import RunRecord, is_number
from concont.report.wording import UNKNOWN, show_duration, show_number, show_share

if TYPE_CHECKING:
    from concont.report.measured import Measured

NOTHING_TO_MEASURE = "There is no test set, and no images were held out: nobody can say."
HELD_BACK = {"test": "test images", "holdout": "images that were held out of the training"}


@dataclass(frozen=True)
class Fact:
    """One figure."""

    label: str
    value: str
    note: str  # what it means, in words


def describe_answer(record: RunRecord, measured: "Measured | None" = None) -> list[Fact]:
    """Accuracy, images resolved, images to review, time; what is not known says why."""
    return [
        tell_accuracy(record),
        tell_resolved(record, measured),
        tell_review(record, measured),
        tell_time(record),
    ]


def describe_data(record: RunRecord) -> str:
    """What the run learns from, in a sentence."""
    data = record.data or {}
    n, partial = data.get("n_train"), data.get("n_partial")
    if not is_number(n) or not is_number(partial):
        return "It has not begun to learn yet." if record.state == "waiting" else ""
    rest = f", {n - partial:,} without any" if n > partial else ""
    ended = "learned" if record.summary is not None else "learns"
    return f"{record.method} {ended} from {n:,} images: {partial:,} with candidate labels{rest}."


def describe_progress(record: RunRecord) -> str:
    """How far a run is, in a few words."""
    if record.state == "finished":
        return "finished"
    epoch, epochs = record.last.get("epoch"), record.epochs
    if epoch is None:
        return {"stopped": "stopped before its first evaluation"}.get(record.state, "waiting")
    place = f"epoch {epoch:g}" if epochs is None else f"epoch {epoch:g} of {epochs:,}"
    return f"{record.state}, {place}"


def tell_accuracy(record: RunRecord) -> Fact:
    """Of images that it did not learn from."""
    done = record.summary is not None
    value = record.last.get("accuracy")
    share = record.summary.accuracy_last if record.summary is not None else value
    label = "Accuracy" if done else "Accuracy so far"
    if record.evaluated_on is None and share is None:
        return Fact(label, UNKNOWN, NOTHING_TO_MEASURE)
    n = (record.data or {}).get("n_test") or ""
    if record.evaluated_on == "sets":
        note = f"{_count(n)} images held out, of which candidate sets alone are known."
        return Fact("Labels in their sets", show_share(record.last.get("share_in_sets")), note)
    on = HELD_BACK.get(record.evaluated_on or "test", "images")
    when = "" if record.epochs is None else ", at the last epoch"
    if not done:
        when = f", {describe_progress(record)}"
    return Fact(label, show_share(share), f"{_count(n)} {on}{when}.")


def tell_resolved(record: RunRecord, measured: "Measured | None") -> Fact:
    """Of how many images the run is confident, and how many of those labels are right."""
    label, resolution = "Images resolved", measured and measured.resolution
    if not resolution:
        return _tell_confident_rows(record)
    confident, n = resolution.confident, len(resolution)
    if confident is None:
        note = "All have a label; the method has no thresholds that tell which to rely on."
        return Fact(label, f"{n:,}", note)
    note = "The score of their label is above the threshold of its class."
    right = resolution.accuracy(confident)
    if right is None:
        note += " No true labels are known to measure them with."
    else:
        every = show_share(resolution.accuracy())
        note += f" Of those with a known true label {show_share(right)} are right; of all, {every}."
    return Fact(label, f"{int(confident.sum()):,} of {n:,}", note)


def tell_review(record: RunRecord, measured: "Measured | None") -> Fact:
    """How many images a person should look at."""
    label, resolution = "Images to review", measured and measured.resolution
    if not measured or not resolution:
        later = record.summary is None and record.method not in CLASSICS
        why = (
            "The list is made when the run has ended." if later else "There is no list: see below."
        )
        return Fact(label, UNKNOWN, why)
    listed = len(measured.cards)
    if resolution.confident is None:
        return Fact(label, f"{listed:,}", "The most doubtful of all, listed below.")
    n = int((~resolution.confident | resolution.overruled).sum())
    note = "Their label is not sure, or lies outside their candidates."
    below = f" The {listed:,} most doubtful of all are listed below." if listed else ""
    return Fact(label, f"{n:,}", f"{note}{below}")


def tell_time(record: RunRecord) -> Fact:
    """How long it trained, for how long, on what."""
    where = (record.environment or {}).get("device")
    speed = record.last.get("images_per_s")
    parts = [
        ""
        if record.epochs is None
        else f"{record.last.get('epoch', 0):g} of {record.epochs:,} epochs",
        f"on {'the CPU' if where == 'cpu' else printable(where)}" if where else "",
        f"{show_number(speed)} images a second" if is_number(speed) else "",
    ]
    note = ", ".join(part for part in parts if part)
    label = "Training time" if record.summary is not None else "Training time so far"
    return Fact(label, show_duration(record.seconds), f"{note[:1].upper()}{note[1:]}.")


def _tell_confident_rows(record: RunRecord) -> Fact:
    """The same from the record alone."""
    verdict, label = record.verdict or {}, "Images resolved"
    if verdict.get("confident") and verdict.get("pseudo_labels"):
        sure, n = sum(verdict["confident"]), sum(verdict["pseudo_labels"])
        note = "The score of their label was above the threshold of its class at the end."
        return Fact(label, f"{sure:,} of {n:,}", note)
    share = record.last.get("confident")
    if share is None:
        return Fact(label, UNKNOWN, "The method has no thresholds that tell which to rely on.")
    return Fact(label, show_share(share), "Confident pseudo-labels in the last steps.")


def _count(n: object) -> str:
    return f"Of {n:,}" if isinstance(n, int) else "Of its"
