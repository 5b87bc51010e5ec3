"""The gradient of every single sample of a run, at its first parameters.

python3 single_samples.py POINT.JSON, with the embedded programs on the path.
Prints the mean squared norm of the gradients, and the squared norm of their
mean.
"""

import json
import sys

import torch

import pytorch_data
import pytorch_models
import pytorch_trainer
import recipe
import samples


def main(path):
    with open(path, encoding="utf-8") as file:
        point = json.load(file)
    model = pytorch_models.build(point, recipe.stream(point["seed"], "model"))
    parameters = list(model.parameters())
    data = samples.find(point, pytorch_data)
    data.read()
    data.shuffle(point["seed"], 0)
    squares, total = 0.0, 0
    for i in range(data.train_samples):
        inputs, labels = data.batch(i, i + 1)
        loss = pytorch_trainer.cross_entropy(model(inputs), labels)
        gradient = torch.cat([part.double().flatten() for part in
                              torch.autograd.grad(loss, parameters)])
        squares += gradient.dot(gradient).item()
        total = total + gradient
    n = data.train_samples
    print(json.dumps({"samples": n, "each": squares / n,
                      "mean": (total.dot(total) / n ** 2).item()}))


if __name__ == "__main__":
    main(sys.argv[1])
