"""What the trainers of the PyTorch family have in common.

Models, recipe and evaluation are the native trainer's. Random numbers are
PyTorch's: starting weights, order and augmentation are drawn from the same
distributions, but are not the same numbers.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import time

import torch
from torch import nn
from torch.nn import functional

import gemm
import pytorch_data
import pytorch_models
import recipe
import samples


def optimizer(workload, parameters):
    """The workload's; the rate is set in each step."""
    name = workload.get("optimizer", "sgd")
    if name == "sgd":
        return torch.optim.SGD(parameters, lr=0,
                               momentum=workload["momentum"],
                               weight_decay=workload["weight_decay"])
    if name not in ("adam", "adamw"):
        raise ValueError(f'workload.optimizer is "{name}"; want "sgd", "adam"'
                         ' or "adamw"')
    make = torch.optim.Adam if name == "adam" else torch.optim.AdamW
    return make(parameters, lr=0, betas=(workload["beta1"], workload["beta2"]),
                eps=workload["epsilon"],
                weight_decay=workload["weight_decay"])


class Trainer:
    """A model and its optimiser; who subclasses it joins ranks, and has

    gradient(inputs, labels) -> this rank's mean loss; makes the gradient of
                       the mean over all ranks' batches
    communication() -> of the gradient just made, the seconds in which it was
                       being reduced, and those of them that nothing else hid;
                       None: not measured
    average(tensor)    makes a tensor its mean over the ranks

    and, where it can,

    squared_norms()    -> where measure_norms is set, those of the gradients
                       just made, of this rank's own before they were averaged,
                       and of the averaged one
    """

    covers = 1
    arrays = "pytorch_data"

    def configure(self, point, place):
        """Device and threads."""
        if point["resources"]["device"] == "gpu":
            if not torch.cuda.is_available():
                raise RuntimeError('resources.device is "gpu", but PyTorch'
                                   f" {torch.__version__} sees no GPU here")
            # A task that sees one GPU only sees it as the first.
            index = place.local_rank
            index = index if torch.cuda.device_count() > 1 else 0
            self.device = torch.device("cuda", index)
            torch.cuda.set_device(self.device)
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        else:
            self.device = torch.device("cpu")
        self.threads = min(max(point["resources"]["cpus_per_worker"], 1),
                           len(os.sched_getaffinity(0)))
        torch.set_num_threads(self.threads)
        workload = point["workload"]
        self.micro_batch = point.get("micro_batch", 0)
        self.precision = contextlib.nullcontext
        if workload.get("precision") == "bf16":
            # Weights stay fp32; matrices are multiplied in bf16.
            self.precision = functools.partial(
                torch.autocast, self.device.type, torch.bfloat16)

    def gemm(self):
        if self.device.type != "cpu":
            return None

        def product(size):
            matrix = torch.ones(size, size)  # draws no random numbers
            return lambda: torch.mm(matrix, matrix)

        with self.precision():
            return gemm.best(product)

    def data(self, point):
        return samples.find(point, pytorch_data)

    def build(self, point):
        workload = point["workload"]
        model = pytorch_models.build(
            point, recipe.stream(point["seed"], "model"))
        self.model = model.to(self.device, memory_format=torch.channels_last)
        if workload["batch_norm"] == "sync":
            self.model = nn.SyncBatchNorm.convert_sync_batchnorm(self.model)
        self.optimizer = optimizer(workload, self.model.parameters())
        return sum(p.numel() for p in self.model.parameters())

    def epoch(self, run):
        clock = time.perf_counter
        for k in range(run.steps_per_epoch):
            begin = clock()
            inputs, labels = (tensor.to(self.device)
                              for tensor in run.inputs(k))
            wait = clock() - begin
            rate = run.rate()
            self.measure_norms = run.wants_norms()
            loss = self.gradient(inputs, labels)
            for group in self.optimizer.param_groups:
                group["lr"] = rate
            self.update()
            loss = loss.item()
            if self.device.type == "cuda":
                torch.cuda.synchronize()  # or the clock would run ahead
            communication, exposed = self.communication()
            if run.stepped(rate, loss, wait, exposed, communication,
                           self.squared_norms()):
                return

    def squared_norms(self):
        return None

    def parts(self, inputs, labels):
        """A batch in the parts that are computed at a time."""
        size = self.micro_batch or len(inputs)
        return list(zip(inputs.split(size), labels.split(size)))

    def loss(self, model, inputs, labels):
        """The mean loss of a part, in the precision of the point."""
        with self.precision():
            scores = model(inputs)
        return cross_entropy(_single(scores), labels)

    def update(self):
        """A step of the optimiser."""
        self.optimizer.step()

    def average_statistics(self):
        """They become their mean over the ranks, so that an evaluation shared
        by the ranks is of one model."""
        for buffer in pytorch_models.statistics(self.model):
            self.average(buffer)

    @torch.no_grad()
    def evaluate(self, inputs, labels):
        inputs, labels = inputs.to(self.device), labels.to(self.device)
        self.model.eval()
        with self.precision():
            scores = self.model(inputs)
        self.model.train()
        # Double precision for the sum alone: scores of a language model are
        # many times its other activations.
        loss = cross_entropy(_single(scores), labels, reduction="none")
        return (loss.double().sum().item(),
                (scores.argmax(-1) == labels).sum().item())

    def parameter_sha256(self):
        """The hash of all parameters, equal for equal bits only."""
        digest = hashlib.sha256()
        for vector in self.vectors():
            digest.update(ctypes.string_at(vector.data_ptr(),
                                           vector.numel() * 4))
        return digest.hexdigest()

    def vectors(self):
        """The whole parameters, one after the other, as vectors."""
        return pytorch_models.vectors(self.model)

    def versions(self):
        found = {"python": platform.python_version(),
                 "torch": torch.__version__}
        if torch.version.cuda:
            found["cuda"] = torch.version.cuda
            if torch.cuda.is_available():
                found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
        return found


# How many numbers are summed in single precision where there are many. Over
# millions of them it would lose the digits by which two norms differ.
ROW = 1024


def norms(vector):
    """Norms of parts of a vector, as tensors: the sum of their squares is the
    vector's. In few operations, for in a small model's step each one counts.
    """
    norm = torch.linalg.vector_norm
    rows = vector.numel() // ROW
    if rows < 32:
        return [norm(vector, dtype=torch.float64)]
    parts = norm(vector[:rows * ROW].view(rows, ROW), dim=1)
    return [norm(parts, dtype=torch.float64),
            norm(vector[rows * ROW:], dtype=torch.float64)]


def _single(scores):
    """Scores in single precision at least."""
    return scores.float() if scores.element_size() < 4 else scores


def cross_entropy(scores, labels, reduction="mean"):
    """Of scores with the classes along the last axis: a label an image, or a
    label a place of a text."""
    return functional.cross_entropy(scores.reshape(-1, scores.size(-1)),
                                    labels.reshape(-1), reduction=reduction)
