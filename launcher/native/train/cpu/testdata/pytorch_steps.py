"""Makes steps of a PyTorch trainer from given weights on given batches.

    python3 pytorch_steps.py MODULE FOLDER RANK SIZE PORT

MODULE is a program with a Trainer. FOLDER holds job.json and, as little-endian
numbers, weights.f32, images-RANK.f32 and labels-RANK.u8. After the steps,
parameters-RANK.f32, statistics-RANK.f32 (each rank's own) and
evaluation-RANK.json (after averaging them) stand beside.
"""

import importlib
import json
import os
import sys

import torch

import pytorch_models
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

    def wants_norms(self):
        return False

    def stepped(self, rate, loss, *parts):
        self.losses.append(loss)
        return False


def main(module, folder, rank, size, port):
    def path(name):
        return os.path.join(folder, name)

    def read(name, dtype):
        with open(path(name), "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=dtype)

    def write(name, vector):
        with open(path(name), "wb") as file:
            file.write(vector.numpy().tobytes())

    with open(path("job.json"), encoding="utf-8") as file:
        job = json.load(file)
    place = world.World({
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "SCALEBENCH_RESTART": "0",
        "SCALEBENCH_INTERFACE": "lo"})
    # PyTorch reads them itself.
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    point = {
        "workers": size, "seed": 99,
        "workload": {"model": job["model"], "momentum": job["momentum"],
                     "weight_decay": job["weight_decay"],
                     "optimizer": job["optimizer"] or "sgd",
                     "beta1": job["beta1"], "beta2": job["beta2"],
                     "epsilon": job["epsilon"],
                     "batch_norm": "local"},
        "resources": {"device": "cpu", "cpus_per_worker": 1}}
    trainer = importlib.import_module(module).Trainer()
    assert trainer.join(point, place) == size
    trainer.build(point)
    pytorch_models.load(trainer.model, read("weights.f32", torch.float32))
    steps = len(job["rates"])
    images = read(f"images-{rank}.f32", torch.float32)
    images = images.view(steps, -1, 32, 32, 3).permute(0, 1, 4, 2, 3)
    labels = read(f"labels-{rank}.u8", torch.uint8).view(steps, -1).long()
    run = Run(job["rates"], images, labels)
    trainer.epoch(run)
    assert trainer.sums([1.0, 0.5]) == [size, 0.5 * size]
    write(f"parameters-{rank}.f32", pytorch_models.flat(trainer.model))
    write(f"statistics-{rank}.f32", torch.cat(
        pytorch_models.statistics(trainer.model) or [torch.zeros(0)]))
    trainer.average_statistics()
    loss, correct = trainer.evaluate(images[0], labels[0])
    with open(path(f"evaluation-{rank}.json"), "w", encoding="utf-8") as file:
        json.dump({"losses": run.losses, "loss": loss, "correct": correct},
                  file)
    trainer.barrier()
    os._exit(0)  # taking gloo apart may wait for ever, see rank.py


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], *map(int, sys.argv[3:]))
