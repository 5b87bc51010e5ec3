"""The native trainer's models in Keras, the same to the last weight.

Images are NHWC. Parameters go in and out as one vector in the native trainer's
order, in which the output channels of a convolution come first.
"""

import math

import numpy
import tensorflow as tf

import own

layers = tf.keras.layers


def _convolution(x, outputs, stride):
    # Keras's "same" would pad a halving convolution below and right only.
    x = layers.ZeroPadding2D(1)(x)
    return layers.Conv2D(outputs, 3, strides=stride, use_bias=False)(x)


def _norm(x):
    # As in PyTorch. The running variance is the unbiased one, since this
    # layer is computed by TensorFlow's fused kernel.
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5)(x)


def _block(x, outputs, stride):
    """A residual block whose shortcut has no parameters.

    Where the block halves the image it takes every second pixel of every
    second row, and where it widens, it puts channels of zeros on both sides
    (option A of He et al. 2016).
    """
    branch = layers.ReLU()(_norm(_convolution(x, outputs, stride)))
    branch = _norm(_convolution(branch, outputs, 1))
    if stride > 1:
        x = layers.MaxPooling2D(1, strides=stride)(x)
    pad = (outputs - x.shape[-1]) // 2
    if pad:
        x = tf.pad(x, ((0, 0), (0, 0), (0, 0), (pad, pad)))
    return layers.ReLU()(branch + x)


def _resnet(x, blocks):
    """The CIFAR network of He et al. 2016, section 4.2, 6·blocks + 2 deep."""
    x = layers.ReLU()(_norm(_convolution(x, 16, 1)))
    for stage, outputs in enumerate((16, 32, 64)):
        for block in range(blocks):
            x = _block(x, outputs, 2 if stage > 0 and block == 0 else 1)
    return layers.Dense(10)(layers.GlobalAveragePooling2D()(x))


def _cnn(x):
    """Three convolutions of stride 2 with batch norm, and a linear layer."""
    for outputs in (16, 32, 64):
        x = layers.ReLU()(_norm(_convolution(x, outputs, 2)))
    return layers.Dense(10)(layers.GlobalAveragePooling2D()(x))


def _mlp(x):
    """Hidden layers of 1024 and 512: little to compute for its gradients."""
    x = layers.Flatten()(x)
    x = layers.Dense(1024, activation="relu")(x)
    x = layers.Dense(512, activation="relu")(x)
    return layers.Dense(10)(x)


MODELS = {
    "resnet20": lambda x: _resnet(x, 3),
    "resnet32": lambda x: _resnet(x, 5),
    "resnet44": lambda x: _resnet(x, 7),
    "resnet56": lambda x: _resnet(x, 9),
    "cnn": _cnn,
    "mlp": _mlp,
}


def build(point, seed, sample):
    """The model of a point: the user's own, with the weights that it gives
    itself, which it may do only once it has seen a sample, a batch of one; or
    one of ours with He initialisation (He et al. 2015, equation 10)."""
    name = point["workload"]["model"]
    if own.is_own(name):
        tf.keras.utils.set_random_seed(seed & 0xffffffff)
        model = own.call(name, point)
        if not isinstance(model, tf.keras.Model):
            raise TypeError(f"{name} must return a tf.keras.Model, not a"
                            f" {type(model).__name__}")
        if not model.built:
            model(sample)
        return model
    if name not in MODELS:
        raise ValueError(f'unknown model "{name}"; valid: '
                         + ", ".join(sorted(MODELS)))
    x = tf.keras.Input((32, 32, 3))
    model = tf.keras.Model(x, MODELS[name](x))
    draw = numpy.random.default_rng(seed)
    for weight in model.trainable_variables:
        if len(weight.shape) > 1:
            fan_in = math.prod(weight.shape[:-1])
            weight.assign(draw.normal(0, math.sqrt(2 / fan_in), weight.shape))
    return model


def flat(model):
    """All parameters as one float32 vector."""
    return join(weight.numpy() for weight in model.trainable_variables)


def join(weights):
    """Arrays in Keras's layout as such a vector."""
    return numpy.concatenate([numpy.moveaxis(w, -1, 0).reshape(-1)
                              for w in weights]).astype(numpy.float32)


def load(model, vector):
    """Sets all parameters from such a vector."""
    at = 0
    for weight in model.trainable_variables:
        shape = (weight.shape[-1], *weight.shape[:-1])
        part = vector[at:at + math.prod(shape)]
        at += len(part)
        weight.assign(numpy.moveaxis(part.reshape(shape), 0, -1))
    if at != len(vector):
        raise ValueError(f"{len(vector)} parameters for a model of {at}")


def statistics(model):
    """What a model averages as it trains: of each batch normalisation, mean
    then variance."""
    return [average for average in model.non_trainable_variables
            if average.dtype.is_floating]


class SGD(tf.keras.optimizers.legacy.SGD):
    """Stochastic gradient descent with momentum, as the native trainer's.

        v ← momentum·v + gradient + weight_decay·w
        w ← w − rate·v

    Keras's own keeps the rate within v, so that a changed rate takes effect
    only as v is forgotten, and its weight decay does not pass through v.
    """

    def __init__(self, learning_rate=0.0, momentum=0.0, weight_decay=0.0,
                 name="SGD", **kwargs):
        super().__init__(learning_rate, momentum, name=name, **kwargs)
        self.weight_decay = weight_decay

    def get_config(self):
        return {**super().get_config(), "weight_decay": self.weight_decay}

    def _resource_apply_dense(self, grad, var, apply_state=None):
        rate = self._decayed_lr(var.dtype)
        grad = grad + self.weight_decay * var
        if not self._momentum:
            return tf.raw_ops.ResourceApplyGradientDescent(
                var=var.handle, alpha=rate, delta=grad)
        return tf.raw_ops.ResourceApplyMomentum(
            var=var.handle, accum=self.get_slot(var, "momentum").handle,
            lr=rate, grad=grad,
            momentum=self._get_hyper("momentum", var.dtype))

    def _resource_apply_sparse_duplicate_indices(self, grad, var, indices,
                                                 **kwargs):
        # For example of an embedding: all of its rows decay and keep their
        # momentum, as in the other frameworks.
        return self._resource_apply_dense(tf.convert_to_tensor(
            tf.IndexedSlices(grad, indices, var.shape)), var, **kwargs)
