"""A run exported: refused before the work, written as a whole, and checked before it is kept."""

from dataclasses import dataclass
from pathlib import Path

from concont.api import Run
from concont.data.problem import Problem
from concont.deploy.check import Comparison, compare, read_problem_if_there, take_sample
from concont.deploy.description import Description
from concont.deploy.formats import FORMATS, Deployed, describe_run, make_deployable
from concont.errors import UsageError, printable
from concont.runs.folder import is_name_of_a_part, write_whole


@dataclass(frozen=True)
class Exported:
    """A file that was written, and what was found when it was checked."""

    path: Path
    form: str
    description: Description
    checked: Comparison
    problem: Problem | None  # what the run learned from, where it can be read


def export_run(run: Run, path: Path, form: str, licence: str | None = None) -> Exported:
    """Write the run's network to a file of this format that answers as the network does."""
    module, description = make_deployable(run), describe_run(run, licence)
    problem = read_problem_if_there(run)
    found: list[Comparison] = []

    def write(temporary: Path) -> None:
        FORMATS[form].write(module, description, temporary)
        found.append(check_file(run, problem, module, form, temporary))

    write_whole(path, write)
    return Exported(path, form, description, found[0], problem)


def check_file(
    run: Run, problem: Problem | None, module: Deployed, form: str, path: Path
) -> Comparison:
    """Run what was written on images of the run, beside the network itself."""
    reopened = FORMATS[form].reopen(path, module)
    return compare(module.compute, reopened, take_sample(run, problem))


def refuse_output(path: Path, run: Path, overwrite: bool) -> None:
    """Before the work: no file that is there unless asked to, and none of the run's own ever."""
    shown = printable(path)
    if not path.parent.is_dir():
        raise UsageError(f"{shown}: there is no folder {printable(path.parent)}")
    if path.exists() and not path.is_file():
        raise UsageError(f"{shown} is there and is not a file")
    if path.parent.resolve() == run.resolve() and is_name_of_a_part(path.name):
        raise UsageError(f"{shown} is the name of a file of the run itself; choose another")
    if path.exists() and not overwrite:
        raise UsageError(f"{shown} is there already; --overwrite replaces it")
