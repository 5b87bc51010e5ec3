"""The samples of a data set as PyTorch tensors; see samples.py."""

import torch
from torch.nn import functional

import cifar10
from samples import PADDING

array = torch.as_tensor


def shuffled(samples, seed):
    return torch.randperm(samples, generator=_generator(seed))


def transforms(samples, seed):
    draw = _generator(seed)
    corner = torch.randint(2 * PADDING + 1, (samples, 2), generator=draw)
    mirror = torch.randint(2, (samples, 1), generator=draw)
    return torch.cat((corner, mirror), 1)


def _generator(seed):
    generator = torch.Generator()
    generator.manual_seed(seed)
    return generator


def images_and_labels(split):
    records = torch.frombuffer(split.read(), dtype=torch.uint8)
    records = records.view(-1, cifar10.RECORD)
    planes = records[:, 1:].reshape(-1, cifar10.CHANNELS, cifar10.HEIGHT,
                                    cifar10.WIDTH)
    return planes.permute(0, 2, 3, 1).contiguous(), records[:, 0].long()


def normalised(images, transforms=None):
    """Images ready for a model: NCHW in the channels-last memory format."""
    x = (images.float() / 255 - torch.tensor(cifar10.MEAN)) \
        / torch.tensor(cifar10.STD)
    if transforms is not None:
        x = functional.pad(x, (0, 0, PADDING, PADDING, PADDING, PADDING))
        column, row, mirror = transforms.unsqueeze(2).unbind(1)
        ahead = torch.arange(cifar10.WIDTH).expand(len(images), -1)
        columns = column + torch.where(mirror == 1, ahead.flip(1), ahead)
        rows = row + torch.arange(cifar10.HEIGHT)
        each = torch.arange(len(images)).view(-1, 1, 1)
        x = x[each, rows.unsqueeze(2), columns.unsqueeze(1)]
    return x.permute(0, 3, 1, 2)


def ids_of(path, count, width):
    signed = {1: torch.uint8, 2: torch.int16, 4: torch.int32}[width]
    return torch.from_file(path, False, count, dtype=signed)


def tokens(ids):
    """Ids are without a sign, which PyTorch 1 has for single bytes only."""
    return ids.long() & (1 << 8 * min(4, ids.element_size())) - 1
