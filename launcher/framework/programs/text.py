"""Texts as tokens: the bytes of train.txt and test.txt in a folder, or the ids
of train.bin and val.bin.

A sample is so many consecutive tokens of a text, and its labels are the token
behind each; samples do not overlap. Finding and reading are apart, as in
cifar10.py.
"""

import json
import os

FILES = {"text": {"training": "train.txt", "test": "test.txt"},
         "tokens": {"training": "train.bin", "test": "val.bin"}}
ABOUT = "tokens.json"


class Split:
    """The first samples of a text, found but not read yet: so many tokens, of
    so many bytes each."""

    def __init__(self, folder, kind, what, width, sequence, samples):
        """Looks at the file; samples = 0 asks for all that there are."""
        files = FILES[kind]
        self.path = os.path.join(folder, files[what])
        self.width, self.sequence = width, sequence
        try:
            size = os.path.getsize(self.path)
        except FileNotFoundError:
            raise ValueError(f"{self.path} is missing; a folder of {kind} has"
                             f" {' and '.join(files.values())}") from None
        if size % width:
            raise ValueError(f"{self.path} has {size} bytes, which are no"
                             f" whole ids of {width}; it is cut off or not of"
                             " tokens")
        # One token more than the last sample: its last label.
        available = (size // width - 1) // sequence
        if available < 1:
            raise ValueError(f"{self.path} has {size} bytes, fewer than one"
                             f" sequence of {sequence} tokens and the one"
                             " behind it")
        if not 0 <= samples <= available:
            raise ValueError(f"{self.path}: {samples} {what} samples asked"
                             f" for, it has {available} of {sequence}"
                             " tokens")
        self.samples = samples or available
        self.tokens = self.samples * sequence + 1


def find(point):
    """The training and the test split of a point, and how many tokens its
    model knows; 0: unknown."""
    data = point["data"]
    architecture = point.get("architecture", {})
    sequence = (point["workload"].get("sequence")
                or architecture.get("sequence"))
    if not sequence:
        raise ValueError("workload.sequence is not set: a sample of a text is"
                         " so many tokens")
    vocabulary = architecture.get("vocabulary", 0)
    width = 1
    if data["kind"] == "tokens":
        width = _width(data["path"], vocabulary)
    splits = (Split(data["path"], data["kind"], what, width, sequence, samples)
              for what, samples in (("training", data["train_samples"]),
                                    ("test", data["test_samples"])))
    return (*splits, vocabulary)


def _width(folder, vocabulary):
    """Bytes of an id, which tokens.json says; 2 if there is none, as nanoGPT
    writes them."""
    path = os.path.join(folder, ABOUT)
    try:
        with open(path, encoding="utf-8") as file:
            about = json.load(file)
        width, known = about["bytes"], about["vocabulary"]
        if about["format"] != 1 or width not in (2, 4) or known < 1:
            raise ValueError("its format, bytes or vocabulary is none known")
    except FileNotFoundError:
        return 2
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if vocabulary and known > vocabulary:
        raise ValueError(f"{path}: the tokens are of a vocabulary of {known},"
                         f" and the model knows {vocabulary}; set"
                         f" vocabulary={known} in workload.model")
    return width
