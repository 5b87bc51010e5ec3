"""Prints how far an evaluation between steps of MXNet changes the training.

One rank makes six steps, and again with an evaluation after the third. Prints
JSON: the two hashes of the parameters, and the largest difference of the
running averages of batch norm.
"""

import json
import os
import sys

import numpy

import mxnet_horovod
import world


class Run:
    """Steps on random numbers; what a trainer's epoch needs of a rank.Rank."""

    def __init__(self, *seeds):
        self._seeds, self.steps_per_epoch = seeds, len(seeds)

    def inputs(self, k):
        draw = numpy.random.default_rng(self._seeds[k])
        return (draw.standard_normal((4, 32, 32, 3), numpy.float32),
                draw.integers(0, 10, 4))

    def rate(self):
        return 0.01

    def stepped(self, *step):
        return False


def trained(place, *parts):
    """The hash and the averages after some parts, evaluations between."""
    point = {
        "workers": 1, "seed": 9,
        "workload": {"model": "cnn", "momentum": 0.9, "weight_decay": 1e-4},
        "resources": {"device": "cpu", "cpus_per_worker": 1}}
    trainer = mxnet_horovod.Trainer()
    trainer.join(point, place)
    trainer.build(point)
    for i, seeds in enumerate(parts):
        if i > 0:
            trainer.average_statistics()
            trainer.evaluate(*Run(0).inputs(0))
        trainer.epoch(Run(*seeds))
    return (trainer.parameter_sha256(),
            numpy.concatenate(trainer.local_statistics()[0]))


def main():
    straight, averages = trained(world.World(), range(6))
    os.environ["MASTER_PORT"] = sys.argv[1]
    broken, others = trained(world.World(), range(3), range(3, 6))
    json.dump({"hashes": [straight, broken],
               "difference": float(abs(averages - others).max())}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
