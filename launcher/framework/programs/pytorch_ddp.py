"""Trains under PyTorch's DistributedDataParallel and reports to scalebench.

One process is one rank; gloo carries the gradients of CPUs, NCCL those of
GPUs. Models, recipe and evaluation are the native trainer's. Random numbers
are PyTorch's: starting weights, order and augmentation are drawn from the same
distributions, but are not the same numbers.
"""

import ctypes
import datetime
import hashlib
import json
import os
import platform
import sys
import time
import traceback

import torch
import torch.distributed as dist

import pytorch_data
import pytorch_models
import recipe
import scalebench
import world
from pytorch_replica import Replica

# How long a rank waits for another: for all to import PyTorch from a slow file
# system, and for the slowest of them in a step.
PATIENCE = datetime.timedelta(minutes=10)

# What each rank says of going on, in each step.
TIME_UP, INTERRUPTED, DIVERGED = range(3)


class Interrupted(Exception):
    """The run was told to stop and did so in order."""


class Rank:
    """One rank's run of a point."""

    def __init__(self, point, place, interruption):
        self.point, self.workload = point, point["workload"]
        self.world, self.interruption = place, interruption
        self.phase = "rendezvous"  # what an error is reported under
        self.replica = None
        self.evaluated = -1  # step of the last evaluation
        self.best = 0.0  # accuracy so far

    def run(self):
        """Everything, to the end of the process."""
        size, failure = self.world.size, None
        try:
            size = self.join()
        except Exception as error:
            failure = error
        self.events = scalebench.Events(
            scalebench.event_file(self.world.rank, self.world.restart),
            self.point["framework"], self.world.rank,
            max(size, self.world.rank + 1), self.world.local_rank,
            self.world.restart)
        self.interruption.events = self.events
        status, cause = "done", ""
        try:
            if failure is not None:
                raise failure
            self.train()
        except Interrupted as interrupted:
            status, cause = "interrupted", str(interrupted)
        except Exception as error:
            traceback.print_exception(error)
            status = "failed"
            cause = str(error) or type(error).__name__
            self.events.error(self.phase, cause)
            cause = f"{self.phase}: {cause}"
        self.events.stop(status, cause, self.parameter_sha256())
        if status != "failed":
            dist.barrier()  # nobody leaves while another still hears of it
        # Exit without taking PyTorch apart: ending gloo's threads can wait for
        # ever on one of them that waits for the interpreter. After a failure
        # the others learn of it by the closed connections.
        sys.stdout.flush()
        os._exit(0 if status == "done" else 1)

    def join(self):
        """Finds the other ranks; returns how many PyTorch says there are.

        A group that is not the one planned is an error: independent copies of
        a training look like a perfect speedup.
        """
        if self.point["resources"]["device"] == "gpu":
            if not torch.cuda.is_available():
                raise RuntimeError('resources.device is "gpu", and PyTorch'
                                   f" {torch.__version__} sees none here")
            # A task that sees one GPU only sees it as the first.
            index = self.world.local_rank
            index = index if torch.cuda.device_count() > 1 else 0
            self.device = torch.device("cuda", index)
            torch.cuda.set_device(self.device)
            torch.backends.cuda.matmul.allow_tf32 = False
            torch.backends.cudnn.allow_tf32 = False
        else:
            self.device = torch.device("cpu")
        self.threads = min(max(self.point["resources"]["cpus_per_worker"], 1),
                           len(os.sched_getaffinity(0)))
        torch.set_num_threads(self.threads)
        interface = self.world.carrier()
        for name in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            if interface:
                os.environ.setdefault(name, interface)
        dist.init_process_group(
            "nccl" if self.device.type == "cuda" else "gloo",
            init_method="env://", rank=self.world.rank,
            world_size=self.world.size, timeout=PATIENCE)
        size, rank = dist.get_world_size(), dist.get_rank()
        if size != self.point["workers"] or rank != self.world.rank:
            raise RuntimeError(
                f"PyTorch has rank {rank} of {size} here; the plan has rank"
                f" {self.world.rank} of {self.point['workers']}")
        return size

    def train(self):
        point, workload = self.point, self.workload
        self.phase = "configuration"
        if workload["precision"] != "fp32":
            raise ValueError('workload.precision is'
                             f' "{workload["precision"]}"; pytorch-ddp has'
                             ' "fp32" only')
        self.phase = "data"
        self.data = pytorch_data.find(point)
        self.phase = "configuration"
        self.steps_per_epoch = \
            self.data.train_samples // point["global_batch"]
        if self.steps_per_epoch == 0:
            raise ValueError(f"the training set has {self.data.train_samples}"
                             " samples, fewer than one"
                             f" global batch of {point['global_batch']}")
        self.schedule = recipe.Schedule(point, self.steps_per_epoch)
        model = pytorch_models.build(
            point, recipe.stream(point["seed"], "model"))
        self.events.environment(threads=self.threads, versions=versions())
        self.phase = "rendezvous"
        self.replica = Replica(
            model, self.device, workload["momentum"], workload["weight_decay"],
            sync=workload["batch_norm"] == "sync")
        parameters = sum(p.numel() for p in model.parameters())
        checksum = self.parameter_sha256()
        dist.barrier()
        self.began = time.perf_counter()
        self.events.train(
            parameters=parameters, gradient_bytes=4 * parameters,
            train_samples=self.data.train_samples,
            test_samples=self.data.test_samples,
            global_batch=point["global_batch"],
            steps_per_epoch=self.steps_per_epoch, parameter_sha256=checksum)
        print(f"rank {self.world.rank} of {dist.get_world_size()}:"
              f" {workload['model']}, {parameters} parameters,"
              f" {self.data.train_samples} samples, {self.threads} threads")
        self.phase = "data"
        self.data.read()
        self.epochs()

    def epochs(self):
        while True:
            self.phase = "train"
            over = self.epoch()
            interrupted = False
            if self.evaluated != self.events.steps:
                self.phase = "evaluate"
                interrupted = self.evaluate()
            if over or recipe.trained_enough(self.point, self.events.epochs,
                                             self.best):
                return
            if interrupted:
                raise self.told_to_stop()

    def epoch(self):
        """One pass over the training set; whether the run is over by it."""
        begin = last = time.perf_counter()
        self.data.shuffle(self.point["seed"], self.events.epochs)
        loss_sum, samples = torch.zeros((), dtype=torch.float64), 0
        loss_sum = loss_sum.to(self.device)
        batch = self.point["worker_batch"]
        for k in range(self.steps_per_epoch):
            rate = self.schedule.at(self.events.steps)
            at = k * self.point["global_batch"] + self.world.rank * batch
            inputs, wanted = (tensor.to(self.device) for tensor
                              in self.data.batch(at, at + batch))
            have_data = time.perf_counter()
            loss, votes = self.replica.gradient(inputs, wanted, self.vote)
            have_gradient = time.perf_counter()
            if votes[DIVERGED] > 0:
                raise ArithmeticError(
                    "training has diverged: the loss of step"
                    f" {self.events.steps + 1} is not a finite number; lower"
                    f" workload.learning_rate ({rate:g} at this step) or"
                    " lengthen workload.warmup_epochs")
            self.replica.update(rate)
            loss_sum += loss * batch
            samples += batch
            end = time.perf_counter()
            self.record(last, have_data, have_gradient, end)
            last = end
            if k == self.steps_per_epoch - 1:
                self.events.epoch(samples=samples, seconds=last - begin,
                                  loss=loss_sum.item() / samples,
                                  learning_rate=rate)
            if (votes[TIME_UP] > 0 or
                    recipe.long_enough(self.point, self.events.steps)):
                return True
            if votes[INTERRUPTED] > 0:
                raise self.told_to_stop()
        return False

    def record(self, last, have_data, have_gradient, end):
        """Reports a step. On a GPU, work is still under way when a call is
        back, so that nobody here can tell computing from reducing."""
        compute = communication = None
        if self.replica.reduction is not None:
            communication = self.replica.reduction.seconds()
            compute = (end - have_data
                       - self.replica.reduction.exposed(have_gradient))
        self.events.step(end - last, self.point["worker_batch"],
                         data_wait=have_data - last, compute=compute,
                         communication=communication)

    def vote(self, loss):
        minutes = (time.perf_counter() - self.began) / 60
        limit = self.workload["max_minutes"]
        votes = [0.0, 0.0, 0.0]
        votes[TIME_UP] = self.world.rank == 0 and 0 < limit <= minutes
        votes[INTERRUPTED] = self.interruption.cause is not None
        votes = torch.tensor(votes, dtype=torch.float32, device=loss.device)
        votes[DIVERGED] = ~torch.isfinite(loss)  # without waiting for a GPU
        return votes

    def told_to_stop(self):
        return Interrupted(self.interruption.cause
                           or "another rank was told to stop")

    def evaluate(self):
        """Measures the accuracy, of which every rank takes a share. It is on
        the training clock. Returns whether a rank was told to stop."""
        begin = time.perf_counter()
        self.replica.average_statistics()
        start, end = recipe.share(self.data.test_samples, self.world.rank,
                                  dist.get_world_size())
        counts = [0.0, 0, 0, 0]  # loss, correct, targets, ranks told to stop
        for at in range(start, end, self.point["worker_batch"]):
            until = min(at + self.point["worker_batch"], end)
            inputs, wanted = (tensor.to(self.device) for tensor
                              in self.data.test_batch(at, until))
            loss, correct = self.replica.evaluate(inputs, wanted)
            counts[0] += loss
            counts[1] += correct
            counts[2] += wanted.numel()
        counts[3] = self.interruption.cause is not None
        sums = torch.tensor(counts, dtype=torch.float64, device=self.device)
        dist.all_reduce(sums)
        loss, correct, targets, stopped = sums.tolist()
        self.evaluated = self.events.steps
        if not torch.isfinite(sums[0]):
            raise ArithmeticError(
                "training has diverged: the loss on the test split after step"
                f" {self.events.steps} is not a finite number; lower"
                " workload.learning_rate or lengthen workload.warmup_epochs")
        accuracy = correct / targets
        self.best = max(self.best, accuracy)
        if self.world.rank == 0:
            self.events.evaluation(
                accuracy=accuracy, loss=loss / targets,
                samples=self.data.test_samples,
                seconds=time.perf_counter() - begin)
            print(f"epoch {self.events.epochs}, step {self.events.steps},"
                  f" {time.perf_counter() - self.began:.1f} s:"
                  f" accuracy {accuracy:.4f}, loss {loss / targets:.4f}")
        return stopped > 0

    def parameter_sha256(self):
        """The hash of all parameters, equal for equal bits only."""
        if self.replica is None:
            return ""
        vector = pytorch_models.flat(self.replica.model)
        return hashlib.sha256(ctypes.string_at(
            vector.data_ptr(), vector.numel() * 4)).hexdigest()


def versions():
    found = {"python": platform.python_version(), "torch": torch.__version__}
    if torch.version.cuda:
        found["cuda"] = torch.version.cuda
        if torch.cuda.is_available():
            found["nccl"] = ".".join(map(str, torch.cuda.nccl.version()))
    return found


def main():
    interruption = scalebench.Interruption()
    with open(os.path.join(scalebench.run_folder(), "point.json"),
              encoding="utf-8") as file:
        point = json.load(file)
    Rank(point, world.World(), interruption).run()


if __name__ == "__main__":
    main()
