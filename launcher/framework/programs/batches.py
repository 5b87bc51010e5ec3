"""The samples of a data set as NumPy arrays; see samples.py."""

import numpy

import cifar10
from samples import PADDING

array = numpy.asarray


def shuffled(samples, seed):
    return numpy.random.default_rng(seed).permutation(samples)


def transforms(samples, seed):
    draw = numpy.random.default_rng(seed)
    corner = draw.integers(0, 2 * PADDING + 1, (samples, 2))
    mirror = draw.integers(0, 2, (samples, 1))
    return numpy.concatenate((corner, mirror), 1)


def images_and_labels(split):
    records = numpy.frombuffer(split.read(), dtype=numpy.uint8)
    records = records.reshape(-1, cifar10.RECORD)
    planes = records[:, 1:].reshape(-1, cifar10.CHANNELS, cifar10.HEIGHT,
                                    cifar10.WIDTH)
    return (numpy.ascontiguousarray(planes.transpose(0, 2, 3, 1)),
            records[:, 0].astype(numpy.int64))


def normalised(images, transforms=None):
    """Images ready for a model, float32 [samples, height, width, channel]."""
    mean = numpy.array(cifar10.MEAN, numpy.float32)
    deviation = numpy.array(cifar10.STD, numpy.float32)
    x = (images.astype(numpy.float32) / numpy.float32(255) - mean) / deviation
    if transforms is None:
        return x
    x = numpy.pad(x, ((0, 0), (PADDING, PADDING), (PADDING, PADDING), (0, 0)))
    column, row, mirror = transforms.T[:, :, None]
    ahead = numpy.arange(cifar10.WIDTH)[None, :]
    columns = column + numpy.where(mirror == 1, ahead[:, ::-1], ahead)
    rows = row + numpy.arange(cifar10.HEIGHT)
    each = numpy.arange(len(images))[:, None, None]
    return x[each, rows[:, :, None], columns[:, None, :]]


def ids_of(path, count, width):
    return numpy.memmap(path, f"<u{width}", "r", shape=(count,))


def tokens(ids):
    return ids.astype(numpy.int32)
