"""A training that is not one: a cluster played on a clock of its own.

A step computes for 0.3 s, some of the ranks longer by chance, and then reduces
gradients by a ring, of which the computing hides some. The accuracy rises with
the samples, less with each of a larger batch.
"""

import argparse
import math
import os
import random
import time

now = 0.0  # seconds on the cluster's clock
time.monotonic = lambda: now  # which is also scalebench's, so nobody waits

import scalebench  # noqa: E402

START = 20  # seconds until all ranks are there
COMPUTE = 0.3  # seconds a step
TRANSFER = 0.2  # of a ring's bandwidth term
LATENCY = 0.003  # of a hop
SAMPLES = 80_000  # to the target with a small batch
CRITICAL = 2_048  # batch that takes twice as many
EVALUATE = 25  # steps of one worker between two evaluations


def main():
    global now
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rank = int(os.environ["RANK"])
    world = int(os.environ["WORLD_SIZE"])

    chance = random.Random(1_000 * options.seed + world)  # alike in all ranks
    per_step = options.batch * world
    needed = SAMPLES * (1 + per_step / CRITICAL) * chance.gauss(1, 0.02)
    speed = chance.gauss(1, 0.01)  # of this run
    ring = TRANSFER * (world - 1) / world + 2 * (world - 1) * LATENCY
    now += START * chance.gauss(1, 0.05)
    scalebench.begin()
    scalebench.note("simulated: a cluster played on a clock of its own")
    accuracy, step = 0, 0
    while accuracy < 0.76 or step < 60:
        step += 1
        compute = [COMPUTE * speed * chance.gauss(1, 0.03)
                   for _ in range(world)]
        took = max(compute) + max(0, ring - COMPUTE / 6)
        now += took
        scalebench.step(samples=options.batch, compute=compute[rank],
                        communication=took - compute[rank])
        if step % max(1, EVALUATE // world) == 0:
            accuracy = 1 - math.exp(-math.log(4) * step * per_step / needed)
            now += 2 / world
            scalebench.evaluate(accuracy)


if __name__ == "__main__":
    main()
