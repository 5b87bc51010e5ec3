"""Texts as tokens: the bytes of train.txt and test.txt in a folder.

A sample is so many consecutive tokens of a text, and its labels are the token
behind each; samples do not overlap. Finding and reading are apart, as in
cifar10.py.
"""

import os

FILES = {"training": "train.txt", "test": "test.txt"}


class Split:
    """The first samples of a text, found but not read yet."""

    def __init__(self, folder, what, sequence, samples):
        """Looks at the file; samples = 0 asks for all that there are."""
        self.path = os.path.join(folder, FILES[what])
        self.sequence = sequence
        try:
            size = os.path.getsize(self.path)
        except FileNotFoundError:
            raise ValueError(f"{self.path} is missing; a text's folder has"
                             " train.txt and test.txt") from None
        # One byte more than the last sample: its last label.
        available = (size - 1) // sequence
        if available < 1:
            raise ValueError(f"{self.path} has {size} bytes, fewer than one"
                             f" sequence of {sequence} and the byte behind it")
        if not 0 <= samples <= available:
            raise ValueError(f"{self.path}: {samples} {what} samples asked"
                             f" for, the text has {available} of {sequence}"
                             " bytes")
        self.samples = samples or available
        self.bytes = self.samples * sequence + 1


def find(point):
    """The training and the test split of a point."""
    data = point["data"]
    sequence = (point["workload"].get("sequence")
                or point.get("architecture", {}).get("sequence"))
    if not sequence:
        raise ValueError("workload.sequence is not set: a sample of a text is"
                         " so many tokens")
    return (Split(data["path"], "training", sequence, data["train_samples"]),
            Split(data["path"], "test", sequence, data["test_samples"]))
