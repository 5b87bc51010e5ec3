"""Computes what a model gives in PyTorch when it is evaluated.

    python3 pytorch_logits.py MODEL FOLDER

FOLDER holds, as little-endian numbers, weights.f32, statistics.f32 (of batch
normalisation, mean then variance) and images.f32 (as NHWC). Then it also holds
logits.f32. All is computed in double precision.
"""

import os
import sys

import torch

import pytorch_models


def main(name, folder):
    def read(file_name):
        with open(os.path.join(folder, file_name), "rb") as file:
            content = bytearray(file.read())
        if not content:
            return torch.zeros(0)
        return torch.frombuffer(content, dtype=torch.float32)

    model = pytorch_models.MODELS[name]()
    pytorch_models.load(model, read("weights.f32"))
    rest = read("statistics.f32")
    for buffer in pytorch_models.statistics(model):
        buffer.copy_(rest[:buffer.numel()])
        rest = rest[buffer.numel():]
    assert rest.numel() == 0
    model.double().eval()
    images = read("images.f32").view(-1, 32, 32, 3)
    with torch.no_grad():
        logits = model(images.permute(0, 3, 1, 2).double())
    with open(os.path.join(folder, "logits.f32"), "wb") as file:
        file.write(logits.reshape(-1).float().numpy().tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
