"""The bodies that turn images into features."""

from collections.abc import Callable

from torch import nn

from concont.runs.settings import Model


def resnet18(channels: int, model: Model) -> nn.Module:
    """ResNet-18 for 32 x 32 images; 512 features."""
    from concont.nets.resnet import ResNet18  # torchvision takes seconds to import

    return ResNet18(channels, model.init)


def narrow_resnet18(channels: int, model: Model) -> nn.Module:
    """The same layers with `width` channels in the first of them; 8 * width features."""
    from concont.nets.resnet import ResNet18

    return ResNet18(channels, model.init, model.width)


def small(channels: int, model: Model) -> nn.Module:
    """Five convolutions for tiny images such as 8 x 8 digits; 4 * width features."""
    width = model.width

    def conv(inputs: int, outputs: int) -> list[nn.Module]:
        layer = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
        return [layer, nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *conv(channels, width),
        *conv(width, width),
        nn.MaxPool2d(2),
        *conv(width, 2 * width),
        *conv(2 * width, 2 * width),
        nn.MaxPool2d(2),
        *conv(2 * width, 4 * width),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
    )


BACKBONES: dict[str, Callable[[int, Model], nn.Module]] = {
    "resnet18": resnet18,
    "narrow-resnet18": narrow_resnet18,
    "small": small,
}
