"""A model and a data set of the user's own, as functions in Python files.

The study says model = "my_model.py:build" or data.kind = "my_data.py:load";
the files lie in the run folder as they were when the run was made. Both
functions are called with the run's point, a dict with the keys of the study
file, and with those of its [parameters] that they have an argument for. This
module knows no framework.
"""

import functools
import importlib.util
import inspect
import os
import sys

import scalebench


def is_own(name):
    """Whether a model or a kind of data is a function of the user's own."""
    return ".py:" in name


@functools.cache
def function(name):
    """The function that "my_model.py:build" names."""
    path, _, attribute = name.rpartition(":")
    path = os.path.join(scalebench.run_folder(), "own", os.path.basename(path))
    module_name = os.path.splitext(os.path.basename(path))[0]
    folder = os.path.dirname(path)
    if folder not in sys.path:
        sys.path.append(folder)  # the files may import each other
    spec = importlib.util.spec_from_file_location(module_name, path)
    module = importlib.util.module_from_spec(spec)
    # Under its own name, as an import of it would find it; ours go first.
    sys.modules.setdefault(module_name, module)
    try:
        spec.loader.exec_module(module)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"{name}: {error}; the run folder holds only those of your files"
            " that the study names: put what they import into one of them, or"
            " install it as a package", name=error.name) from error
    found = getattr(module, attribute, None)
    if not callable(found):
        raise TypeError(f"{name}: the file has no function {attribute}")
    return found


def call(name, point):
    """What the function returns for the point. A parameter that no function of
    the study takes is an error: every value of it would run the same."""
    f, arguments = function(name), {}
    for parameter, value in point.get("parameters", {}).items():
        names = [n for n in (point["workload"]["model"], point["data"]["kind"])
                 if is_own(n)]
        if not any(_takes(function(n), parameter) for n in names):
            raise TypeError(f"parameters.{parameter}: no argument of that name"
                            f" in {' or '.join(names)}")
        if _takes(f, parameter):
            arguments[parameter] = value
    return f(point, **arguments)


def _takes(f, name):
    """Whether the function has a keyword argument of that name behind its
    first, or takes any."""
    arguments = list(inspect.signature(f).parameters.values())
    return any(a.kind is a.VAR_KEYWORD for a in arguments) or any(
        a.name == name and a.kind in (a.POSITIONAL_OR_KEYWORD, a.KEYWORD_ONLY)
        for a in arguments[1:])


def load(point):
    """The training and the test split of the user's data: two pairs of inputs
    and targets, of which the first axis is the samples, cut to the point's
    train_samples and test_samples."""
    data = point["data"]
    splits = call(data["kind"], point)
    if not (_is_pair(splits) and all(_is_pair(split) for split in splits)):
        raise TypeError(
            f'{data["kind"]} must return (inputs, targets), (inputs, targets):'
            " the training and the test split")
    return tuple(
        _cut(data["kind"], what, split, data[what + "_samples"])
        for what, split in zip(("train", "test"), splits))


def _is_pair(value):
    return isinstance(value, (tuple, list)) and len(value) == 2


def _cut(name, what, split, samples):
    inputs, targets = split
    if len(inputs) != len(targets) or len(inputs) == 0:
        raise ValueError(f"{name}: the {what} split has {len(inputs)} inputs"
                         f" and {len(targets)} targets")
    if samples > len(inputs):
        raise ValueError(f"{name}: {samples} {what} samples asked for, the"
                         f" data set has {len(inputs)}")
    samples = samples or len(inputs)
    return inputs[:samples], targets[:samples]
