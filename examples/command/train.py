"""A training as somebody has it: PyTorch's DistributedDataParallel by hand.

It runs as it stands under torchrun, under scalebench, and alone. What it knows
of scalebench are the lines with its name.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

try:
    import scalebench
except ImportError:
    scalebench = None


def spirals(samples, seed):
    """Points on three spirals; which one they are on is to be learnt."""
    generator = torch.Generator().manual_seed(seed)
    label = torch.randint(3, (samples,), generator=generator)
    along = torch.rand(samples, generator=generator)
    angle = 4 * along + 2.1 * label
    angle += 0.2 * torch.randn(samples, generator=generator)
    return torch.stack([along * angle.sin(), along * angle.cos()], 1), label


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--rate", type=float, default=0.1)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    rank = int(os.environ.get("RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(options.seed)
    model = DistributedDataParallel(nn.Sequential(
        nn.Linear(2, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, 3)))
    optimizer = torch.optim.SGD(model.parameters(), options.rate, 0.9)
    inputs, labels = spirals(12_800, options.seed)
    test_inputs, test_labels = spirals(2_000, options.seed + 1)

    if scalebench:
        scalebench.begin()
    per_step = options.batch * world
    for epoch in range(options.epochs):
        order = torch.randperm(len(inputs))
        for first in range(0, len(order) - per_step + 1, per_step):
            mine = order[first + rank * options.batch:][:options.batch]
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs[mine]),
                                               labels[mine])
            loss.backward()
            optimizer.step()
            if scalebench:
                scalebench.step(samples=len(mine))
        if scalebench:
            scalebench.epoch(learning_rate=options.rate)
        with torch.no_grad():
            right = model(test_inputs).argmax(1) == test_labels
        accuracy = right.float().mean().item()
        if scalebench:
            scalebench.evaluate(accuracy)
        if rank == 0:
            print(f"epoch {epoch + 1}: {100 * accuracy:.1f} %", flush=True)


if __name__ == "__main__":
    main()
