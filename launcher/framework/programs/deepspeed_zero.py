"""Trains under DeepSpeed and reports to scalebench.

One process is one rank, which our launcher starts. ZeRO's stage is
workload.zero: with 1 the ranks share out the optimiser's state, with 2 the
gradients as well, with 3 the parameters as well; without it they share
nothing. The optimisers are PyTorch's, so that DeepSpeed compiles nothing.
"""

import contextlib
import os

import torch
import torch.distributed as dist

import pytorch_ddp
import pytorch_decoder
import pytorch_models
import pytorch_trainer
import rank
import recipe

deepspeed = None  # join imports it, once its device is known


class Trainer(pytorch_ddp.Trainer):
    name = "deepspeed"
    together = True  # at stage 3 a forward pass needs every rank

    def join(self, point, place):
        size = super().join(point, place)
        _import(self.device, place)
        return size

    def build(self, point):
        workload = point["workload"]
        seed = recipe.stream(point["seed"], "model")
        self._stage = workload.get("zero", 0)
        config = _config(point, self._stage)
        if "architecture" in point:
            shared = None
            if self._stage == 3:  # the whole may be more than a rank holds
                shared = deepspeed.zero.Init(config_dict_or_path=config)
            model = pytorch_decoder.build(point, shared)
            pytorch_decoder.fill(model, self.device, seed, self._put)
        else:
            model = pytorch_models.build(point, seed).to(self.device)
        count = sum(_size(p) for p in model.parameters())
        self.model, self.optimizer, _, _ = deepspeed.initialize(
            model=model, config=config, dist_init_required=False,
            optimizer=pytorch_trainer.optimizer(workload, model.parameters()))
        self.precision = contextlib.nullcontext  # DeepSpeed sees to it
        return count

    def gradient(self, inputs, labels):
        parts, total = self.parts(inputs, labels), 0.0
        for i, part in enumerate(parts):
            if i > 0:
                self.model.step()  # counts the part before, and no more
            loss = self.loss(self.model, *part)
            self.model.backward(loss)  # divides it by the number of parts
            total += loss.detach() / len(parts)
        return total

    def update(self):
        self.model.step()

    def communication(self):
        """It overlaps the computation, and nobody tells its time."""
        return None, None

    def squared_norms(self):
        return None

    def vectors(self):
        for p in self.model.module.parameters():
            # Of bf16 weights, what the optimiser holds of them in fp32.
            whole = deepspeed.utils.safe_get_full_fp32_param(p)
            whole = p if whole is None else whole
            yield whole.detach().reshape(-1).float().cpu()

    def versions(self):
        return {**super().versions(), "deepspeed": deepspeed.__version__}

    def _put(self, parameter, values):
        if self._stage < 3:
            parameter.copy_(values)
            return
        with deepspeed.zero.GatheredParameters(parameter, modifier_rank=0):
            parameter.data.copy_(values)


def _import(device, place):
    """Imports DeepSpeed for a device."""
    global deepspeed
    os.environ["DS_ACCELERATOR"] = device.type
    # DeepSpeed takes it for the number of the device.
    os.environ["LOCAL_RANK"] = str(place.local_rank if device.index is None
                                   else device.index)
    import deepspeed
    import deepspeed.ops
    # Which of its operations could be compiled here: none is wanted. It would
    # compile one that sums on CPUs, when it begins to train.
    deepspeed.ops.__compatible_ops__ = {}
    deepspeed.init_distributed("nccl" if device.type == "cuda" else "gloo",
                               auto_mpi_discovery=False,
                               dist_init_required=False)


def _config(point, stage):
    """DeepSpeed's configuration; what is not said here is its default."""
    workload, batch = point["workload"], point["worker_batch"]
    part = point.get("micro_batch") or batch
    config = {
        "train_batch_size": batch * dist.get_world_size(),
        "train_micro_batch_size_per_gpu": part,
        "gradient_accumulation_steps": batch // part,
        "zero_optimization": {"stage": stage},
        "gradient_clipping": 0.0,  # its default is a norm of 1
        "zero_allow_untested_optimizer": True,  # SGD is one
    }
    if workload.get("precision") == "bf16":
        # Sums of gradients stay fp32, as the optimiser's weights do.
        config["bf16"] = {"enabled": True}
        config["communication_data_type"] = "fp32"
        config["data_types"] = {"grad_accum_dtype": "fp32"}
    return config


def _size(parameter):
    """The numbers of a whole parameter, which may be shared out."""
    return getattr(parameter, "ds_numel", parameter.numel())


if __name__ == "__main__":
    rank.main(Trainer())
