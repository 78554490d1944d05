"""The bodies that turn images into features."""

from collections.abc import Callable

from torch import nn


def resnet18(channels: int, width: int) -> nn.Module:
    """ResNet-18 for 32 x 32 images: 3 x 3 stem of stride 1, no max-pool; 512 features."""
    from torchvision.models import resnet18 as imagenet_resnet18

    body: nn.Module = imagenet_resnet18()
    body.conv1 = nn.Conv2d(channels, 64, kernel_size=3, padding=1, bias=False)
    nn.init.kaiming_normal_(body.conv1.weight, mode="fan_out", nonlinearity="relu")
    body.maxpool = nn.Identity()
    body.fc = nn.Identity()
    return body


def small(channels: int, width: int) -> nn.Module:
    """Five convolutions for tiny images such as 8 x 8 digits; 4 * width features."""

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


BACKBONES: dict[str, Callable[[int, int], nn.Module]] = {"resnet18": resnet18, "small": small}
