"""The parts of the training recipe that no framework has a say in.

They do what scalebench's native trainer does: how the learning rate goes,
which samples a rank takes, after which epoch a run is long enough.
"""

import math


class Schedule:
    """The learning rate of each step.

    It rises linearly from the unscaled rate to the peak over the warm-up
    (Goyal et al. 2017, section 2.2), and then decays.
    """

    def __init__(self, point, steps_per_epoch):
        workload = point["workload"]
        self.start = workload["learning_rate"]
        self.peak = point["learning_rate"]
        self.warmup = workload["warmup_epochs"] * steps_per_epoch
        self.decay = workload["decay"]
        self.drops = [epoch * steps_per_epoch
                      for epoch in workload["decay_epochs"] or ()]
        # Of a tenth it is 10 to the bit.
        self.divisor = 1 / (workload.get("decay_factor") or 0.1)
        self.total = workload["epochs"] * steps_per_epoch
        if workload["max_steps"] and (not self.total or
                                      workload["max_steps"] < self.total):
            self.total = workload["max_steps"]
        if self.decay not in ("none", "step", "cosine"):
            raise ValueError(f'workload.decay is "{self.decay}"; want "none",'
                             ' "step" or "cosine"')
        if self.decay == "cosine" and not self.total:
            raise ValueError('workload.decay = "cosine" needs to know where'
                             " the run ends; give workload.epochs or"
                             " workload.max_steps")

    def at(self, step):
        """The rate of a step, 0-based over the whole run."""
        if step < self.warmup:
            return self.start + (self.peak - self.start) * step / self.warmup
        if self.decay == "step":
            rate = self.peak
            for drop in self.drops:
                if step >= drop:
                    rate /= self.divisor
            return rate
        if self.decay == "cosine":
            # Half a cosine from the end of the warm-up to the end of the run
            # (Loshchilov and Hutter 2017, without restarts).
            rest = max(self.total - self.warmup, 1)
            done = min((step - self.warmup) / rest, 1)
            return self.peak * (1 + math.cos(math.pi * done)) / 2
        return self.peak


def share(samples, rank, size):
    """The part [from, to) of the test split that a rank evaluates."""
    return rank * samples // size, (rank + 1) * samples // size


def trained_enough(point, epochs, accuracy, loss):
    """Whether no epoch is to follow; accuracy and loss are the best that the
    test split has had so far."""
    workload = point["workload"]
    if 0 < workload["epochs"] <= epochs:
        return True
    return (workload["until"] == "targets" and
            all(reached(target, accuracy, loss)
                for target in workload["targets"] or ()))


def reached(target, accuracy, loss):
    """A target is an accuracy, or text: "loss<=2", "perplexity<=20"."""
    if not isinstance(target, str):
        return accuracy >= target
    of, value = target.split("<=")
    if of == "perplexity":
        loss = math.exp(min(loss, 700))  # above, it is no float
    elif of != "loss":
        raise ValueError(f"{target} is judged by no evaluation")
    return loss <= float(value)


def stream(seed, name, epoch=0):
    """A seed for one use of random numbers, its own for each use and epoch."""
    mixed = (seed & 0xffffffff) * 0x9e3779b97f4a7c15
    mixed ^= ({"model": 1, "order": 2, "augment": 3}[name] << 32 | epoch) \
        * 0xbf58476d1ce4e5b9
    mixed &= 0xffffffffffffffff
    return (mixed ^ mixed >> 31) & 0x7fffffffffffffff
