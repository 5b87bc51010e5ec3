"""The native trainer's models in PyTorch, the same to the last weight.

Images are NCHW as PyTorch has them, best in its channels-last memory format.
"""

import math

import torch
from torch import nn
from torch.nn import functional

import own


def _convolution(inputs, outputs, stride):
    return nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)


class Block(nn.Module):
    """A residual block whose shortcut has no parameters.

    Where the block halves the image it takes every second pixel of every
    second row, and where it widens, it puts channels of zeros on both sides
    (option A of He et al. 2016).
    """

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.convolution1 = _convolution(inputs, outputs, stride)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.convolution2 = _convolution(outputs, outputs, 1)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.stride, self.pad = stride, (outputs - inputs) // 2

    def forward(self, x):
        branch = functional.relu(self.norm1(self.convolution1(x)))
        branch = self.norm2(self.convolution2(branch))
        if self.stride > 1 or self.pad:
            x = functional.pad(x[:, :, ::self.stride, ::self.stride],
                               (0, 0, 0, 0, self.pad, self.pad))
        return functional.relu(branch + x)


class Average(nn.Module):
    """The mean of each channel over the image."""

    def forward(self, x):
        return x.mean((2, 3))


class Pixels(nn.Module):
    """An image as a row of pixels, each with its channels."""

    def forward(self, x):
        return x.permute(0, 2, 3, 1).flatten(1)


def resnet(blocks):
    """The CIFAR network of He et al. 2016, section 4.2, 6·blocks + 2 deep."""
    layers = [_convolution(3, 16, 1), nn.BatchNorm2d(16), nn.ReLU()]
    inputs = 16
    for stage, outputs in enumerate((16, 32, 64)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Block(inputs, outputs, stride))
            inputs = outputs
    return nn.Sequential(*layers, Average(), nn.Linear(64, 10))


def cnn():
    """Three convolutions of stride 2 with batch norm, and a linear layer."""
    layers, inputs = [], 3
    for outputs in (16, 32, 64):
        layers += [_convolution(inputs, outputs, 2), nn.BatchNorm2d(outputs),
                   nn.ReLU()]
        inputs = outputs
    return nn.Sequential(*layers, Average(), nn.Linear(64, 10))


def mlp():
    """Hidden layers of 1024 and 512: little to compute for its gradients."""
    return nn.Sequential(Pixels(), nn.Linear(3072, 1024), nn.ReLU(),
                         nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 10))


MODELS = {
    "resnet20": lambda: resnet(3),
    "resnet32": lambda: resnet(5),
    "resnet44": lambda: resnet(7),
    "resnet56": lambda: resnet(9),
    "cnn": cnn,
    "mlp": mlp,
}


def build(point, seed):
    """The model of a point: the user's own, with the weights that it gives
    itself, or one of ours with He initialisation (He et al. 2015, equation
    10)."""
    name = point["workload"]["model"]
    if own.is_own(name):
        torch.manual_seed(seed)
        model = own.call(name, point)
        if not isinstance(model, nn.Module):
            raise TypeError(f"{name} must return a torch.nn.Module, not a"
                            f" {type(model).__name__}")
        return model
    if "architecture" in point:
        import pytorch_decoder  # takes NumPy, which the others do not
        return pytorch_decoder.fill(pytorch_decoder.build(point), "cpu", seed)
    if name not in MODELS:
        raise ValueError(f'unknown model "{name}"; PyTorch has: '
                         + ", ".join(sorted(MODELS)))
    model = MODELS[name]()
    generator = torch.Generator().manual_seed(seed)
    for layer in model.modules():
        if isinstance(layer, (nn.Conv2d, nn.Linear)):
            fan_in = layer.weight[0].numel()
            with torch.no_grad():
                layer.weight.normal_(0, math.sqrt(2 / fan_in),
                                     generator=generator)
                if layer.bias is not None:
                    layer.bias.zero_()
    return model


def vectors(model):
    """Each parameter as a vector, in the native trainer's order: its
    convolutions have their input channels last."""
    for p in model.parameters():
        p = p.detach()
        p = p.permute(0, 2, 3, 1) if p.dim() == 4 else p
        yield p.reshape(-1).float().cpu()


def flat(model):
    """All parameters as one vector."""
    return torch.cat(list(vectors(model)))


def load(model, vector):
    """Sets all parameters from such a vector."""
    at = 0
    with torch.no_grad():
        for p in model.parameters():
            part = vector[at:at + p.numel()]
            at += p.numel()
            if p.dim() == 4:
                out, channels, height, width = p.shape
                part = part.view(out, height, width, channels)
                p.copy_(part.permute(0, 3, 1, 2))
            else:
                p.copy_(part.view_as(p))
    if at != vector.numel():
        raise ValueError(f"{vector.numel()} parameters for a model of {at}")


def statistics(model):
    """The running averages of batch normalisation, mean then variance."""
    return [buffer for layer in model.modules()
            if isinstance(layer, nn.modules.batchnorm._BatchNorm)
            for buffer in (layer.running_mean, layer.running_var)]
