"""Trains a model in PyTorch on one device, in the ways that people do.

    python3 pytorch.py DEVICE MODEL BATCH SECONDS [compiled]

pytorch_models.py and its modules are in the same folder. Prints a line of JSON
for each way: images per second, the median of five stretches that all ways
take in turn, with the least and the most; or why there is none. With
"compiled", the layout that is faster in eager mode is compiled as well. The
batch is on the device already: nothing is read or cropped.
"""

import itertools
import json
import signal
import statistics
import sys
import time

import torch
from torch.nn import functional

import pytorch_models

STRETCHES = 5
PATIENCE = 300  # s, for a way to compile and to warm up


def give_up(*_):
    raise TimeoutError(f"not ready after {PATIENCE} s")


class Way:
    """A model in a memory format and a precision, compiled or not."""

    def __init__(self, device, model, batch, name):
        torch.manual_seed(1)
        self.name, self._tf32 = name, name["precision"] == "tf32"
        self._cast = torch.autocast(device, torch.bfloat16,
                                    enabled=name["precision"] == "bf16")
        form = {"nchw": torch.contiguous_format,
                "channels_last": torch.channels_last}[name["layout"]]
        self._model = pytorch_models.build(
            {"workload": {"model": model}}, 1).to(device, memory_format=form)
        self._optimiser = torch.optim.SGD(
            self._model.parameters(), lr=0.01, momentum=0.9,
            weight_decay=1e-4)
        self._forward = self._model
        if name["mode"] == "compiled":
            self._forward = torch.compile(self._model)
        self._images = torch.randn(batch, 3, 32, 32).to(
            device, memory_format=form)
        self._labels = torch.randint(10, (batch,)).to(device)
        self.rates = []

    def steps(self, count):
        """The seconds that so many steps take."""
        torch.backends.cuda.matmul.allow_tf32 = self._tf32
        torch.backends.cudnn.allow_tf32 = self._tf32
        begin = time.perf_counter()
        for _ in range(count):
            self._optimiser.zero_grad(set_to_none=True)
            with self._cast:
                logits = self._forward(self._images)
                loss = functional.cross_entropy(logits, self._labels)
            loss.backward()
            self._optimiser.step()
        loss.item()  # waits for the device
        return time.perf_counter() - begin


def prepare(device, model, batch, seconds, name):
    """A way that is ready, or None: then the reason is printed."""
    try:
        signal.alarm(PATIENCE)
        way = Way(device, model, batch, name)
        way.steps(5)  # to warm up, and to compile
        way.count = max(1, round(seconds / STRETCHES * 5 / way.steps(5)))
        return way
    except Exception as error:  # of a compiler that is missing
        why = str(error).strip().splitlines() or [repr(error)]
        print(json.dumps({**name, "why": why[0]}))
        return None
    finally:
        signal.alarm(0)


def measure(batch, ways):
    for _ in range(STRETCHES):
        for way in ways:
            way.rates.append(batch * way.count / way.steps(way.count))
    for way in ways:
        print(json.dumps({**way.name, "median": statistics.median(way.rates),
                          "least": min(way.rates), "most": max(way.rates)}))


def main(device, model, batch, seconds, compiled):
    signal.signal(signal.SIGALRM, give_up)

    def ready(names):
        ways = [prepare(device, model, batch, seconds, name)
                for name in names]
        ways = [way for way in ways if way]
        measure(batch, ways)
        return ways

    precisions = ("fp32", "tf32", "bf16")
    eager = ready([{"precision": precision, "layout": layout, "mode": "eager"}
                   for layout, precision in itertools.product(
                       ("nchw", "channels_last"), precisions)])
    if not compiled:
        return
    fastest = {}
    for way in eager:
        rate = statistics.median(way.rates)
        if rate > fastest.get(way.name["precision"], (0,))[0]:
            fastest[way.name["precision"]] = rate, way.name["layout"]
    ready([{"precision": precision, "layout": layout, "mode": "compiled"}
           for precision, (_, layout) in fastest.items()])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), float(sys.argv[4]),
         sys.argv[5:] == ["compiled"])
