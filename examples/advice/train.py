"""A training that is not one: a cluster played by sleeping.

A step computes for 30 ms, some of the ranks longer by chance, and then reduces
gradients by a ring, which the later half of the computing hides in part. The
accuracy rises with the samples, less with each of a larger batch.
"""

import argparse
import math
import os
import random
import time

try:
    import scalebench
except ImportError:
    scalebench = None

COMPUTE = 0.030  # seconds a step
TRANSFER = 0.024  # of a ring's bandwidth term, half of it hidden
LATENCY = 0.0004  # a hop
SAMPLES = 4_000  # to the target with a small batch
CRITICAL = 640  # batch that takes twice as many


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rank = int(os.environ.get("RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))

    chance = random.Random(options.seed)  # the same in every rank
    per_step = options.batch * world
    needed = SAMPLES * (1 + per_step / CRITICAL) * chance.gauss(1, 0.02)
    speed = chance.gauss(1, 0.01)  # of this run
    ring = TRANSFER * (world - 1) / world + 2 * (world - 1) * LATENCY
    if scalebench:
        scalebench.begin()
        scalebench.note("simulated: the training is played by sleeping")
    now = time.monotonic()
    for step in range(1, options.steps + 1):
        compute = [COMPUTE * speed * chance.gauss(1, 0.02)
                   for _ in range(world)]
        exposed = max(0, ring - COMPUTE / 2)
        now += max(compute) + exposed
        time.sleep(max(0, now - time.monotonic()))
        if scalebench:
            scalebench.step(
                samples=options.batch, compute=compute[rank],
                communication=max(compute) + exposed - compute[rank])
        accuracy = 1 - math.exp(-math.log(4) * step * per_step / needed)
        if scalebench:
            scalebench.evaluate(accuracy)


if __name__ == "__main__":
    main()
