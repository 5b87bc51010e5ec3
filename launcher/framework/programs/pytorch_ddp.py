"""Trains under PyTorch's DistributedDataParallel and reports to scalebench.

One process is one rank; gloo carries the gradients of CPUs, NCCL those of
GPUs.
"""

import datetime
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import pytorch_trainer
import rank

# How long a rank waits for another: for all to import PyTorch from a slow file
# system, and for the slowest of them in a step.
PATIENCE = datetime.timedelta(minutes=10)


class Trainer(pytorch_trainer.Trainer):
    name = "pytorch-ddp"
    precisions = "fp32", "bf16"

    def join(self, point, place):
        self.configure(point, place)
        interface = place.carrier()
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            if interface:
                os.environ.setdefault(name, interface)
        dist.init_process_group(
            "nccl" if self.device.type == "cuda" else "gloo",
            init_method="env://", rank=place.rank, world_size=place.size,
            timeout=PATIENCE)
        size, own = dist.get_world_size(), dist.get_rank()
        if size != point["workers"] or own != place.rank:
            raise RuntimeError(
                f"PyTorch has rank {own} of {size} here; the plan has rank"
                f" {place.rank} of {point['workers']}")
        return size

    def build(self, point):
        parameters = super().build(point)
        # Running averages of batch norm stay each rank's own in training.
        self._ddp = DistributedDataParallel(self.model,
                                            broadcast_buffers=False)
        # With synchronised batch norm a rank's gradient also depends on other
        # ranks' samples; a single rank has no gradient to compare with.
        size = dist.get_world_size()
        self._own_gradient = (size > 1
                              and point["workload"]["batch_norm"] != "sync")
        self._reduction = Reduction(self.device, size)
        self._ddp.register_comm_hook(None, self._reduction.hook)
        return parameters

    def gradient(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        self._reduction.reset(self._own_gradient and self.measure_norms)
        *first, last = self.parts(inputs, labels)
        total = 0.0
        with self._ddp.no_sync():  # they are added up, and reduced once
            for part in first:
                total += self._backward(part, len(first) + 1)
        total += self._backward(last, len(first) + 1)
        self._reduction.finish()
        return total

    def _backward(self, part, parts):
        loss = self.loss(self._ddp, *part) / parts
        loss.backward()
        return loss.detach()

    def communication(self):
        return self._reduction.seconds()

    def squared_norms(self):
        return self._reduction.squared_norms()

    def barrier(self):
        dist.barrier()

    def sums(self, numbers):
        sums = torch.tensor(numbers, dtype=torch.float64, device=self.device)
        dist.all_reduce(sums)
        return sums.tolist()

    def memory(self):
        if self.device.type != "cuda":
            return {}
        sizes = torch.tensor([torch.cuda.max_memory_allocated(),
                              torch.cuda.max_memory_reserved()],
                             dtype=torch.int64, device=self.device)
        dist.all_reduce(sizes, op=dist.ReduceOp.MAX)
        return dict(zip(("allocated_memory", "reserved_memory"),
                        sizes.tolist()))

    def average(self, tensor):
        dist.all_reduce(tensor)
        tensor /= dist.get_world_size()


class Reduction:
    """DistributedDataParallel's own reduction, with a clock beside it, and the
    norms of the gradients before and after it.

    Gradients are reduced in buckets, each as soon as it is full, while the
    backward pass goes on. On a GPU, where a call is back before its work is
    begun, the clock is the device's: CUDA events on the streams that do the
    work.
    """

    def __init__(self, device, size):
        self._size = size
        # The group itself, not torch.distributed's function for it: a bucket
        # takes the less of the interpreter.
        self._group = dist.group.WORLD
        self._now = _event if device.type == "cuda" else time.perf_counter

    def reset(self, norms=False):
        """Before a step, of which norms are to be taken or not."""
        self._norms = norms
        self._spans = []  # of each bucket, from its start to its end
        self._buckets, self._own = [], []  # and its own norms
        self._zero = self._last = self._now()

    def hook(self, _, bucket):
        """Averages a bucket's gradients over the ranks."""
        buffer = bucket.buffer()
        if self._norms:
            self._buckets.append(buffer)
            self._own += pytorch_trainer.norms(buffer)
        begin = self._last = self._now()
        if self._size > 1:
            buffer.div_(self._size)
        future = self._group.allreduce([buffer]).get_future()

        def done(future):
            # A GPU's runs at once, on a stream that waits for the bucket.
            self._spans.append((begin, self._now()))
            return future.value()[0]

        return future.then(done)

    def finish(self):
        """After the backward pass."""
        self._end = self._now()
        # The buckets now hold the averages; without norms, the program has no
        # buckets.
        self._averaged = [norm for buffer in self._buckets
                          for norm in pytorch_trainer.norms(buffer)]

    def squared_norms(self):
        """Of this rank's own gradient, and of the averaged one; None where
        they were not taken. All work of the step is done."""
        if not self._norms:
            return None
        return (sum(norm.item() ** 2 for norm in self._own),
                sum(norm.item() ** 2 for norm in self._averaged))

    def seconds(self):
        """How long at least one bucket was being reduced in this step, the
        wait for other ranks included; and how much of that the backward pass
        only waited: from the last bucket's start, when all gradients were
        there. All work of the step is done.
        """
        spans, exposed = self._spans, (self._last, self._end)
        if not isinstance(self._zero, float):
            *spans, exposed = (tuple(self._zero.elapsed_time(mark) / 1e3
                                     for mark in span)
                               for span in (*spans, exposed))
        return rank.busy(spans)[0], exposed[1] - exposed[0]


def _event():
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


if __name__ == "__main__":
    rank.main(Trainer())
