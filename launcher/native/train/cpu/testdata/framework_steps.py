"""Makes steps of a framework's trainer from given weights on given batches.

    python framework_steps.py MODULE MODELS FOLDER RANK SIZE PORT

MODULE is a program with a Trainer, MODELS has its models. FOLDER holds
job.json and, as little-endian numbers, weights.f32, images-RANK.f32 and
labels-RANK.u8. After the steps, parameters-RANK.f32, statistics-RANK.f32 (each
rank's own) and evaluation-RANK.json (after averaging them) stand beside. A
process that drives several ranks is started as rank 0 and writes what it has
under their names.
"""

import importlib
import json
import os
import sys

import numpy

import world


class Run:
    """What a trainer's epoch needs of a rank.Rank."""

    def __init__(self, rates, images, labels):
        self._rates, self._images, self._labels = rates, images, labels
        self.steps_per_epoch = len(rates)
        self.losses = []

    def inputs(self, k):
        return self._images[k], self._labels[k]

    def rate(self):
        return self._rates[len(self.losses)]

    def stepped(self, rate, loss, *parts):
        self.losses.append(loss)
        return False


def main(module, models, folder, rank, size, port):
    def path(name):
        return os.path.join(folder, name)

    with open(path("job.json"), encoding="utf-8") as file:
        job = json.load(file)
    place = world.World({
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "SCALEBENCH_RESTART": "0",
        "SCALEBENCH_INTERFACE": "lo"})
    point = {
        "workers": size, "seed": 99,
        "workload": {"model": job["model"], "momentum": job["momentum"],
                     "weight_decay": job["weight_decay"]},
        "resources": {"device": "cpu", "cpus_per_worker": 1}}
    trainer = importlib.import_module(module).Trainer()
    models = importlib.import_module(models)
    assert trainer.join(point, place) == size
    trainer.build(point)
    models.load(trainer.model, numpy.fromfile(path("weights.f32"), "<f4"))
    ranks = range(rank, rank + trainer.covers)
    steps = len(job["rates"])
    images = numpy.concatenate(
        [numpy.fromfile(path(f"images-{r}.f32"), "<f4")
         .reshape(steps, -1, 32, 32, 3) for r in ranks], 1)
    labels = numpy.concatenate(
        [numpy.fromfile(path(f"labels-{r}.u8"), "u1").reshape(steps, -1)
         for r in ranks], 1).astype(numpy.int64)
    run = Run(job["rates"], images, labels)
    trainer.epoch(run)
    processes = size // trainer.covers
    assert trainer.sums([1.0, 0.5]) == [processes, 0.5 * processes]
    statistics = trainer.local_statistics()
    trainer.parameter_sha256()
    own = images.shape[1] // trainer.covers
    trainer.average_statistics()
    for i, r in enumerate(ranks):
        models.flat(trainer.model).tofile(path(f"parameters-{r}.f32"))
        numpy.concatenate([s.reshape(-1) for s in statistics[i]] or
                          [numpy.zeros(0)]).astype("<f4").tofile(
            path(f"statistics-{r}.f32"))
        part = slice(i * own, (i + 1) * own)
        loss, correct = trainer.evaluate(images[0][part], labels[0][part])
        with open(path(f"evaluation-{r}.json"), "w",
                  encoding="utf-8") as file:
            json.dump({"losses": run.losses, "loss": loss,
                       "correct": correct}, file)
    trainer.barrier()
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:4], *map(int, sys.argv[4:]))
