"""Says what pytorch-ddp makes of the points and images on standard input."""

import json
import sys

import torch

import pytorch_data
import recipe


def main():
    asked = json.load(sys.stdin)
    images = torch.tensor(asked["images"], dtype=torch.uint8)
    images = images.view(-1, 3, 32, 32).permute(0, 2, 3, 1)
    transforms = torch.tensor(asked["transforms"])
    json.dump({
        "rates": [[recipe.Schedule(point, asked["steps_per_epoch"]).at(step)
                   for step in range(asked["steps"])]
                  for point in asked["points"]],
        "shares": [recipe.share(asked["samples"], rank, 7)
                   for rank in range(7)],
        "plain": _numbers(pytorch_data.normalised(images)),
        "augmented": _numbers(pytorch_data.normalised(images, transforms)),
    }, sys.stdout)


def _numbers(images):
    """In the order of the native trainer: channels last."""
    return images.permute(0, 2, 3, 1).reshape(-1).tolist()


if __name__ == "__main__":
    main()
