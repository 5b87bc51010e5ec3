"""Makes steps of SGD in PyTorch from given weights on given batches, in fp32.

    PYTHONPATH=launcher/framework/programs python3 pytorch_steps.py FOLDER

FOLDER holds job.json and, as little-endian numbers, weights.f32, images.f32
and labels.u8. parameters.f32, statistics.f32 and losses.f32 are put beside.
"""

import json
import os
import struct
import sys

import torch
from torch.nn import functional

import pytorch_models


def main(folder):
    def path(name):
        return os.path.join(folder, name)

    def read(name, dtype):
        with open(path(name), "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=dtype)

    def write(name, vector):
        numbers = vector.detach().float().cpu().tolist()
        with open(path(name), "wb") as file:
            file.write(struct.pack(f"<{len(numbers)}f", *numbers))

    with open(path("job.json"), encoding="utf-8") as file:
        job = json.load(file)
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    device, steps = job["device"], len(job["rates"])
    model = pytorch_models.build({"workload": {"model": job["model"]}}, 1)
    pytorch_models.load(model, read("weights.f32", torch.float32))
    model.to(device).train()
    optimiser = torch.optim.SGD(model.parameters(), lr=1,
                                momentum=job["momentum"],
                                weight_decay=job["weight_decay"])
    images = read("images.f32", torch.float32).view(steps, -1, 3, 32, 32)
    labels = read("labels.u8", torch.uint8).view(steps, -1).long()
    losses = []
    for k, rate in enumerate(job["rates"]):
        optimiser.param_groups[0]["lr"] = rate
        optimiser.zero_grad()
        loss = functional.cross_entropy(model(images[k].to(device)),
                                        labels[k].to(device))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    write("parameters.f32", pytorch_models.flat(model))
    write("statistics.f32", torch.cat(
        pytorch_models.statistics(model) or [torch.zeros(0)]))
    write("losses.f32", torch.tensor(losses))


if __name__ == "__main__":
    main(sys.argv[1])
