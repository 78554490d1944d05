"""The paper's backbone."""

import torch.nn.functional as F
from torch import Tensor, nn
from torchvision.models.resnet import BasicBlock, ResNet


class UncountedBatchNorm(nn.BatchNorm2d):
    """BatchNorm but for its count of batches: a kernel a layer, for what nothing here reads."""

    def forward(self, inputs: Tensor) -> Tensor:
        """As PyTorch's own."""
        running, momentum = (self.running_mean, self.running_var), self.momentum or 0.0
        learned = (self.weight, self.bias)
        return F.batch_norm(inputs, *running, *learned, self.training, momentum, self.eps)


class ResNet18(ResNet):  # type: ignore[misc]
    """ResNet-18 with a stem for the images' size; 8 * width features.

    torchvision's network but for that: with the stem `whole`, for 32 x 32 images, 3 x 3 of stride 1
    and no max-pool; with `half` the same of stride 2; with `quarter` torchvision's own.
    """

    def __init__(self, channels: int, init: str, width: int = 64, stem: str = "whole") -> None:
        super().__init__(BasicBlock, [2, 2, 2, 2], norm_layer=UncountedBatchNorm)
        if width != self.bn1.num_features:
            self._narrow(width)
        side, stride = (7 if stem == "quarter" else 3), (1 if stem == "whole" else 2)
        self.conv1 = nn.Conv2d(channels, width, side, stride, padding=side // 2, bias=False)
        nn.init.kaiming_normal_(self.conv1.weight, mode="fan_out", nonlinearity="relu")
        self.fc = nn.Identity()
        if stem != "quarter":
            self.maxpool = nn.Identity()
        if init == "torch":
            for module in self.modules():
                if isinstance(module, nn.Conv2d):
                    module.reset_parameters()

    def _narrow(self, width: int) -> None:
        """The same layers with another number of channels, initialised as torchvision's are."""
        self.inplanes, self.bn1 = width, UncountedBatchNorm(width)
        for number in range(4):
            layer = self._make_layer(BasicBlock, width * 2**number, 2, stride=1 + (number > 0))
            setattr(self, f"layer{number + 1}", layer)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
