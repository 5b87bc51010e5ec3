"""Makes steps of pytorch-ddp from given weights on given batches.

    python3 pytorch_steps.py FOLDER RANK SIZE

FOLDER holds job.json and, as little-endian numbers, weights.f32,
images-RANK.f32 and labels-RANK.u8. After the steps, parameters-RANK.f32,
statistics-RANK.f32 (each rank's own) and evaluation-RANK.json (after averaging
them) stand beside.
"""

import datetime
import json
import os
import sys

import torch
import torch.distributed as dist

import pytorch_models
from pytorch_replica import Replica


def main(folder, rank, size):
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
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method="file://" + path("store"),
                            rank=rank, world_size=size,
                            timeout=datetime.timedelta(seconds=60))
    model = pytorch_models.build({"workload": {"model": job["model"]}}, 99)
    pytorch_models.load(model, read("weights.f32", torch.float32))
    replica = Replica(model, torch.device("cpu"), job["momentum"],
                      job["weight_decay"])
    steps = len(job["rates"])
    images = read(f"images-{rank}.f32", torch.float32)
    images = images.view(steps, -1, 32, 32, 3).permute(0, 1, 4, 2, 3)
    labels = read(f"labels-{rank}.u8", torch.uint8).view(steps, -1).long()
    losses = []
    for step, rate in enumerate(job["rates"]):
        loss, _ = replica.gradient(images[step], labels[step],
                                   lambda loss: torch.zeros(1))
        losses.append(loss.item())
        replica.update(rate)
    write(f"parameters-{rank}.f32", pytorch_models.flat(model))
    write(f"statistics-{rank}.f32", torch.cat(
        pytorch_models.statistics(model) or [torch.zeros(0)]))
    replica.average_statistics()
    loss, correct = replica.evaluate(images[0], labels[0])
    with open(path(f"evaluation-{rank}.json"), "w", encoding="utf-8") as file:
        json.dump({"losses": losses, "loss": loss, "correct": correct}, file)
    dist.barrier()
    os._exit(0)  # taking gloo apart may wait for ever, see pytorch_ddp.py


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
