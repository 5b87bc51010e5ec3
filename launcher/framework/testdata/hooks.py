"""Times what scalebench adds to a step of pytorch-ddp, piece by piece.

    python3 hooks.py RUN_FOLDER

One rank, one thread, batches of 32 made of random numbers. Prints JSON, in
seconds: what a step's record and clocks take, what the clock in
DistributedDataParallel's hook takes for each bucket over the reduction that
DistributedDataParallel does without one, what a vote takes, and the steps of
two models.
"""

import json
import sys
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pytorch_ddp
import rank
import scalebench
import world

BATCH = 32


class Timed(pytorch_ddp.Trainer):
    """A trainer whose reduction can be looked at."""

    def buckets(self):
        return len(self._reduction._spans)


def timed(calls, function):
    """Seconds of a call: in the fastest of blocks of calls, since what else
    a machine does only ever adds to it."""
    blocks = []
    for _ in range(15):
        begin = time.perf_counter()
        for _ in range(calls):
            function()
        blocks.append((time.perf_counter() - begin) / calls)
    return min(blocks)


def point(model):
    return {
        "workers": 1, "seed": 1, "framework": "pytorch-ddp",
        "worker_batch": BATCH, "global_batch": BATCH, "learning_rate": 0.01,
        "workload": {"model": model, "momentum": 0.9, "weight_decay": 1e-4,
                     "batch_norm": "local", "max_minutes": 10, "max_steps": 0,
                     "epochs": 1, "learning_rate": 0.01, "warmup_epochs": 0,
                     "decay": "none", "decay_epochs": []},
        "resources": {"device": "cpu", "cpus_per_worker": 1}}


class Still:
    """No signal came."""

    cause = None


def begun(trainer, model, folder, number, steps):
    """A rank that is about to train so many steps."""
    place = world.World()
    place.restart = number
    run = rank.Rank(point(model), place, Still(), trainer)
    run.events = scalebench.Events(
        scalebench.event_file(0, number), "pytorch-ddp", 0, 1, restart=number)
    run.steps_per_epoch, run.batch = steps, BATCH
    run.schedule = rank.recipe.Schedule(run.point, steps)
    run.began = run.voted = time.perf_counter()
    run.over = run.stopped = False
    run.loss_sum, run.samples, run.taken = 0.0, 0, 0
    run.begin = run.last = time.perf_counter()
    return run


def bucket_clock():
    """Seconds that the hook's clock takes for a bucket."""
    def steps(reduction):
        model = DistributedDataParallel(nn.Linear(1, 1))
        if reduction is not None:
            model.register_comm_hook(None, reduction.hook)
        x = torch.ones(1, 1)

        def step():
            model.zero_grad(set_to_none=True)
            if reduction is not None:
                reduction.reset()
            model(x).sum().backward()
            if reduction is not None:
                reduction.finish()
        return step

    plain = steps(None)
    hooked = steps(pytorch_ddp.Reduction(torch.device("cpu"), 1))
    fastest = {plain: [], hooked: []}
    for _ in range(9):  # in turn, so that a slow moment is everybody's
        for step, times in fastest.items():
            times.append(timed(10, step))
    return min(fastest[hooked]) - min(fastest[plain])


def step_time(trainer, model, folder, number, steps):
    """The fastest step of the real loop, and its buckets."""
    trainer.build(point(model))
    run = begun(trainer, model, folder, number, steps)
    inputs = torch.randn(BATCH, 3, 32, 32).to(
        memory_format=torch.channels_last)
    labels = torch.randint(10, (BATCH,))
    run.inputs = lambda k: (inputs, labels)
    durations = []
    stepped = run.stepped

    def kept(*arguments):
        begin = run.last
        over = stepped(*arguments)
        durations.append(run.last - begin)
        return over

    run.stepped = kept
    trainer.epoch(run)
    return min(durations), trainer.buckets()


def main(folder):
    trainer = Timed()
    trainer.join(point("cnn"), world.World())
    clock = time.perf_counter
    trainer.build(point("cnn"))
    trainer.gradient(torch.randn(BATCH, 3, 32, 32), torch.zeros(BATCH).long())
    run = begun(trainer, "cnn", folder, 1, 10**9)
    run.next_vote = 10**9

    def record():
        clock()
        clock()
        communication, exposed = trainer.communication()
        run.to_vote()
        run.stepped(0.01, 1.5, None, 1e-4, exposed, communication)

    found = {
        "record": timed(1000, record),
        "vote": timed(100, lambda: trainer.sums(run.ballot(1.5))),
        "bucket": bucket_clock(),
        "models": {}}
    for number, (model, steps) in enumerate((("cnn", 200),
                                             ("resnet20", 40))):
        step, buckets = step_time(trainer, model, folder, 2 + number, steps)
        found["models"][model] = {
            "step": step, "buckets": buckets,
            "hooks": found["record"] + buckets * found["bucket"]
            + found["vote"] * step / rank.VOTE_EVERY}
    json.dump(found, sys.stdout)
    dist.barrier()


if __name__ == "__main__":
    main(sys.argv[1])
