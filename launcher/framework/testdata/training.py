"""A made-up training that reports by the clock: python3 training.py HOW."""

import os
import sys
import time

import scalebench


def loop(steps):
    for _ in range(steps):
        with scalebench.part("data_wait"):
            time.sleep(0.01)
        time.sleep(0.01)
        scalebench.step(samples=8)


def main(how):
    if how == "twice":
        scalebench.begin()
        scalebench.begin()
    if how not in ("lazy", "outside"):
        time.sleep(0.05)
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
    time.sleep(0.03)
    scalebench.evaluate(accuracy=0.5, samples=20)
    scalebench.step(samples=4, communication=0.001)
    scalebench.epoch()
    scalebench.note("made up")


if __name__ == "__main__":
    main(sys.argv[1])
