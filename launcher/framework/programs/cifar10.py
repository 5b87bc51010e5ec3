"""Reads CIFAR-10's binary files.

Finding and reading are apart: find looks at names and sizes only, so that a
program knows how much data there is before its training clock starts, and read
touches the first datum.
"""

import os

CLASSES = 10
CHANNELS, HEIGHT, WIDTH = 3, 32, 32
IMAGE = CHANNELS * HEIGHT * WIDTH  # bytes: planes of red, green and blue
RECORD = 1 + IMAGE  # bytes: the label, then the image

TRAIN = [f"data_batch_{i}.bin" for i in range(1, 6)]
TEST = ["test_batch.bin"]

# Of the 50,000 training images, by channel. A pixel is used as
# (byte/255 − MEAN) / STD.
MEAN = (0.4914, 0.4822, 0.4465)
STD = (0.2470, 0.2435, 0.2616)


class Split:
    """The first records of some files, found but not read yet."""

    def __init__(self, folder, names, samples, what):
        """Looks at the files; samples = 0 asks for all that there are."""
        self.files = [(path, _records(path)) for path in
                      (os.path.join(folder, name) for name in names)]
        available = sum(records for _, records in self.files)
        if not 0 <= samples <= available:
            raise ValueError(f"{folder}: {samples} {what} samples asked for,"
                             f" the data set has {available}")
        self.samples = samples or available

    def read(self):
        """The records, one after the other, as a bytearray."""
        data = bytearray()
        for path, records in self.files:
            wanted = min(records, self.samples - len(data) // RECORD)
            with open(path, "rb") as file:
                part = file.read(wanted * RECORD)
            if len(part) < wanted * RECORD:
                raise ValueError(f"{path}: ends within record"
                                 f" {len(part) // RECORD + 1}; it was longer"
                                 " when it was opened")
            for i, label in enumerate(part[::RECORD]):
                if label >= CLASSES:
                    raise ValueError(
                        f"{path}: record {i + 1} (at byte {i * RECORD}) has"
                        f" label {label}, want 0 to {CLASSES - 1}; the file is"
                        " corrupt or not CIFAR-10's binary version")
            data += part
        return data


def find(folder, train_samples, test_samples):
    """The training and the test split of a folder.

    All six files must be there and whole, whether their records are used or
    not. Where they were copied to this node, that copy is read.
    """
    folder = os.environ.get("SCALEBENCH_DATA") or folder
    return (Split(folder, TRAIN, train_samples, "training"),
            Split(folder, TEST, test_samples, "test"))


def _records(path):
    try:
        size = os.path.getsize(path)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{path} is missing; the data folder must hold {TRAIN[0]} to"
            f" {TRAIN[-1]} and {TEST[0]} of CIFAR-10's binary version"
        ) from None
    if not os.path.isfile(path):
        raise ValueError(f"{path} is not a regular file")
    if size == 0:
        raise ValueError(f"{path} is empty")
    if size % RECORD:
        raise ValueError(
            f"{path} is cut short: {size} bytes are {size // RECORD} records"
            f" of {RECORD} bytes and {size % RECORD} bytes over; fetch it"
            " again")
    return size // RECORD
