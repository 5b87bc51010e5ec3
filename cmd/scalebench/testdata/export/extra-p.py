"""Reads JSON lines by Extra-P, which fits a model to them."""
import json
import sys

from extrap.fileio.file_reader.jsonlines_file_reader import (
    read_jsonlines_file)
from extrap.modelers.model_generator import ModelGenerator

experiment = read_jsonlines_file(sys.argv[1], keep_values=True)
assert [p.name for p in experiment.parameters] == ["workers"]
ModelGenerator(experiment).model_all()
# Steps take 11 ms, the mean of two repeats, and 1 ms more for each doubling.
step, = (model for (_, metric), model in experiment.modelers[0].models.items()
         if metric.name == "step_p50 (s)")
found = float(step.hypothesis.function.evaluate([64]))
assert abs(found - 0.017) < 0.0002, (found, str(step.hypothesis.function))
means = {}
for callpath in experiment.callpaths:
    for metric in experiment.metrics:
        for m in experiment.measurements.get((callpath, metric), []):
            workers = int(m.coordinate[0])
            name = metric.name.split(" ")[0]
            means.setdefault(name, {})[workers] = float(m.mean)
json.dump({"means": means}, sys.stdout)
