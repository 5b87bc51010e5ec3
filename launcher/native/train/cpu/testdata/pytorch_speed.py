"""Makes training steps in PyTorch as often as it is told, and says how long.

    python3 pytorch_speed.py MODEL BATCH

Each line of standard input is "THREADS FORMAT STEPS", with the format "nchw"
or "channels_last"; the answer is the seconds and the processor's seconds that
so many steps of forward pass, backward pass and SGD took.
"""

import sys
import time

import torch
from torch.nn import functional

import pytorch_models

FORMATS = {"nchw": torch.contiguous_format,
           "channels_last": torch.channels_last}


class Contender:
    """A model in a memory format, with an optimiser and a batch."""

    def __init__(self, model, batch, memory_format):
        torch.manual_seed(1)
        self._model = pytorch_models.build(
            {"workload": {"model": model}}, 1).to(memory_format=memory_format)
        self._optimiser = torch.optim.SGD(
            self._model.parameters(), lr=0.01, momentum=0.9,
            weight_decay=1e-4)
        self._images = torch.randn(batch, 3, 32, 32).contiguous(
            memory_format=memory_format)
        self._labels = torch.randint(10, (batch,))

    def step(self):
        self._optimiser.zero_grad(set_to_none=True)
        loss = functional.cross_entropy(self._model(self._images),
                                        self._labels)
        loss.backward()
        self._optimiser.step()
        return loss.item()


def main(model, batch):
    contenders = {name: Contender(model, batch, memory_format)
                  for name, memory_format in FORMATS.items()}
    for line in sys.stdin:
        threads, name, steps = line.split()
        torch.set_num_threads(int(threads))
        begin, used = time.perf_counter(), time.process_time()
        for _ in range(int(steps)):
            contenders[name].step()
        print(time.perf_counter() - begin, time.process_time() - used,
              flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
