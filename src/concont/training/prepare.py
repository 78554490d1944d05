"""From settings to a run that is ready to start: everything checked, nothing written."""

import logging
import os
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn

from concont.config.own_network import describe_network, refuse_unnamed
from concont.data import sources
from concont.data.order import Order
from concont.data.placement import TrainingSet
from concont.data.problem import Problem, make_problem
from concont.device import choose_device
from concont.errors import DataError, UsageError
from concont.nets.batch_norm import share_statistics
from concont.nets.network import (
    Network,
    build,
    find_moments,
    order_axes,
    refuse_unknown_network,
    with_key,
)
from concont.nets.weights import identify_weights
from concont.ranks import world
from concont.rng import SEEDING, derive, torch_stream
from concont.runs.contents import START_AFRESH
from concont.runs.folder import RunFolder
from concont.runs.model_settings import Model
from concont.runs.settings import Optimizer, Settings
from concont.training import checkpoint, cuda_speed
from concont.training.evaluate import TestSet
from concont.training.meter import Meter
from concont.training.moments import measure_features
from concont.training.network_run import NetworkRun
from concont.training.ranks import agree_on_run, load_on_ranks, refuse_uneven_ranks
from concont.training.size import refuse_too_large
from concont.training.start import start_from_run
from concont.training.state import TrainState
from concont.types import Plain

log = logging.getLogger("concont")
AT_ONCE = 2**22  # pixels that are counted at once
MEASURED = 2**30  # bytes of pixels that are counted, about
IMPORTED_BY = os.getpid()
SMALLEST = 4  # pixels: the networks halve a side twice


def prepare(
    settings: Settings,
    folder: RunFolder,
    data: sources.Dataset | None = None,
    model: nn.Module | None = None,
    resumed: bool = False,
) -> NetworkRun:
    """Load the data, pose the problem, build the networks; refuse what cannot be trained.

    resumed: a run that was started before goes on from its last checkpoint, if it has one.
    """
    train = settings.train
    device = choose_device(train.device)
    _let_forked_child_train(device)
    world.form(device, train.rank_timeout)
    settings = _name_network(settings, model, resumed)
    saved = checkpoint.load(folder, device) if resumed else None
    if saved is None and not (settings.model.weights_digest or settings.model.start_digest):
        settings = replace(settings, model=identify_weights(settings.model))
    if cuda_speed.should_compile(settings, device):
        cuda_speed.start_compile_workers()
    dataset = data or load_on_ranks(settings.data)
    problem = make_problem(dataset, settings.data)
    _refuse(settings, problem)
    _warn_of_frozen(settings, model)
    if train.deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
        torch.use_deterministic_algorithms(True)
    torch.backends.cudnn.benchmark = not train.deterministic  # the fastest of its algorithms
    with SEEDING:
        torch.manual_seed(derive(train.seed, "torch"))  # for a user's own network with dropout
        online, carried = _make_network(settings, problem, model, saved is None)
        if world.size() > 1 and train.sync_batchnorm:
            share_statistics(online, device)
        candidates = torch.from_numpy(problem.candidates).to(device)
        state = make_initial_state(settings, online.to(device), candidates)
    order = _plan_batches(settings, problem)
    run = NetworkRun(
        settings,
        folder,
        problem,
        TrainingSet.of(problem, device, train.memory_share),
        order,
        TestSet.of(problem, device, train.memory_share),
        state,
        resumed,
        carried=carried,
    )
    if resumed:
        _take_up_checkpoint(run, saved)
    agree_on_run(run)
    return run


def _name_network(settings: Settings, own: nn.Module | None, resumed: bool) -> Settings:
    """The settings with what the user's own network is, if there is one."""
    if own is None:
        refuse_unnamed(settings.model)
        refuse_unknown_network(settings.model)
        return settings
    if settings.model.own is not None or resumed:
        return settings
    return replace(settings, model=replace(settings.model, own=describe_network(own)))


def _plan_batches(settings: Settings, problem: Problem) -> Order:
    """Which rows each batch has; refused if a network would learn nothing of them."""
    wanted = settings.train.batch_size
    order = Order.of(problem, settings.train, settings.network_method.partial_rows_first)
    _refuse_batches_without_labels(order, settings)
    refuse_uneven_ranks(order, settings.network_method)
    if order.batch_size < wanted:
        log.warning("a batch holds %d rows, not %d: the data has no more", order.batch_size, wanted)
    return order


def _make_network(
    settings: Settings, problem: Problem, own: nn.Module | None, begins: bool
) -> tuple[Network, int | None]:
    """The online network, and how many classes the run knows whose weights it has, if of a run.

    begins: with its first weights; else those of a checkpoint will replace them.
    """
    shape = order_axes(problem.images.shape[1:])
    n_classes, seed = len(problem.classes), settings.train.seed
    refuse_too_large(settings, shape, problem, own)
    model = settings.model
    of_features = model.of_features
    moments = measure_features(problem.images) if of_features else measure_channels(problem)
    if own is None:
        moments = find_moments(model, shape[0], moments)
    online = build(model, shape, n_classes, moments, seed, own, load_weights=begins)
    starts = begins and model.start is not None
    return online, start_from_run(online, model, problem) if starts else None


def _let_forked_child_train(device: torch.device) -> None:
    """A child has none of its parent's threads, for which PyTorch would wait for ever."""
    if os.getpid() == IMPORTED_BY:
        return
    if device.type == "cuda" and torch.cuda._is_in_bad_fork():
        raise UsageError("a forked process cannot use the GPU; start it by `spawn`, or on the CPU")
    if torch.get_num_threads() > 1:
        log.warning("a forked process trains with one thread; started by `spawn` it has all")
        torch.set_num_threads(1)


def make_initial_state(settings: Settings, online: Network, candidates: Tensor) -> TrainState:
    """The state of a run before its first step, on the device of the candidate sets (N, C)."""
    method, options, device = settings.network_method, settings.optimizer, candidates.device
    steps = torch.zeros((), dtype=torch.float64, device=device)
    if options.backbone_rate == 0:
        online.freeze_backbone()
    nets = with_key(online, method.key_momentum(steps) is not None)
    method_state = method.init_state(candidates, settings.model.embedding)
    return TrainState(
        nets=nets,
        optimizer=torch.optim.SGD(
            group_parameters(online, options, device),
            lr=_rate_on(device, options.lr),
            fused=device.type == "cuda" or None,
            momentum=options.momentum,
            weight_decay=options.weight_decay,
            nesterov=options.nesterov,
        ),
        method_state={name: tensor.to(device) for name, tensor in method_state.items()},
        views=torch_stream(settings.train.seed, "views", device=device),
        steps_on_device=steps,
        meter=Meter(device),
    )


def group_parameters(
    network: Network, options: Optimizer, device: torch.device
) -> Iterable[Tensor] | list[Plain]:
    """What the optimiser moves: all alike, or the backbone at a multiple of the rate, or not."""
    if options.backbone_rate == 1:
        return network.parameters()
    heads = [*network.classifier.parameters(), *network.projector.parameters()]
    if options.backbone_rate == 0:
        return heads
    rate = _rate_on(device, options.lr * options.backbone_rate)
    slow: Plain = {"lr": rate, "multiple": options.backbone_rate}
    return [{"params": list(network.backbone.parameters()), **slow}, {"params": heads}]


def _rate_on(device: torch.device, lr: float) -> float | Tensor:
    """A tensor where a captured step has to read it."""
    return torch.tensor(lr, device=device) if device.type == "cuda" else lr


def measure_channels(problem: Problem) -> tuple[Tensor, Tensor]:
    """Mean and standard deviation of each channel of the training images, in [0, 1].

    Of a very large set every k-th image is measured: reading all would take longer than it tells.
    """
    images = problem.images
    channels, every = images.shape[-1], max(1, images.nbytes // MEASURED)
    counts = np.zeros((channels, 256), dtype=np.int64)
    rows = max(1, AT_ONCE * channels // images[0].size)
    for start in range(0, len(images), rows * every):
        part = images[start : start + rows * every : every]
        planes = np.ascontiguousarray(np.moveaxis(part, -1, 0)).reshape(channels, len(part), -1)
        # Pillow counts bytes several times faster than numpy, which widens them first.
        counts += np.array([Image.fromarray(plane).histogram() for plane in planes])
    values, total = np.arange(256) / 255, counts[0].sum()
    mean = counts @ values / total
    variance = counts @ values**2 / total - mean**2
    std = np.sqrt(np.maximum(variance, 1e-8))
    return torch.tensor(mean, dtype=torch.float32), torch.tensor(std, dtype=torch.float32)


def _take_up_checkpoint(run: NetworkRun, saved: dict[str, Any] | None) -> None:
    """Bring a run that was started before to its last checkpoint; without one it stays as new."""
    run.folder.refuse_other_data(run.problem.digest, run.settings.data.source)
    if saved is None:
        return
    if not 0 <= saved["step"] <= run.total_steps:
        raise DataError(
            f"the checkpoint in {run.folder.path} is of step {saved['step']}; the run has "
            f"{run.total_steps}; {START_AFRESH}"
        )
    device = run.data.device
    if saved.get("device") != device.type:
        began = saved.get("device")
        log.warning("resumed on %s what began on %s: not exact", device.type, began)
    try:
        run.state.load_state_dict(saved)
    except torch.OutOfMemoryError:
        raise
    except (AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        log.debug("%s", error)
        raise DataError(
            f"the checkpoint in {run.folder.path} does not fit its config.yaml, of another network "
            f"or optimiser ({type(error).__name__}); {START_AFRESH}"
        ) from None


def _refuse_batches_without_labels(order: Order, settings: Settings) -> None:
    """A share of partial rows that comes to none."""
    if order.n_partial == 0 and not settings.method.reads_truth:
        share, size = settings.train.partial_share, order.batch_size
        raise UsageError(
            f"train.partial_share is {share:g}: no row of a batch of {size} would have a candidate "
            f"set, so nothing could be learned; give at least {1 / size:.2g}, or null"
        )


def _warn_of_frozen(settings: Settings, model: nn.Module | None) -> None:
    random = settings.model.weights is None and settings.model.start is None and model is None
    if settings.optimizer.backbone_rate == 0 and random:
        log.warning("the backbone is frozen with random weights: give some, by model.weights")


def _refuse(settings: Settings, problem: Problem) -> None:
    _refuse_other_inputs(problem, settings.model)
    if settings.method.reads_truth and (problem.truth < 0).any():
        raise UsageError("this bound needs the true label of every training image")
    if len(problem.rows) < 2 or settings.train.batch_size < 2:
        raise UsageError("BatchNorm needs at least two rows in a batch; there is one")
    if not settings.model.of_features:
        _refuse_small_images(problem, settings)


def _refuse_other_inputs(problem: Problem, model: Model) -> None:
    """A network of images for features, or one of features for images."""
    features = problem.images.ndim == 2
    if features and not model.of_features:
        raise UsageError(
            f"this data holds features, and {model.name} learns of images: leave out --recipe, or "
            "set model.name=mlp"
        )
    if model.of_features and not features:
        raise UsageError(
            "this data holds images, and mlp learns of features: set model.name to another network"
        )


def _refuse_small_images(problem: Problem, settings: Settings) -> None:
    height, width = problem.images.shape[1:3]
    if min(height, width) < SMALLEST:
        raise DataError(f"images are {height} x {width}; the smallest side is {SMALLEST}")
    for kind in ("weak", "strong"):
        view = getattr(settings.views, kind)
        if view.pad_in_pixels(min(height, width)) >= min(height, width):
            raise UsageError(f"views.{kind}.pad is {view.pad}; the images are {height} x {width}")
