"""A backbone with a classifier and a projection head, and the two networks of a run."""

import copy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from concont.nets.backbones import BACKBONES, Shape
from concont.nets.foreign import count_features, refuse_misfit, warn_if_idle
from concont.rng import SEEDING, derive
from concont.runs.model_settings import Model
from concont.types import Nets

Moments = tuple[Tensor, Tensor]  # mean and standard deviation of each channel, or feature


class Network(nn.Module):
    """Normalises images, takes features, and reads classes and embeddings off them.

    So it does with rows of features, as they are, where its backbone is one for them.
    """

    mean: Tensor
    std: Tensor
    mixed = True  # bfloat16 inside the network where it runs on a GPU
    foreign = False  # a user's own backbone
    frozen = False  # the backbone learns nothing

    def __init__(
        self, backbone: nn.Module, dim: int, classes: int, model: Model, mean: Tensor, std: Tensor
    ) -> None:
        super().__init__()
        self.backbone = backbone
        self.classifier = nn.Linear(dim, classes)
        self.projector = nn.Sequential(
            nn.Linear(dim, model.hidden), nn.ReLU(), nn.Linear(model.hidden, model.embedding)
        )
        across = (1, -1) if model.of_features else (1, -1, 1, 1)
        self.register_buffer("mean", mean.view(across))
        self.register_buffer("std", std.view(across))

    def precision(self, inputs: Tensor) -> torch.autocast:
        """bfloat16 on a GPU, unless `mixed` is off; the losses outside stay float32."""
        return torch.autocast(
            inputs.device.type, torch.bfloat16, enabled=inputs.is_cuda and self.mixed
        )

    def features(self, *views: Tensor) -> tuple[Tensor, ...]:
        """Features of each view of images in [0, 1]; one batch, so one set of statistics."""
        features = self._extract(torch.cat(views))
        return torch.split(features, [len(view) for view in views])

    def logits(self, features: Tensor) -> Tensor:
        """Class scores (B, C); float32, since the losses are."""
        with self.precision(features):
            scores: Tensor = self.classifier(features)
        return scores.float()

    def embed(self, features: Tensor) -> Tensor:
        """Unit rows (B, D) of the projection head."""
        with self.precision(features):
            projected: Tensor = self.projector(features)
        return F.normalize(projected.float(), dim=1)

    def freeze_backbone(self) -> "Network":
        """Let only the heads learn: the backbone keeps its weights and BatchNorm's statistics."""
        self.frozen = True
        self.backbone.requires_grad_(False)
        return self.train(self.training)

    def train(self, mode: bool = True) -> "Network":
        """As every module's; a frozen backbone stays as it is when it predicts."""
        super().train(mode)
        if self.frozen:
            self.backbone.eval()
        return self

    def forward(self, images: Tensor) -> Tensor:
        """Class scores of images in [0, 1]; what evaluation, prediction and export use.

        Not by `features`, whose split by lengths would fix the batch of an exported network.
        """
        return self.logits(self._extract(images))

    def _extract(self, images: Tensor) -> Tensor:
        """Features (B, dim) of one batch."""
        normalised = (images - self.mean) / self.std
        with self.precision(normalised):
            features: Tensor = self.backbone(normalised)
        return features


def build(
    model: Model,
    shape: Shape,
    classes: int,
    moments: Moments,
    seed: int,
    backbone: nn.Module | None = None,
    load_weights: bool = True,
) -> Network:
    """The online network for inputs of `shape`, initialised from `seed`.

    `backbone` is a module of the user's own that returns features; it keeps its weights.
    load_weights: False where a run's own will replace the first ones.
    """
    if backbone is not None:
        refuse_misfit(backbone, shape)
        if load_weights:
            warn_if_idle(backbone, shape)
    with SEEDING, torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive(seed, "weights"))
        body = _make_backbone(model, shape, load_weights) if backbone is None else backbone
        dim = count_features(body.eval(), shape)
        network = Network(body.cpu(), dim, classes, model, *moments)
        network.foreign = backbone is not None
    return network.train().to(memory_format=torch.channels_last)


def count_weights(model: Model, shape: Shape, classes: int) -> int:
    """The parameters that `build` would make, and makes none; of a model of timm the heads' alone.

    A width that is out of all proportion is told by it before any memory is taken.
    """
    with torch.device("meta"):
        body = nn.Identity() if model.is_timm else _make_backbone(model, shape, load_weights=False)
        dim = 1 if model.is_timm else _count_on_meta(body, shape)
        network = Network(body, dim, classes, model, *torch.zeros(2, shape[0]))
    return sum(parameter.numel() for parameter in network.parameters())


def order_axes(shape: tuple[int, ...]) -> Shape:
    """An input's shape as a network has it: (H, W, channels) with the channels first, or (D,)."""
    return (shape[-1], *shape[:-1])


def find_moments(model: Model, channels: int, own: Moments) -> Moments:
    """What images are normalised by: the data's own moments, or those of the given weights."""
    if model.weights is None:
        return own
    from concont.nets.timm_networks import pretrained_moments

    return pretrained_moments(model, channels)


def refuse_unknown_network(model: Model) -> None:
    """A model that timm does not have; all other names are checked with the settings."""
    if model.is_timm:
        from concont.nets.timm_networks import refuse_unknown_model

        refuse_unknown_model(model)


def _make_backbone(model: Model, shape: Shape, load_weights: bool) -> nn.Module:
    if model.is_timm:
        from concont.nets.timm_networks import make_timm_backbone  # timm takes seconds to import

        return make_timm_backbone(model, shape, load_weights)
    return BACKBONES[model.name](shape, model)


def with_key(online: Network, has_key: bool) -> Nets:
    """The online network and, where the method has one, its running average at the same start."""
    if not has_key:
        return Nets(online, online)
    return Nets(online, copy.deepcopy(online).requires_grad_(False))


def _count_on_meta(backbone: nn.Module, shape: Shape) -> int:
    with torch.no_grad():
        features: Tensor = backbone.eval()(torch.zeros(2, *shape))
    return features.shape[1]
