"""Makes three steps of a language model and writes where they led.

    python decoder_steps.py MODULE FOLDER RANK SIZE PORT

MODULE is a program with a Trainer, or "plain": PyTorch's own loop on the whole
batch, on one process, without anything of ours but the model. FOLDER holds
point.json; MODULE-RANK.json and MODULE-RANK.f32 (all parameters) are written
there, and by "plain" start.f32, what they were before.
"""

import importlib
import json
import os
import sys

import numpy

RATES = 0.2, 1.0, 0.4


def batches(point, rank, size):
    """Inputs and labels of each step: of a rank, or of all (size 0)."""
    shape = point["architecture"]
    draw = numpy.random.RandomState(5)
    own = point["worker_batch"]
    for _ in RATES:
        tokens = draw.randint(256, size=(point["workers"] * own,
                                         shape["sequence"] + 1))
        if size:
            tokens = tokens[rank * own:(rank + 1) * own]
        yield tokens[:, :-1], tokens[:, 1:]


class Run:
    """What a trainer's epoch needs of a rank.Rank."""

    steps_per_epoch = len(RATES)

    def __init__(self, arrays, batches):
        self._batches = [tuple(arrays.tokens(arrays.array(x)) for x in pair)
                         for pair in batches]
        self.losses = []

    def inputs(self, k):
        return self._batches[k]

    def rate(self):
        return RATES[len(self.losses)]

    def wants_norms(self):
        return False

    def stepped(self, rate, loss, *parts):
        self.losses.append(loss)
        return False


def plain(point):
    import torch
    from torch.nn import functional

    import pytorch_decoder
    import recipe
    torch.set_num_threads(1)
    model = pytorch_decoder.fill(pytorch_decoder.build(point), "cpu",
                                 recipe.stream(point["seed"], "model"))
    workload = point["workload"]

    def vector():
        return torch.cat([p.detach().flatten() for p in model.parameters()]
                         ).numpy()

    start = vector()
    decay = workload["weight_decay"]
    if workload["optimizer"] == "sgd":
        optimizer = torch.optim.SGD(model.parameters(), lr=0,
                                    momentum=workload["momentum"],
                                    weight_decay=decay)
    else:
        make = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}
        optimizer = make[workload["optimizer"]](
            model.parameters(), lr=0, weight_decay=decay,
            betas=(workload["beta1"], workload["beta2"]),
            eps=workload["epsilon"])
    losses = []
    for rate, pair in zip(RATES, batches(point, 0, 0)):
        inputs, labels = map(torch.from_numpy, pair)
        optimizer.zero_grad()
        scores = model(inputs)
        each = functional.cross_entropy(scores.flatten(0, 1), labels.flatten(),
                                        reduction="none")
        each.mean().backward()
        optimizer.param_groups[0]["lr"] = rate
        optimizer.step()
        # Of each rank's samples.
        losses.append(each.detach().view(point["workers"], -1).mean(1)
                      .tolist())
    return losses, start, vector()


def framework(module, point, rank, size, port):
    import world
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    place = world.World({
        "RANK": str(rank), "WORLD_SIZE": str(size), "LOCAL_RANK": str(rank),
        "LOCAL_WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port), "SCALEBENCH_RESTART": "0",
        "SCALEBENCH_INTERFACE": "lo"})
    trainer = importlib.import_module(module).Trainer()
    assert trainer.join(point, place) == size
    count = trainer.build(point)
    start = trainer.parameter_sha256()
    arrays = importlib.import_module(trainer.arrays)
    run = Run(arrays, batches(point, rank, size))
    trainer.epoch(run)
    vector = numpy.concatenate([numpy.asarray(v) for v in trainer.vectors()])
    assert len(vector) == count, (len(vector), count)
    loss, correct = trainer.evaluate(*run.inputs(0))
    return {"losses": run.losses, "start": start, "evaluation": loss,
            "correct": correct, "sums": trainer.sums([1.0, 0.5])}, vector


def main(module, folder, rank, size, port):
    with open(os.path.join(folder, "point.json"), encoding="utf-8") as file:
        point = json.load(file)
    if module == "plain":
        losses, start, vector = plain(point)
        found = {"losses": losses}
        start.astype("<f4").tofile(os.path.join(folder, "start.f32"))
    else:
        found, vector = framework(module, point, rank, size, port)
    name = os.path.join(folder, f"{module}-{rank}")
    vector.astype("<f4").tofile(name + ".f32")
    with open(name + ".json", "w", encoding="utf-8") as file:
        json.dump(found, file)
    sys.stdout.flush()
    os._exit(0)  # taking gloo apart may wait for ever, see rank.py


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
