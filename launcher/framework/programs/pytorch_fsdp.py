"""Trains under PyTorch's fully_shard (FSDP2) and reports to scalebench.

One process is one rank. Parameters, gradients and the optimiser's state are
shared out over the ranks; a layer's parameters are gathered before it is
computed. With workload.shard = S, groups of S ranks each hold a copy
(HSDP). zero = 3, fully_shard's own, gathers them for the backward pass again;
zero = 2 keeps them from the forward pass until then.
"""

import contextlib

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import distribute_tensor

import pytorch_ddp
import pytorch_decoder
import pytorch_models
import pytorch_trainer
import rank
import recipe


class Trainer(pytorch_ddp.Trainer):
    name = "pytorch-fsdp"
    together = True

    def build(self, point):
        workload = point["workload"]
        seed = recipe.stream(point["seed"], "model")
        ours = "architecture" in point
        if ours:
            model = pytorch_decoder.build(point)
        else:
            model = pytorch_models.build(point, seed).to(self.device)
        size = dist.get_world_size()
        shard = workload.get("shard") or size
        if shard == size:
            mesh = init_device_mesh(self.device.type, (size,))
        else:
            mesh = init_device_mesh(self.device.type, (size // shard, shard),
                                    mesh_dim_names=("replicate", "shard"))
        options = {"mesh": mesh,
                   "reshard_after_forward": workload.get("zero") != 2}
        if workload.get("precision") == "bf16":
            # Weights stay fp32, and gradients are added up in it.
            options["mp_policy"] = MixedPrecisionPolicy(
                param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in getattr(model, "layers", ()):
            fully_shard(layer, **options)
        fully_shard(model, **options)
        if ours:
            pytorch_decoder.fill(model, self.device, seed, _put)
        self.model = model
        self.precision = contextlib.nullcontext  # fully_shard sees to it
        self.optimizer = pytorch_trainer.optimizer(workload,
                                                   model.parameters())
        return sum(p.numel() for p in model.parameters())

    def gradient(self, inputs, labels):
        self.optimizer.zero_grad(set_to_none=True)
        parts, total = self.parts(inputs, labels), 0.0
        for i, part in enumerate(parts):
            self.model.set_requires_gradient_sync(i + 1 == len(parts))
            loss = self.loss(self.model, *part) / len(parts)
            loss.backward()
            total += loss.detach()
        return total

    def communication(self):
        """It overlaps the computation, and nobody tells its time."""
        return None, None

    def squared_norms(self):
        return None

    def vectors(self):
        for p in self.model.parameters():
            yield p.detach().full_tensor().reshape(-1).float().cpu()


def _put(parameter, values):
    """Takes this rank's part of a whole parameter, which every rank has."""
    parameter.copy_(distribute_tensor(
        values.to(parameter.device), parameter.device_mesh,
        parameter.placements, src_data_rank=None))


if __name__ == "__main__":
    rank.main(Trainer())
