"""Computes what each layer gives in PyTorch, and its gradients.

    python3 pytorch_gradients.py MODEL FOLDER

FOLDER holds, as little-endian numbers, weights.f32, images.f32 (as NHWC) and
labels.u8. Then it also holds outputs.f32, of all convolutions and linear
layers in order, with channels last, and gradients.f32, of the mean loss by the
weights. All is computed in double precision.
"""

import os
import sys

import torch
from torch.nn import functional

import pytorch_models


def main(name, folder):
    def read(file_name, dtype):
        with open(os.path.join(folder, file_name), "rb") as file:
            return torch.frombuffer(bytearray(file.read()), dtype=dtype)

    def write(file_name, tensors):
        with open(os.path.join(folder, file_name), "wb") as file:
            for tensor in tensors:
                tensor = tensor.detach()
                if tensor.dim() == 4:
                    tensor = tensor.permute(0, 2, 3, 1)
                file.write(tensor.reshape(-1).float().numpy().tobytes())

    model = pytorch_models.MODELS[name]()
    pytorch_models.load(model, read("weights.f32", torch.float32))
    model.double().train()
    outputs = []
    for layer in model.modules():
        if isinstance(layer, (torch.nn.Conv2d, torch.nn.Linear)):
            layer.register_forward_hook(
                lambda _layer, _inputs, output: outputs.append(output))
    images = read("images.f32", torch.float32).view(-1, 32, 32, 3)
    logits = model(images.permute(0, 3, 1, 2).double())
    labels = read("labels.u8", torch.uint8).long()
    functional.cross_entropy(logits, labels).backward()
    write("outputs.f32", outputs)
    write("gradients.f32", [p.grad for p in model.parameters()])


if __name__ == "__main__":
    main(*sys.argv[1:])
