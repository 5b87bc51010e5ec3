"""Reads event files by TensorBoard's own loader."""
import json
import os
import sys

from tensorboard.backend.event_processing import event_accumulator

status, values = {}, {}
for name in os.listdir(sys.argv[1]):
    events = event_accumulator.EventAccumulator(
        os.path.join(sys.argv[1], name))
    events.Reload()
    run = "hostile/" + name
    about = events.Tensors("run")[0].tensor_proto.string_val[0].decode()
    cells = dict(line[2:-2].split(" | ", 1)
                 for line in about.splitlines()[2:])
    assert cells["run"] == run
    status[run] = cells["status"]
    found = values[run] = {}
    for tag in events.Tags()["scalars"]:
        if tag.startswith("run/"):
            found[tag[4:].split(" ")[0]] = events.Scalars(tag)[0].value
    if status[run] == "done":
        steps = events.Scalars("step/duration of the slowest rank (s)")
        assert [s.step for s in steps] == list(range(60)), steps
        accuracy = events.Scalars("evaluation/accuracy")
        assert [(s.step, s.value) for s in accuracy] == [(30, 0.5),
                                                         (60, 0.75)]
json.dump({"status": status, "values": values}, sys.stdout)
