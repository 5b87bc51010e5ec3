"""Trains under PyTorch with Horovod and reports to scalebench.

One process is one rank. The training loop is PyTorch's own kind around
Horovod's DistributedOptimizer, which averages each gradient as soon as it is
there, while the backward pass goes on.
"""

import time

import horovod
import horovod.torch as hvd
import torch

import horovod_world
import pytorch_models
import pytorch_trainer
import rank


class Trainer(pytorch_trainer.Trainer):
    name = "pytorch-horovod"

    def join(self, point, place):
        self.configure(point, place)
        self._server = horovod_world.join(hvd, place)
        return horovod_world.check(hvd, place, point["workers"])

    def versions(self):
        return {**super().versions(), "horovod": horovod.__version__}

    def build(self, point):
        parameters = super().build(point)
        vector = pytorch_models.flat(self.model)
        pytorch_models.load(self.model, hvd.broadcast(vector, 0, "weights"))
        self.optimizer = hvd.DistributedOptimizer(
            self.optimizer, named_parameters=self.model.named_parameters(),
            compression=MemoryOrder)
        return parameters

    def gradient(self, inputs, labels):
        for parameter in self.model.parameters():
            parameter.grad = None  # Horovod's zero_grad would keep zeros
        loss = pytorch_trainer.cross_entropy(self.model(inputs), labels)
        loss.backward()
        begin = time.perf_counter()
        self.optimizer.synchronize()
        self._exposed = time.perf_counter() - begin
        return loss.detach()

    def update(self):
        with self.optimizer.skip_synchronize():
            self.optimizer.step()

    def communication(self):
        """Horovod tells when all gradients are there, not when each is. On a
        GPU the backward pass itself may still be under way then."""
        return None, None if self.device.type == "cuda" else self._exposed

    def barrier(self):
        hvd.allreduce(torch.zeros(1), name="barrier")

    def sums(self, numbers):
        return hvd.allreduce(torch.tensor(numbers, dtype=torch.float64),
                             op=hvd.Sum, name="sums").tolist()

    def average(self, tensor):
        hvd.allreduce_(tensor, op=hvd.Average)


class MemoryOrder(hvd.Compression.none):
    """Hands Horovod each gradient with its axes in the order of memory.

    It takes contiguous tensors only, and the gradients of channels-last
    weights are not. Nothing is compressed, and nothing copied but a gradient
    in some third order.
    """

    @staticmethod
    def compress(tensor):
        if tensor.dim() == 4 and tensor.is_contiguous(
                memory_format=torch.channels_last):
            return tensor.permute(0, 2, 3, 1), True
        return tensor.contiguous(), False

    @staticmethod
    def decompress(tensor, channels_last):
        return tensor.permute(0, 3, 1, 2) if channels_last else tensor


if __name__ == "__main__":
    rank.main(Trainer())
