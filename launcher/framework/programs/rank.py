"""A rank's run of a point, the same under every framework that has a trainer.

The loop, the recipe, the data and the events stand here; what a framework does
stands in its trainer, an object with

    name               the framework in words
    join(point, place) -> ranks in all, as the framework itself says; it raises
                       unless this is the place that was planned
    precisions         those that it has; without, fp32 alone
    together           whether no rank computes a batch without the others;
                       without, each does
    covers             how many ranks this process drives
    threads            compute threads, once it has joined
    versions()         -> library to version
    data(point)        -> the data set, found but not read; see samples.py
    build(point)       -> trainable parameters; makes model and optimiser
    barrier()          returns when all ranks are there
    epoch(rank)        trains an epoch of rank's batches, see Rank.epoch
    memory()           -> names to bytes: allocated_memory in tensors,
                       reserved_memory by the allocator, at the peak and on
                       the device that used most; without, it is not told
    gemm()             -> FLOP/s of the fastest multiplication of two matrices,
                       see gemm.py; None on a GPU, whose peak is known;
                       without, it is not measured
    sums(numbers)      -> their sums over the ranks, once all work that was
                       begun is done
    average_statistics()  makes batch norm's running averages equal on all
    evaluate(inputs, labels) -> sum of losses, how many are put rightly
    parameter_sha256() -> of all parameters; it raises if its own replicas
                       differ
"""

import contextlib
import json
import math
import os
import sys
import time
import traceback

import recipe
import scalebench
import world

# What each rank says of going on when the ranks vote, and the seconds since it
# last did.
TIME_UP, INTERRUPTED, DIVERGED, SECONDS = range(4)

# The ranks vote so often, in seconds, not in each step.
VOTE_EVERY = 1.0

# How large gradients are is looked at in as many steps of an epoch as give
# about so many blocks of them, in one of so many at the most: as by the native
# trainer, and so rarely that it costs next to nothing.
NORM_BLOCKS, NORMS_EVERY = 20, 8


class Interrupted(Exception):
    """The run was told to stop and did so in order."""


def main(trainer):
    """Runs the point of the run folder, to the end of the process."""
    interruption = scalebench.Interruption()
    with open(os.path.join(scalebench.run_folder(), "point.json"),
              encoding="utf-8") as file:
        point = json.load(file)
    secret = os.path.join(scalebench.run_folder(), "parameters.json")
    if os.path.exists(secret):  # point.json has digests of some of them
        with open(secret, encoding="utf-8") as file:
            point["parameters"] = json.load(file)
    Rank(point, world.World(), interruption, trainer).run()


class Rank:
    def __init__(self, point, place, interruption, trainer):
        self.point, self.workload = point, point["workload"]
        self.world, self.interruption = place, interruption
        self.trainer = trainer
        self.phase = "rendezvous"  # what an error is reported under
        self.built = False
        self.evaluated = -1  # step of the last evaluation
        self.peak = 0.0  # FLOP/s that the CPUs reached
        self.best, self.least = 0.0, math.inf  # accuracy and loss so far
        self.last_vote = 0  # step, 1-based, of the last vote; 0: none
        self.next_vote = 0  # steps made before the next
        self.last_step = self.workload["max_steps"] or math.inf
        # Of the epoch so far: steps looked at, and the sums of the squared
        # norms of their own and averaged gradients.
        self.norm_blocks = []

    def run(self):
        size, failure = self.world.size, None
        try:
            size = self.trainer.join(self.point, self.world)
        except Exception as error:
            failure = error
        self.events = scalebench.Events(
            scalebench.event_file(self.world.rank, self.world.restart),
            self.point["framework"], self.world.rank,
            max(size, self.world.rank + 1), self.world.local_rank,
            self.world.restart, ranks=self.trainer.covers)
        self.interruption.events = self.events
        status, cause, checksum = "done", "", ""
        try:
            if failure is not None:
                raise failure
            self.train()
            self.phase = "parameters"
            self.report_memory()
            self.report_peak()
            checksum = self.trainer.parameter_sha256()
        except Interrupted as interrupted:
            status, cause = "interrupted", str(interrupted)
            checksum = self.trainer.parameter_sha256()
        except Exception as error:
            traceback.print_exception(type(error), error, error.__traceback__)
            status = "failed"
            cause = said(error)
            self.events.error(self.phase, cause)
            cause = f"{self.phase}: {cause}"
        self.events.stop(status, cause, checksum)
        if status != "failed":
            # Nobody leaves while another needs it; nor does it matter any more
            # if the first to leave is gone before the last has heard of it.
            with contextlib.suppress(Exception):
                self.trainer.barrier()
        # Exit without taking the framework apart, which can wait for threads
        # that wait for the interpreter. After a failure the others learn of it
        # by the closed connections.
        sys.stdout.flush()
        os._exit(0 if status == "done" else 1)

    def train(self):
        point, workload, trainer = self.point, self.workload, self.trainer
        self.phase = "configuration"
        if workload["precision"] not in getattr(trainer, "precisions",
                                                ("fp32",)):
            raise ValueError('workload.precision is'
                             f' "{workload["precision"]}", which'
                             f' {trainer.name} does not have here')
        self.phase = "data"
        self.data = trainer.data(point)
        samples = self.data.train_samples
        self.phase = "configuration"
        self.steps_per_epoch = samples // point["global_batch"]
        if self.steps_per_epoch == 0:
            raise ValueError(f"the training set has {samples} samples, fewer"
                             " than one global batch of"
                             f" {point['global_batch']}")
        self.batch = point["worker_batch"] * trainer.covers
        self.schedule = recipe.Schedule(point, self.steps_per_epoch)
        parameters = trainer.build(point)
        self.built = True
        self.events.environment(threads=trainer.threads,
                                versions=trainer.versions())
        checksum = trainer.parameter_sha256()
        self.phase = "rendezvous"
        trainer.barrier()
        self.measure_peak()
        self.began = time.perf_counter()
        self.events.train(
            parameters=parameters, gradient_bytes=4 * parameters,
            train_samples=samples, test_samples=self.data.test_samples,
            global_batch=point["global_batch"],
            steps_per_epoch=self.steps_per_epoch, parameter_sha256=checksum)
        print(f"rank {self.world.rank} of {point['workers']}:"
              f" {workload['model']}, {parameters} parameters,"
              f" {samples} samples, {trainer.threads} threads")
        if self.world.rank == 0 and getattr(self.data, "sequence", 0):
            self.events.figure("tokens_per_sample", self.data.sequence,
                               "tokens")
        self.phase = "data"
        self.data.read()
        self.voted = time.perf_counter()
        self.epochs()

    def report_memory(self):
        """Records what of a device's memory was used at the peak, where the
        framework tells."""
        memory = getattr(self.trainer, "memory", dict)()
        if self.world.rank == 0:
            for name, size in memory.items():
                self.events.figure(name, size, "B",
                                   "at the peak, of the device that used most")

    def measure_peak(self):
        """Tries what the CPUs reach, where the trainer can: on all ranks at
        once, as they train, and outside the training clock. The best of the
        moments that it is called in counts: a busy one would make the peak too
        low and the MFU too high."""
        if self.workload.get("mfu") and hasattr(self.trainer, "gemm"):
            self.trainer.barrier()
            self.peak = max(self.peak, self.trainer.gemm() or 0.0)
            self.trainer.barrier()

    def report_peak(self):
        self.measure_peak()
        if self.world.rank == 0 and self.peak > 0:
            self.events.figure("gemm_flops", self.peak, "FLOP/s",
                               "the fastest of the multiplications of two"
                               " matrices before and after the training, on"
                               " rank 0's CPUs while all ranks do such")

    def epochs(self):
        while True:
            self.phase = "train"
            over = self.epoch()
            interrupted = False
            if self.evaluated != self.events.steps:
                self.phase = "evaluate"
                interrupted = self.evaluate()
            if over or recipe.trained_enough(self.point, self.events.epochs,
                                             self.best, self.least):
                return
            if interrupted:
                raise self.told_to_stop()

    def epoch(self):
        """One pass over the training set; whether the run is over by it.

        The trainer takes inputs(k) for k from 0 to steps_per_epoch − 1, trains
        at rate(), and calls stepped in the end of each step; when that returns
        True it makes no further step.
        """
        self.over = self.stopped = False
        self.loss_sum, self.taken = 0.0, 0
        self.end = min(self.events.steps + self.steps_per_epoch,
                       self.last_step)  # steps made after the epoch
        self.begin = self.last = time.perf_counter()
        self.data.shuffle(self.point["seed"], self.events.epochs)
        self.trainer.epoch(self)
        self.report_norms()
        if self.stopped:
            raise self.told_to_stop()
        return self.over

    def inputs(self, k):
        """The inputs and labels of this process in step k of the epoch."""
        at = (k * self.point["global_batch"]
              + self.world.rank * self.point["worker_batch"])
        return self.data.batch(at, at + self.batch)

    def rate(self):
        """The learning rate of the next step."""
        return self.schedule.at(self.events.steps)

    def to_vote(self):
        """Whether the ranks vote in the step under way: all of them or none,
        for they count from equal sums. No epoch ends without a vote."""
        steps = self.events.steps
        return steps >= self.next_vote or steps + 1 >= self.end

    def ballot(self, loss):
        """This process's votes, and the time since its last ones. A loss that
        was not finite since then still shows in the sum."""
        now = time.perf_counter()
        limit = self.workload["max_minutes"]
        time_up = 0 < limit <= (now - self.began) / 60
        return [float(self.world.rank == 0 and time_up),
                float(self.interruption.cause is not None),
                float(not math.isfinite(self.loss_sum + loss)),
                now - self.voted]

    def stepped(self, rate, loss, data_wait=None, hidden=None,
                communication=None, squared_norms=None):
        """Ends a step, in some of which the ranks vote. loss is this process's
        mean.

        squared_norms are of the gradients of the mean loss over this rank's
        batch, and over the global one; None: not measured.

        data_wait and communication are in seconds, None where they were not
        measured. hidden is what else of the step was no computing; None: how
        much is not known. Returns whether the trainer is to stop.
        """
        voting = self.to_vote()
        if voting:
            begin = time.perf_counter()
            self.count(self.trainer.sums(self.ballot(loss)), rate)
            if hidden is not None:
                hidden += time.perf_counter() - begin
        self.loss_sum += loss * self.batch
        self.taken += 1
        end = time.perf_counter()
        duration, self.last = end - self.last, end
        compute = None
        if hidden is not None and data_wait is not None:
            compute = max(duration - data_wait - hidden, 0.0)
        self.events.step(duration, self.batch, data_wait, compute,
                         communication)
        if squared_norms is not None:
            self.add_norms(squared_norms)
        return voting and self.ends(rate)

    def ends(self, rate):
        """Whether the trainer is to stop after the step that was just made,
        which may be the last of its epoch."""
        if self.taken == self.steps_per_epoch:
            samples = self.taken * self.batch
            self.events.epoch(samples=samples, seconds=self.last - self.begin,
                              loss=self.loss_sum / samples, learning_rate=rate)
        if self.events.steps >= self.last_step:
            self.over, self.stopped = True, False
        return self.over or self.stopped

    def wants_norms(self):
        """Whether to take the norms of the gradients of the step to come: on
        all ranks of the same steps."""
        return self.events.steps % self.norms_every() == 0

    def norms_every(self):
        return min(max(self.steps_per_epoch // NORM_BLOCKS, 1), NORMS_EVERY)

    def add_norms(self, squared_norms):
        steps = max(self.steps_per_epoch // self.norms_every() // NORM_BLOCKS,
                    1)
        if not self.norm_blocks or self.norm_blocks[-1][0] == steps:
            self.norm_blocks.append([0, 0.0, 0.0])
        block = self.norm_blocks[-1]
        block[0] += 1
        block[1] += squared_norms[0]
        block[2] += squared_norms[1]

    def report_norms(self):
        """Records how large the gradients of the epoch were, also of one that
        was cut short."""
        blocks, self.norm_blocks = self.norm_blocks, []
        if not blocks or not math.isfinite(sum(map(sum, blocks))):
            return
        whole = self.taken == self.steps_per_epoch
        self.events.gradients(
            epoch=self.events.epochs + (0 if whole else 1),
            samples=self.batch, global_samples=self.point["global_batch"],
            steps=[steps for steps, _, _ in blocks],
            own=[own / steps for steps, own, _ in blocks],
            averaged=[averaged / steps for steps, _, averaged in blocks])

    def count(self, votes, rate):
        """Does what the ranks have voted for in the step under way; votes are
        the sums of their ballots."""
        step = self.events.steps + 1
        if votes[DIVERGED] > 0:
            which = (f"step {step}" if step == self.last_vote + 1
                     else f"a step from {self.last_vote + 1} to {step}")
            raise ArithmeticError(
                f"training has diverged: the loss of {which} is not a finite"
                f" number; lower workload.learning_rate ({rate:g} at this"
                " step) or lengthen workload.warmup_epochs")
        ballots = self.point["workers"] // self.trainer.covers
        mean = votes[SECONDS] / ballots
        steps = (step - self.last_vote) * VOTE_EVERY / max(mean, 1e-9)
        self.next_vote = step + max(int(steps), 1) - 1
        self.last_vote, self.voted = step, time.perf_counter()
        self.over = votes[TIME_UP] > 0
        self.stopped = not self.over and votes[INTERRUPTED] > 0

    def told_to_stop(self):
        return Interrupted(self.interruption.cause
                           or "another rank was told to stop")

    def evaluate(self):
        """Measures the accuracy, of which every rank takes a share. It is on
        the training clock. Returns whether a rank was told to stop."""
        begin = time.perf_counter()
        self.trainer.average_statistics()
        parts = self.point["workers"] // self.trainer.covers
        start, end = recipe.share(self.data.test_samples, self.world.rank,
                                  parts)
        counts = [0.0, 0, 0, 0]  # loss, correct, labels, ranks told to stop
        batch = self.point.get("micro_batch") or self.batch
        # All ranks ask as often, though their shares differ by a sample: where
        # parameters are shared out, a forward pass needs every rank.
        passes = math.ceil(math.ceil(self.data.test_samples / parts) / batch)
        for at in range(start, start + passes * batch, batch):
            if at >= end:
                if getattr(self.trainer, "together", False):
                    self.trainer.evaluate(*self.data.test_batch(0, 1))
                continue
            inputs, labels = self.data.test_batch(at, min(at + batch, end))
            loss, correct = self.trainer.evaluate(inputs, labels)
            counts[0] += loss
            counts[1] += correct
            counts[2] += math.prod(labels.shape)
        counts[3] = float(self.interruption.cause is not None)
        loss, correct, labels, stopped = self.trainer.sums(counts)
        self.evaluated = self.events.steps
        if not math.isfinite(loss):
            raise ArithmeticError(
                "training has diverged: the loss on the test split after step"
                f" {self.events.steps} is not a finite number; lower"
                " workload.learning_rate or lengthen workload.warmup_epochs")
        accuracy = correct / labels
        self.best = max(self.best, accuracy)
        self.least = min(self.least, loss / labels)
        if self.world.rank == 0:
            self.events.evaluation(
                accuracy=accuracy, loss=loss / labels,
                samples=self.data.test_samples,
                seconds=time.perf_counter() - begin)
            print(f"epoch {self.events.epochs}, step {self.events.steps},"
                  f" {time.perf_counter() - self.began:.1f} s:"
                  f" accuracy {accuracy:.4f}, loss {loss / labels:.4f}")
        return stopped > 0


def busy(spans):
    """For how long at least one of the spans lasted, pairs of begin and end,
    and when the last of them to end did."""
    total, until = 0.0, -math.inf
    for begin, end in sorted(spans):
        if end > until:
            total += end - max(begin, until)
            until = end
    return total, until


def said(error):
    """What an error says, at a length that a person reads."""
    text = str(error).strip() or type(error).__name__
    return text if len(text) <= 2000 else text[:2000] + " …"
