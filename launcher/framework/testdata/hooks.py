"""Times what scalebench adds to a step of a framework.

    python3 hooks.py MODULE MODEL STEPS

MODULE is a program with a Trainer. One rank, one thread, batches of 32 made of
random numbers, the trainer's own loop. Prints JSON, in seconds: "step", how
long one takes; "hooks", all that we add to it, which is "spent", where its
clocks are read and where it is recorded, with Keras in our callback; "clock",
what timing one reduction takes over the same untimed, as often as there are
"reductions" in a step of several ranks; and a step's share of "vote", of which
there are some each minute. Steps and what is spent in them are those of the
tenth fastest of a hundred: what else a machine does only ever adds to them.
"""

import importlib
import json
import os
import statistics
import sys
import time

import numpy

import rank
import scalebench
import world

BATCH = 32


class Stopwatch:
    """Seconds spent within some functions, a call within another's once."""

    def __init__(self):
        self.seconds, self._depth = 0.0, 0

    def wrap(self, owner, name):
        function = getattr(owner, name)

        def timed(*arguments, **named):
            self._depth += 1
            begin = time.perf_counter()
            try:
                return function(*arguments, **named)
            finally:
                self._depth -= 1
                if self._depth == 0:
                    self.seconds += time.perf_counter() - begin

        setattr(owner, name, timed)


class Still:
    """No signal came."""

    cause = None


class Batch:
    """A data set that is the same batch over and over."""

    def __init__(self, module):
        arrays = importlib.import_module(
            "pytorch_data" if module.startswith("pytorch") else "batches")
        draw = numpy.random.default_rng(1)
        self._batch = (
            arrays.normalised(arrays.array(draw.integers(
                0, 256, (BATCH, 32, 32, 3), numpy.uint8))),
            arrays.array(draw.integers(0, 10, BATCH)))

    def shuffle(self, seed, epoch):
        pass

    def batch(self, start, end):
        return self._batch


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


def difference(calls, function, plain):
    """Seconds of a call of function beyond those of plain; in turn, so that a
    slow moment is everybody's."""
    fastest = {function: [], plain: []}
    for _ in range(9):
        for each, times in fastest.items():
            times.append(timed(calls, each))
    return min(fastest[function]) - min(fastest[plain])


def bucket_clock(trainer):
    """What the clock in DistributedDataParallel's hook takes for a bucket."""
    import torch
    from torch.nn.parallel import DistributedDataParallel

    import pytorch_ddp

    def step_of(reduction):
        model = DistributedDataParallel(torch.nn.Linear(1, 1))
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

    seconds = difference(10, step_of(pytorch_ddp.Reduction(
        torch.device("cpu"), 1)), step_of(None))
    return seconds, len(trainer._reduction._spans)


def graph_clock(trainer):
    """What the clock within TensorFlow's graph takes for a gradient."""
    import tensorflow as tf

    import tensorflow_replica

    weights = [tf.constant(w.numpy())
               for w in trainer.model.trainable_variables]

    @tf.function
    def plain():
        return [2 * w for w in weights]

    @tf.function
    def clocked():
        clock = tensorflow_replica.Clock()
        return clock.time(lambda w: 2 * w, weights), clock.moments()

    seconds = difference(20, lambda: trainer.reduction(clocked()[1]), plain)
    return seconds / len(weights), len(weights)


# Where the reductions of a program are timed, and how; the others' are not.
CLOCKS = {"pytorch_ddp": bucket_clock, "tensorflow_horovod": graph_clock,
          "tensorflow_multiworker": graph_clock}


def ready(module, model, steps, trainer):
    """A rank that is about to train so many steps."""
    point = {
        "workers": 1, "seed": 1, "framework": module,
        "worker_batch": BATCH, "global_batch": BATCH, "learning_rate": 0.01,
        "workload": {"model": model, "momentum": 0.9, "weight_decay": 1e-4,
                     "batch_norm": "local", "max_minutes": 10, "max_steps": 0,
                     "epochs": 1, "learning_rate": 0.01, "warmup_epochs": 0,
                     "decay": "none", "decay_epochs": []},
        "resources": {"device": "cpu", "cpus_per_worker": 1}}
    place = world.World()
    trainer.join(point, place)
    run = rank.Rank(point, place, Still(), trainer)
    run.events = scalebench.Events(scalebench.event_file(0, 0), module, 0, 1)
    run.steps_per_epoch, run.batch = steps, BATCH
    run.schedule = rank.recipe.Schedule(point, steps)
    run.data = Batch(module)
    trainer.build(point)
    run.began = run.voted = time.perf_counter()
    return run


def steps_of(run, watch):
    """The time of a step and of what is ours of it, but for those in which
    the ranks vote."""
    kept, stepped = [], run.stepped

    def keep(*arguments):
        kept.append((time.perf_counter(), watch.seconds, run.to_vote()))
        return stepped(*arguments)

    run.stepped = keep
    watch.wrap(run, "stepped")
    run.epoch()
    # From one call of stepped to the next; the first steps find nothing warm.
    pairs = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(kept, kept[1:])
             if not a[2]][len(kept) // 4:]
    return (statistics.quantiles(column, n=10)[0] for column in zip(*pairs))


def main(module, model, steps):
    trainer = importlib.import_module(module).Trainer()
    watch = Stopwatch()
    for name in ("communication", "reduction"):  # it reads the clocks there
        if hasattr(trainer, name):
            watch.wrap(trainer, name)
    if module.startswith("keras"):
        # Keras calls callbacks in each step anyway: its progress bar is one.
        reporter = importlib.import_module("keras_loop").Reporter
        for name in ("on_train_batch_begin", "on_train_batch_end"):
            watch.wrap(reporter, name)
    run = ready(module, model, steps, trainer)
    step, spent = steps_of(run, watch)
    clock, reductions = CLOCKS.get(module, lambda _: (0.0, 0))(trainer)
    vote = timed(20, lambda: trainer.sums(run.ballot(1.5)))
    json.dump({
        "step": step, "spent": spent, "clock": clock,
        "reductions": reductions, "vote": vote,
        "hooks": spent + reductions * clock + vote * step / rank.VOTE_EVERY,
    }, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
