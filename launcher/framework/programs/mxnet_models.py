"""The native trainer's models in MXNet's Gluon, the same to the last weight.

Images come as NHWC and are computed on as NCHW. Parameters go in and out as
one vector in the native trainer's order, in which a convolution has its input
channels last.
"""

import math

import mxnet
import numpy
from mxnet.gluon import nn

import own


class Planes(nn.HybridBlock):
    """Images from NHWC to NCHW."""

    def hybrid_forward(self, F, x):
        return F.transpose(x, (0, 3, 1, 2))


class Block(nn.HybridBlock):
    """A residual block whose shortcut has no parameters.

    Where the block halves the image it takes every second pixel of every
    second row, and where it widens, it puts channels of zeros on both sides
    (option A of He et al. 2016).
    """

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.branch = nn.HybridSequential()
        self.branch.add(_convolution(inputs, outputs, stride), _norm(outputs),
                        nn.Activation("relu"),
                        _convolution(outputs, outputs, 1), _norm(outputs))
        self._stride, self._pad = stride, (outputs - inputs) // 2

    def hybrid_forward(self, F, x):
        branch = self.branch(x)
        if self._stride > 1:
            x = F.slice(x, begin=(None,) * 4, end=(None,) * 4,
                        step=(1, 1, self._stride, self._stride))
        if self._pad:
            # MXNet's pad takes the axes of an image only.
            zeros = F.zeros_like(
                F.slice_axis(x, axis=1, begin=0, end=self._pad))
            x = F.concat(zeros, x, zeros, dim=1)
        return F.relu(branch + x)


def _convolution(inputs, outputs, stride):
    return nn.Conv2D(outputs, 3, strides=stride, padding=1, use_bias=False,
                     in_channels=inputs)


def _norm(channels):
    return nn.BatchNorm(momentum=0.9, epsilon=1e-5, in_channels=channels)


def _sequence(*layers):
    net = nn.HybridSequential()
    net.add(*layers)
    return net


def _resnet(blocks):
    """The CIFAR network of He et al. 2016, section 4.2, 6·blocks + 2 deep."""
    layers = [Planes(), _convolution(3, 16, 1), _norm(16),
              nn.Activation("relu")]
    inputs = 16
    for stage, outputs in enumerate((16, 32, 64)):
        for block in range(blocks):
            stride = 2 if stage > 0 and block == 0 else 1
            layers.append(Block(inputs, outputs, stride))
            inputs = outputs
    return _sequence(*layers, nn.GlobalAvgPool2D(), nn.Dense(10, in_units=64))


def _cnn():
    """Three convolutions of stride 2 with batch norm, and a linear layer."""
    layers, inputs = [Planes()], 3
    for outputs in (16, 32, 64):
        layers += [_convolution(inputs, outputs, 2), _norm(outputs),
                   nn.Activation("relu")]
        inputs = outputs
    return _sequence(*layers, nn.GlobalAvgPool2D(), nn.Dense(10, in_units=64))


def _mlp():
    """Hidden layers of 1024 and 512: little to compute for its gradients."""
    return _sequence(nn.Dense(1024, activation="relu", in_units=3072),
                     nn.Dense(512, activation="relu", in_units=1024),
                     nn.Dense(10, in_units=512))


MODELS = {
    "resnet20": lambda: _resnet(3),
    "resnet32": lambda: _resnet(5),
    "resnet44": lambda: _resnet(7),
    "resnet56": lambda: _resnet(9),
    "cnn": _cnn,
    "mlp": _mlp,
}


def build(point, seed):
    """The model of a point: the user's own, with the weights that it gives
    itself, or one of ours with He initialisation (He et al. 2015, equation
    10)."""
    name = point["workload"]["model"]
    if own.is_own(name):
        mxnet.random.seed(seed & 0x7fffffff)
        numpy.random.seed(seed & 0x7fffffff)  # MXNet's initialisers draw here
        model = own.call(name, point)
        if not isinstance(model, nn.Block):
            raise TypeError(f"{name} must return a mxnet.gluon.Block, not a"
                            f" {type(model).__name__}")
        return model
    if name not in MODELS:
        raise ValueError(f'unknown model "{name}"; MXNet has: '
                         + ", ".join(sorted(MODELS)))
    model = MODELS[name]()
    model.initialize()
    draw = numpy.random.default_rng(seed)
    for p in parameters(model):
        if len(p.shape) > 1:
            fan_in = math.prod(p.shape[1:])
            p.set_data(mxnet.nd.array(
                draw.normal(0, math.sqrt(2 / fan_in), p.shape)))
    return model


def parameters(model):
    """What is trained, in order."""
    return [p for p in model.collect_params().values() if p.grad_req != "null"]


def flat(model):
    """All parameters as one float32 vector."""
    # A convolution or a dense layer that the engine still computes puts its
    # weights into oneDNN's order when it gets there, under asnumpy's hands,
    # which then reads some of both.
    mxnet.nd.waitall()
    return numpy.concatenate([_out(p.data().asnumpy())
                              for p in parameters(model)]).astype("float32")


def _out(array):
    if array.ndim == 4:
        array = numpy.moveaxis(array, 1, -1)
    return array.reshape(-1)


def load(model, vector):
    """Sets all parameters from such a vector."""
    at = 0
    for p in parameters(model):
        part = vector[at:at + math.prod(p.shape)]
        at += len(part)
        if len(p.shape) == 4:
            out, channels, height, width = p.shape
            part = numpy.moveaxis(
                part.reshape(out, height, width, channels), -1, 1)
        p.set_data(mxnet.nd.array(part.reshape(p.shape)))
    if at != len(vector):
        raise ValueError(f"{len(vector)} parameters for a model of {at}")


def statistics(model):
    """The running averages of batch normalisation, mean then variance, as
    MXNet's parameters."""
    return [average for norm in norms(model)
            for average in (norm.running_mean, norm.running_var)]


def norms(model):
    """The layers of batch normalisation, in order."""
    found = []
    model.apply(lambda layer: found.append(layer)
                if isinstance(layer, nn.BatchNorm) else None)
    return found


class Variances:
    """Makes the running variances of batch norm those of the other trainers.

    MXNet averages the biased variances of the batches, the others the unbiased
    ones, m/(m − 1) as large where a batch has m values of a channel. Averages
    are linear: one that starts at (m − 1)/m of the true value and takes up
    biased variances is (m − 1)/m of the average of unbiased ones. So it is
    scaled down before training goes on and up again before it is looked at.
    """

    def __init__(self, model, sample):
        """Learns from a sample, a batch of one, how large each layer's input
        is; parameters of yet unknown shape are made, too."""
        self._values = {}  # of a channel, by layer
        hooks = [norm.register_forward_hook(self._measure)
                 for norm in norms(model)]
        model(sample)
        for hook in hooks:
            hook.detach()
        self._batch = None  # samples; None: they are true

    def _measure(self, norm, inputs, output):
        self._values[norm] = (
            math.prod(inputs[0].shape) // norm.running_var.shape[0])

    def train(self, batch):
        """Before steps on so many samples."""
        if self._batch is None:
            self._batch = batch
            self._scale(lambda m: (m - 1) / m)

    def look(self):
        """Before they are looked at or averaged over ranks."""
        if self._batch is not None:
            self._scale(lambda m: m / (m - 1))
            self._batch = None

    def _scale(self, factor):
        for norm, values in self._values.items():
            if values * self._batch > 1:
                average = norm.running_var.data()
                average *= factor(values * self._batch)
