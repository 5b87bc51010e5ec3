"""A made-up training that reports by the clock: python3 training.py HOW.

The clock is made up as well, so that what is recorded of it does not depend
on what else the machine does.
"""

import os
import sys
import time

import scalebench


class Clock:
    """Stands in for the module time: it goes on when it is told to."""

    CLOCK_BOOTTIME = time.CLOCK_BOOTTIME

    def __init__(self, now):
        self.now = now
        self.ahead = time.clock_gettime(time.CLOCK_BOOTTIME) - now

    def monotonic(self):
        return self.now

    def clock_gettime(self, which):
        return self.now + self.ahead

    def time(self):
        return time.time()

    def sleep(self, seconds):
        self.now += seconds


clock = scalebench.time = Clock(time.monotonic())


def loop(steps):
    for _ in range(steps):
        with scalebench.part("data_wait"):
            clock.sleep(0.01)
        clock.sleep(0.01)
        scalebench.step(samples=8)


class Odd:
    def __float__(self):
        raise KeyError("odd")


def odd():
    """Everything that is not a value, in the place of every value."""
    scalebench.begin(parameters=float("nan"), colour=3, train_samples="x")
    for v in (float("nan"), float("inf"), None, "0.5", 75, -1, 10**400,
              [1, 2], Odd()):
        scalebench.evaluate(v)
        scalebench.evaluate(0.5, loss=v, samples=v)
        scalebench.step(v)
        scalebench.step(4, data_wait=v, compute=v, communication=v)
        scalebench.epoch(learning_rate=v, loss=v)
        scalebench.note(v)
    with scalebench.part("nothing"):
        pass


def gone():
    """The file is closed under it, as that of a file system that went away."""
    scalebench.begin()
    os.close(scalebench._training._events._file)
    for _ in range(300):
        scalebench.step(1)
    scalebench.evaluate(0.5)


def main(how):
    if how in ("odd", "gone"):
        return {"odd": odd, "gone": gone}[how]()
    if how == "twice":
        scalebench.begin()
        scalebench.begin()
    if how not in ("lazy", "outside"):
        clock.sleep(0.05)
        scalebench.begin(everyone=how == "everyone", parameters=10)
    loop(3)
    if how == "fails":
        raise ArithmeticError("the loss is NaN")
    if how == "percent":
        scalebench.evaluate(75)
    if how == "forks":
        child = os.fork()
        if child == 0:
            loop(1)
            sys.exit(0)  # by way of atexit
        os.waitpid(child, 0)
    scalebench.epoch(learning_rate=0.1, loss=1.5)
    clock.sleep(0.03)
    scalebench.evaluate(accuracy=0.5, samples=20)
    scalebench.step(samples=4, communication=0.001)
    scalebench.epoch()
    scalebench.note("made up")


if __name__ == "__main__":
    main(sys.argv[1])
