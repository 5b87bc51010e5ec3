"""Reads a file store by MLflow's client."""
import json
import os
import sys

os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"

from mlflow.tracking import MlflowClient  # noqa: E402

client = MlflowClient("file://" + os.path.abspath(sys.argv[1]))
experiment = client.get_experiment_by_name("hostile")
status, values, labels = {}, {}, set()
for run in client.search_runs([experiment.experiment_id]):
    name = run.info.run_name
    status[name] = run.data.tags["scalebench.status"]
    assert run.info.status == {"done": "FINISHED"}.get(status[name], "FAILED")
    values[name] = dict(run.data.metrics)
    labels.add(run.data.params["parameters.label"])
    assert run.data.tags.get("unit.throughput", "samples/s") == "samples/s"
    if status[name] == "done":
        history = client.get_metric_history(run.info.run_id,
                                            "evaluation.accuracy")
        assert [(m.step, m.value) for m in history] == [(30, 0.5),
                                                        (60, 0.75)], history
json.dump({"status": status, "values": values, "label": sorted(labels)},
          sys.stdout)
