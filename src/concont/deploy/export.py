"""A run exported: refused before the work, written as a whole, and checked before it is kept."""

from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from concont.api import Run
from concont.data.problem import Problem
from concont.deploy.check import Comparison, compare, read_problem_if_there, take_sample
from concont.deploy.description import Description
from concont.deploy.formats import FORMATS, Deployed, describe_run, make_deployable
from concont.deploy.quantise import Quantised, measure, quantise
from concont.errors import UsageError
from concont.runs.folder import write_whole


@dataclass(frozen=True)
class Exported:
    """A file that was written, and what was found when it was checked."""

    path: Path
    form: str
    description: Description
    checked: Comparison
    problem: Problem | None  # what the run learned from, where it can be read
    quantised: Quantised | None = None  # None: the weights are floats


def export_run(
    run: Run,
    path: Path,
    form: str = "onnx",
    licence: str | None = None,
    int8: bool = False,
    problem: Problem | None = None,
) -> Exported:
    """Write the run's network to a file of this format that answers as the network does.

    int8: with 8-bit weights and activations, made of an ONNX file that was found to do so.
    problem: what the run learned from, where that has been read already.
    """
    if int8 and form != "onnx":
        raise UsageError(f"--int8 is for --format onnx, not for {form}")
    if int8 and len(run.shape) == 1:
        raise UsageError("--int8 is for networks of images; this one learned of features")
    module, description = make_deployable(run), describe_run(run, licence)
    if problem is None:
        problem = run.read_problem() if int8 else read_problem_if_there(run)  # to calibrate on
    found: list[tuple[Comparison, Quantised | None]] = []

    def write(temporary: Path) -> None:
        FORMATS[form].write(module, description, temporary)
        checked = check_file(run, problem, module, form, temporary)
        quantised = _quantise(temporary, problem) if int8 and problem is not None else None
        found.append((checked, quantised))

    write_whole(path, write)
    checked, quantised = found[0]
    return Exported(path, form, description, checked, problem, quantised)


def _quantise(path: Path, problem: Problem) -> Quantised:
    """Put the 8-bit model in the place of the other, once they were compared."""
    with TemporaryDirectory() as folder:
        small = Path(folder) / "int8.onnx"
        calibrated_on = quantise(path, small, problem.images)
        found = measure(path, small, problem, calibrated_on)
        path.write_bytes(small.read_bytes())
    return found


def check_file(
    run: Run, problem: Problem | None, module: Deployed, form: str, path: Path
) -> Comparison:
    """Run what was written on images of the run, beside the network itself."""
    reopened = FORMATS[form].reopen(path, module)
    return compare(module.compute, reopened, take_sample(run, problem))
