"""A training that knows nothing of scalebench and prints what it does, as many
do: the rate that rank 0 sees, and the accuracy, after each epoch."""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def rings(samples, generator):
    """Points in a square; on which of three rings each is, is to be learnt."""
    points = 2 * torch.rand(samples, 2, generator=generator) - 1
    return points, (3.999 * points.norm(dim=1)).long() % 3


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=12)
    options = parser.parse_args()

    rank = int(os.environ.get("RANK", 0))
    world = int(os.environ.get("WORLD_SIZE", 1))
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")
    dist.init_process_group("gloo", rank=rank, world_size=world)
    generator = torch.Generator().manual_seed(1)
    points, labels = rings(6_400, generator)
    test_points, test_labels = rings(1_000, generator)
    torch.manual_seed(1)
    model = DistributedDataParallel(nn.Sequential(
        nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(),
        nn.Linear(128, 3)))
    optimizer = torch.optim.Adam(model.parameters(), 0.005)
    began = time.time()
    for epoch in range(1, options.epochs + 1):
        begin, steps = time.time(), 0
        for ids in torch.randperm(len(points)).split(options.batch * world):
            if len(ids) < options.batch * world:
                break
            mine = ids[rank::world]
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(points[mine]),
                                        labels[mine]).backward()
            optimizer.step()
            steps += 1
        rate = steps * options.batch * world / (time.time() - begin)
        with torch.no_grad():
            right = (model(test_points).argmax(1) == test_labels).sum()
        if rank == 0:
            print(f"epoch {epoch} | {rate:.1f} samples/s |"
                  f" accuracy {right.item() / len(test_labels):.3f} |"
                  f" {time.time() - began:.2f} s", flush=True)


if __name__ == "__main__":
    main()
