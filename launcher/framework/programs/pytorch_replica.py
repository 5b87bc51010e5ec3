"""One rank's copy of a model under DistributedDataParallel."""

import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel

import pytorch_models


class Replica:
    """Model, gradients and their reduction, and the optimiser.

    A step is gradient, then update. Votes are a few numbers that are summed
    over the ranks during the backward pass, so that all ranks come to the same
    decisions after the same step.
    """

    def __init__(self, model, device, momentum, weight_decay, sync=False):
        self.model = model.to(device, memory_format=torch.channels_last)
        if sync:
            self.model = nn.SyncBatchNorm.convert_sync_batchnorm(self.model)
        # Running averages of batch norm stay each rank's own in training.
        self._ddp = DistributedDataParallel(self.model,
                                            broadcast_buffers=False)
        self._optimizer = torch.optim.SGD(
            self.model.parameters(), lr=0, momentum=momentum,
            weight_decay=weight_decay)
        self.reduction = None  # of a device whose work is done when it is back
        if device.type == "cpu":
            self.reduction = Reduction()
            self._ddp.register_comm_hook(None, self.reduction.hook)

    def gradient(self, images, labels, vote):
        """The gradient of the mean loss over all ranks' batches.

        Returns this rank's mean loss, and the sum over the ranks of what
        vote(loss), a vector, says of each.
        """
        self._optimizer.zero_grad(set_to_none=True)
        if self.reduction is not None:
            self.reduction.reset()
        loss = cross_entropy(self._ddp(images), labels)
        votes = vote(loss.detach())
        counting = dist.all_reduce(votes, async_op=True)
        loss.backward()
        counting.wait()
        return loss.detach(), votes.tolist()

    def update(self, rate):
        """A step of stochastic gradient descent."""
        for group in self._optimizer.param_groups:
            group["lr"] = rate
        self._optimizer.step()

    def average_statistics(self):
        """Makes the running averages of batch norm equal on all ranks.

        They become their mean over the ranks, so that an evaluation shared by
        the ranks is of one model.
        """
        for buffer in pytorch_models.statistics(self.model):
            dist.all_reduce(buffer)
            buffer /= dist.get_world_size()

    @torch.no_grad()
    def evaluate(self, images, labels):
        """The sum of the losses, and how many labels are found rightly."""
        self.model.eval()
        logits = self.model(images)
        self.model.train()
        loss = cross_entropy(logits.double(), labels, reduction="sum")
        return loss.item(), (logits.argmax(-1) == labels).sum().item()


def cross_entropy(scores, labels, reduction="mean"):
    """Of scores with the classes along the last axis: a label an image, or a
    label a place of a text."""
    return functional.cross_entropy(scores.reshape(-1, scores.size(-1)),
                                    labels.reshape(-1), reduction=reduction)


class Reduction:
    """DistributedDataParallel's own reduction, with a clock beside it.

    Gradients are reduced in buckets, each as soon as it is full, while the
    backward pass goes on.
    """

    def reset(self):
        """Before a step."""
        self._spans = []  # of each bucket, from its start to its end
        self._last = time.perf_counter()

    def hook(self, _, bucket):
        """Averages a bucket's gradients over the ranks."""
        begin = self._last = time.perf_counter()
        buffer = bucket.buffer().div_(dist.get_world_size())
        future = dist.all_reduce(buffer, async_op=True).get_future()

        def done(future):
            self._spans.append((begin, time.perf_counter()))
            return future.value()[0]

        return future.then(done)

    def seconds(self):
        """How long at least one bucket was being reduced in this step, the
        wait for other ranks included."""
        total, until = 0.0, 0.0
        for begin, end in sorted(self._spans):
            total += max(end - max(begin, until), 0.0)
            until = max(until, end)
        return total

    def exposed(self, end):
        """How long the backward pass, which ended at end, only waited for the
        reduction: from the last bucket's start, when all gradients were
        there."""
        return end - self._last
