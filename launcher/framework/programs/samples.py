"""What is trained on, as batches of a framework's arrays.

A data set says how large it is before the training clock starts and is read
when it has: found, then read. The order of an epoch is the same on all ranks,
however many there are.

What differs between kinds of arrays, and whose random numbers decide, is a
module, arrays here; batches.py is NumPy's and pytorch_data.py PyTorch's:

    array(values)                  -> values as an array
    shuffled(samples, seed)        -> an order of so many samples
    transforms(samples, seed)      -> where each is cropped, and whether it is
                                   mirrored, as normalised takes them
    images_and_labels(split)       -> a split of CIFAR-10 as bytes in memory,
                                   [samples, height, width, channel], and the
                                   labels
    normalised(images, transforms) -> images as a model takes them
    ids_of(path, count, width)     -> the first ids of a file, of so many bytes
                                   each, read as they are asked for
    tokens(ids)                    -> ids as a model takes them

A transform says which 32×32 window of the padded image is taken, by its corner
(x, y), and whether it is mirrored. Padding is zero after normalising, that is,
of the mean colour.
"""

import cifar10
import own
import recipe
import text

PADDING = 4  # pixels of zeros around an image before it is cropped


def find(point, arrays):
    """The data set of a point."""
    kind = point["data"]["kind"]
    if own.is_own(kind):
        return Own(point, arrays)
    if kind == "cifar10":
        return Images(point, arrays)
    if kind in text.FILES:
        return Text(point, arrays)
    raise ValueError(f'data.kind is "{kind}"; valid: "cifar10", "text",'
                     ' "tokens", or a function of your own, like'
                     ' "my_data.py:load"')


class _Data:
    """train_samples and test_samples; inputs and labels of both splits once
    they are read."""

    def shuffle(self, seed, epoch):
        """Draws the order of an epoch, and what becomes of each sample."""
        self._order = self._arrays.shuffled(
            self.train_samples, recipe.stream(seed, "order", epoch))

    def batch(self, start, end):
        """Inputs and labels of that part of the epoch's order."""
        ids = self._order[start:end]
        return self.training[0][ids], self.training[1][ids]

    def test_batch(self, start, end):
        """Inputs and labels of that part of the test split."""
        return self.test[0][start:end], self.test[1][start:end]


class Own(_Data):
    """The user's own data set: its arrays are used as they are.

    Nobody but the user's function knows how large it is, so that it is read
    before the training clock starts.
    """

    def __init__(self, point, arrays):
        self._arrays = arrays
        self.training, self.test = (tuple(map(arrays.array, split))
                                    for split in own.load(point))
        self.train_samples = len(self.training[0])
        self.test_samples = len(self.test[0])

    def read(self):
        pass


class Images(_Data):
    """CIFAR-10's binary files, cropped and mirrored where the point says so.
    """

    def __init__(self, point, arrays):
        data = point["data"]
        self._arrays, self._augment = arrays, point["workload"]["augment"]
        self._splits = cifar10.find(data["path"], data["train_samples"],
                                    data["test_samples"])
        self.train_samples, self.test_samples = (
            split.samples for split in self._splits)

    def read(self):
        self.training, self.test = map(self._arrays.images_and_labels,
                                       self._splits)

    def shuffle(self, seed, epoch):
        super().shuffle(seed, epoch)
        self._transforms = None
        if self._augment:
            self._transforms = self._arrays.transforms(
                self.train_samples, recipe.stream(seed, "augment", epoch))

    def batch(self, start, end):
        images, labels = super().batch(start, end)
        transforms = None
        if self._augment:
            transforms = self._transforms[self._order[start:end]]
        return self._arrays.normalised(images, transforms), labels

    def test_batch(self, start, end):
        images, labels = super().test_batch(start, end)
        return self._arrays.normalised(images), labels


class Text(_Data):
    """The sequences of a text, each with the tokens behind its own."""

    def __init__(self, point, arrays):
        self._arrays = arrays
        *self._splits, self._vocabulary = text.find(point)
        self.sequence = self._splits[0].sequence
        self.train_samples, self.test_samples = (
            split.samples for split in self._splits)

    def read(self):
        self.training, self.test = map(self._sequences, self._splits)

    def _sequences(self, split):
        read = self._arrays.ids_of(split.path, split.tokens, split.width)
        return (read[:-1].reshape(-1, split.sequence),
                read[1:].reshape(-1, split.sequence))

    def batch(self, start, end):
        return self._tokens(super().batch(start, end), self._splits[0])

    def test_batch(self, start, end):
        return self._tokens(super().test_batch(start, end), self._splits[1])

    def _tokens(self, pair, split):
        """As a model takes them, if it knows them all: an index beyond its
        embeddings would be an error of a device, or nobody's."""
        pair = tuple(map(self._arrays.tokens, pair))
        if self._vocabulary and len(pair[0]):
            for ids in pair:
                for id in (int(ids.min()), int(ids.max())):
                    if not 0 <= id < self._vocabulary:
                        raise ValueError(
                            f"{split.path} has the token {id}, and the model"
                            f" knows those below {self._vocabulary}; set"
                            " vocabulary= in workload.model to that of the"
                            " tokenizer")
        return pair
