"""The weights of a finished run as the first ones of another."""

from pathlib import Path

from torch import Tensor

from concont.data.problem import Problem
from concont.errors import DataError, UsageError, printable
from concont.nets.network import Network
from concont.nets.weights import list_names, refuse_changed_weights
from concont.runs.folder import RunFolder
from concont.runs.model_settings import Model

ONLINE = "online."
OF_CLASSES = ("classifier.weight", "classifier.bias")  # a row a class


def start_from_run(network: Network, model: Model, problem: Problem) -> int:
    """Give a new network the weights and the normalisation of the run that `model.start` names.

    Rows of the classifier go by the names of their classes; those of new classes stay as they are.
    Returns how many classes the run knows.
    """
    path = Path(model.start or "")
    refuse_changed_weights(model.start_digest, path)
    run = RunFolder(path.parent)
    run.require_whole("data.json", path.name)
    described, found = run.read_data(), _read_online(path)
    shape, known = described["shape"], described["classes"]
    if shape != list(problem.images.shape[1:]):
        own = " x ".join(map(str, problem.images.shape[1:]))
        there = " x ".join(map(str, shape))
        raise UsageError(f"{printable(run.path)} learned from images of {there}; these are {own}")
    fresh = network.state_dict()
    _refuse_other_network(run.path, model, fresh, found)
    place = {name: k for k, name in enumerate(known)}
    carried = [k for k, name in enumerate(problem.classes) if name in place]
    there_rows = [place[problem.classes[k]] for k in carried]
    for name in OF_CLASSES:
        rows = fresh[name].clone()
        rows[carried] = found[name][there_rows]
        found[name] = rows
    network.load_state_dict(found)
    return len(carried)


def _read_online(path: Path) -> dict[str, Tensor]:
    """The online network's weights in a run's file, by their names in the network."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    try:
        weights = load(path.read_bytes())
    except SafetensorError as error:
        where = printable(path)
        raise DataError(f"weights {where} are damaged, or no safetensors file: {error}") from None
    found = {k.removeprefix(ONLINE): v for k, v in weights.items() if k.startswith(ONLINE)}
    if not found:
        raise UsageError(f"{printable(path.parent)} holds no network to start from")
    for name, tensor in found.items():
        if not tensor.isfinite().all():
            raise DataError(f"weights {printable(path)}: {printable(name)} holds what is no number")
    return found


def _refuse_other_network(
    run: Path, model: Model, wanted: dict[str, Tensor], found: dict[str, Tensor]
) -> None:
    """All weights must have their names, types and sizes; a classifier may have other rows."""
    odd = wanted.keys() ^ found.keys()
    odd |= {name for name in wanted.keys() & found.keys() if not _fits(name, wanted, found)}
    if odd:
        raise UsageError(
            f"{printable(run)} holds another network than {model.name} with these settings "
            f"({list_names(sorted(odd))}); keep its section `model`"
        )


def _fits(name: str, wanted: dict[str, Tensor], found: dict[str, Tensor]) -> bool:
    skipped = 1 if name in OF_CLASSES else 0
    same_kind = wanted[name].dtype == found[name].dtype
    return same_kind and wanted[name].shape[skipped:] == found[name].shape[skipped:]
