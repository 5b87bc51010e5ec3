"""Computes what a saved model gives in PyTorch when it is evaluated.

    python3 pytorch_logits.py FOLDER

FOLDER holds model.safetensors, and images.f32 as little-endian numbers (NHWC).
Then it also holds logits.f32. All is computed in double precision.
"""

import json
import os
import sys

import torch

import pytorch_models


def read(path):
    """The metadata of a file in the safetensors format, and its tensors in
    the order in which they lie there."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = bytearray(file.read())
    metadata = header.pop("__metadata__")
    tensors = {}
    for name, entry in sorted(header.items(),
                              key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        assert entry["dtype"] == "F32"
        tensors[name] = torch.frombuffer(
            data[begin:end], dtype=torch.float32).view(entry["shape"])
    return metadata, tensors


def main(folder):
    metadata, tensors = read(os.path.join(folder, "model.safetensors"))
    model = pytorch_models.MODELS[metadata["model"]]()
    averages = ("norm.mean", "norm.variance")
    pytorch_models.load(model, torch.cat(
        [tensor.reshape(-1) for name, tensor in tensors.items()
         if not name.endswith(averages)]))
    statistics = [tensor for name, tensor in tensors.items()
                  if name.endswith(averages)]
    buffers = pytorch_models.statistics(model)
    assert len(buffers) == len(statistics)
    for buffer, tensor in zip(buffers, statistics):
        buffer.copy_(tensor)
    model.double().eval()
    with open(os.path.join(folder, "images.f32"), "rb") as file:
        images = torch.frombuffer(bytearray(file.read()), dtype=torch.float32)
    images = images.view(-1, 32, 32, 3).permute(0, 3, 1, 2)
    with torch.no_grad():
        logits = model(images.double())
    with open(os.path.join(folder, "logits.f32"), "wb") as file:
        file.write(logits.reshape(-1).float().numpy().tobytes())


if __name__ == "__main__":
    main(sys.argv[1])
