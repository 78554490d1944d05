"""What a run of several ranks needs before its first step; of one process nothing."""

from typing import TYPE_CHECKING

import torch

from concont.data.order import Order
from concont.data.own_data import Report, holds_image_files, load_data
from concont.data.sources import Dataset
from concont.errors import UsageError
from concont.ranks import world
from concont.ranks.tensors import share
from concont.rng import derive
from concont.runs.settings import Data
from concont.types import Method

if TYPE_CHECKING:
    from concont.training.network_run import NetworkRun


def load_on_ranks(data: Data, report: Report | None = None) -> Dataset:
    """The data of these settings; image files are decoded by rank 0, and then mapped by all."""
    if not holds_image_files(data.source):
        return load_data(data, report)
    with world.lead_first("images"):
        return load_data(data, report)


def refuse_uneven_ranks(order: Order, method: Method) -> None:
    """Every rank has as many rows of a batch as every other, and none needs those of others."""
    if world.size() > 1 and getattr(method, "part_blend", False):
        raise UsageError(
            "method.part_blend takes one process: an image's partner may be another rank's"
        )
    if order.batch_size % world.size():
        raise UsageError(
            f"{world.size()} ranks cannot share a batch of {order.batch_size} rows evenly: choose "
            "another train.batch_size, or --nproc-per-node"
        )


def agree_on_run(run: "NetworkRun") -> None:
    """Refuse ranks that would train something else; all begin with rank 0's networks.

    Each draws noise of its own.
    """
    settings, problem, step = run.settings, run.problem, run.state.step
    world.agree(
        {
            "settings": settings.hash(problem.digest, problem.sets_hash),
            "data": problem.digest[:16],
            "device": run.data.device.type,
            "step": step,
            "torch": torch.__version__,
        }
    )
    networks = run.state.nets.modules.values()  # a user's code may draw other weights each time
    share(tensor for network in networks for tensor in network.state_dict().values())
    if not world.leads():  # rank 0 goes on as one process would
        torch.manual_seed(derive(settings.train.seed, "torch", world.rank(), step))
