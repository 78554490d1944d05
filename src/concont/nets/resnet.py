"""The paper's backbone."""

import torch
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, ResNet

from concont.nets.idle import conv_norm


class ResNet18(ResNet):  # type: ignore[misc]
    """ResNet-18 for 32 x 32 images: 3 x 3 stem of stride 1, no max-pool; 512 features.

    torchvision's network but for that; through the first `idle` rows of a training pass no
    gradient flows.
    """

    idle = 0

    def __init__(self, channels: int, init: str) -> None:
        super().__init__(BasicBlock, [2, 2, 2, 2])
        self.conv1 = nn.Conv2d(channels, 64, kernel_size=3, padding=1, bias=False)
        nn.init.kaiming_normal_(self.conv1.weight, mode="fan_out", nonlinearity="relu")
        del self.maxpool, self.fc
        if init == "torch":
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    module.reset_parameters()

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, 512)."""
        idle = self.idle if self.training and torch.is_grad_enabled() else 0
        x = conv_norm(x, self.conv1, self.bn1, idle)
        for block in (*self.layer1, *self.layer2, *self.layer3, *self.layer4):
            inner = conv_norm(x, block.conv1, block.bn1, idle)
            shortcut = x
            if block.downsample is not None:
                widen, rescale = block.downsample
                shortcut = conv_norm(x, widen, rescale, idle, act=False)
            x = conv_norm(inner, block.conv2, block.bn2, idle, shortcut)
        return x.mean(dim=(2, 3))
