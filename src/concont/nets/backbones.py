"""The bodies that turn images, or rows of features, into what the heads read."""

from collections.abc import Callable

from torch import nn

from concont.runs.model_settings import Model

Shape = tuple[int, ...]  # (channels, H, W) of images, or (D,) of rows of features
WHOLE_UP_TO, HALF_UP_TO = 48, 96  # pixels of the shorter side


def resnet18(shape: Shape, model: Model) -> nn.Module:
    """ResNet-18 with a stem for the images' size; 512 features."""
    from concont.nets.resnet import ResNet18  # torchvision takes seconds to import

    return ResNet18(shape[0], model.init, stem=choose_stem(model, shape))


def narrow_resnet18(shape: Shape, model: Model) -> nn.Module:
    """The same layers with `width` channels in the first of them; 8 * width features."""
    from concont.nets.resnet import ResNet18

    return ResNet18(shape[0], model.init, model.width, choose_stem(model, shape))


def small(shape: Shape, model: Model) -> nn.Module:
    """Five convolutions for tiny images such as 8 x 8 digits; 4 * width features.

    On larger images the first two of them halve the side, as far as the stem says.
    """
    width, stem = model.width, choose_stem(model, shape)

    def conv(inputs: int, outputs: int, stride: int = 1) -> list[nn.Module]:
        layer = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        return [layer, nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *conv(shape[0], width, stride=1 if stem == "whole" else 2),
        *conv(width, width, stride=2 if stem == "quarter" else 1),
        nn.MaxPool2d(2),
        *conv(width, 2 * width),
        *conv(2 * width, 2 * width),
        nn.MaxPool2d(2),
        *conv(2 * width, 4 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


def mlp(shape: Shape, model: Model) -> nn.Module:
    """So many layers of `width` units on rows of features; `width` features."""
    layers: list[nn.Module] = []
    for inputs in [shape[0], *[model.width] * (model.depth - 1)]:
        linear = nn.Linear(inputs, model.width, bias=False)
        layers += [linear, nn.BatchNorm1d(model.width), nn.ReLU()]
    return nn.Sequential(*layers)


def choose_stem(model: Model, shape: Shape) -> str:
    """What the settings say, or by the images' shorter side."""
    if model.stem != "auto":
        return model.stem
    side = min(shape[1:])
    return "whole" if side <= WHOLE_UP_TO else "half" if side <= HALF_UP_TO else "quarter"


BACKBONES: dict[str, Callable[[Shape, Model], nn.Module]] = {
    "resnet18": resnet18,
    "narrow-resnet18": narrow_resnet18,
    "small": small,
    "mlp": mlp,
}
