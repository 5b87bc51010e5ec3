"""What is trained on, as batches of NumPy arrays.

A data set says how large it is before the training clock starts and is read
when it has: found, then read. The order of an epoch is the same on all ranks,
however many there are.
"""

import numpy

import cifar10
import own
import recipe

PADDING = 4  # pixels of zeros around an image before it is cropped


def find(point):
    """The data set of a point."""
    kind = point["data"]["kind"]
    if own.is_own(kind):
        return Own(point)
    if kind == "cifar10":
        return Images(point)
    raise ValueError(f'data.kind is "{kind}"; valid: "cifar10", or a function'
                     ' of your own, like "my_data.py:load"')


class _Data:
    """train_samples and test_samples; inputs and labels of both splits, as
    arrays, once they are read."""

    def shuffle(self, seed, epoch):
        """Draws the order of an epoch, and what becomes of each sample."""
        draw = numpy.random.default_rng(recipe.stream(seed, "order", epoch))
        self._order = draw.permutation(self.train_samples)
        self._transform(
            numpy.random.default_rng(recipe.stream(seed, "augment", epoch)))

    def batch(self, start, end):
        """Inputs and labels of that part of the epoch's order."""
        ids = self._order[start:end]
        return self._training_inputs(ids), self.training[1][ids]

    def test_batch(self, start, end):
        """Inputs and labels of that part of the test split."""
        return (self._test_inputs(slice(start, end)),
                self.test[1][start:end])


class Own(_Data):
    """The user's own data set: its arrays are used as they are.

    Nobody but the user's function knows how large it is, so that it is read
    before the training clock starts.
    """

    def __init__(self, point):
        self.training, self.test = (
            tuple(numpy.asarray(array) for array in split)
            for split in own.load(point))
        self.train_samples = len(self.training[0])
        self.test_samples = len(self.test[0])

    def read(self):
        pass

    def _transform(self, draw):
        pass

    def _training_inputs(self, ids):
        return self.training[0][ids]

    def _test_inputs(self, part):
        return self.test[0][part]


class Images(_Data):
    """CIFAR-10's binary files, cropped and mirrored where the point says so.
    """

    def __init__(self, point):
        data = point["data"]
        self._augment = point["workload"]["augment"]
        self._splits = cifar10.find(data["path"], data["train_samples"],
                                    data["test_samples"])
        self.train_samples, self.test_samples = (
            split.samples for split in self._splits)

    def read(self):
        self.training, self.test = map(images_and_labels, self._splits)

    def _transform(self, draw):
        corner = draw.integers(0, 2 * PADDING + 1, (self.train_samples, 2))
        mirror = draw.integers(0, 2, (self.train_samples, 1))
        self._transforms = numpy.concatenate((corner, mirror), 1)

    def _training_inputs(self, ids):
        transforms = self._transforms[ids] if self._augment else None
        return normalised(self.training[0][ids], transforms)

    def _test_inputs(self, part):
        return normalised(self.test[0][part])


def images_and_labels(split):
    """A split as bytes in memory, [samples, height, width, channel], and the
    labels."""
    records = numpy.frombuffer(split.read(), dtype=numpy.uint8)
    records = records.reshape(-1, cifar10.RECORD)
    planes = records[:, 1:].reshape(-1, cifar10.CHANNELS, cifar10.HEIGHT,
                                    cifar10.WIDTH)
    return (numpy.ascontiguousarray(planes.transpose(0, 2, 3, 1)),
            records[:, 0].astype(numpy.int64))


def normalised(images, transforms=None):
    """Images ready for a model, float32 [samples, height, width, channel].

    A transform says which 32×32 window of the padded image is taken, by its
    corner (x, y), and whether it is mirrored. Padding is zero after
    normalising, that is, of the mean colour.
    """
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
