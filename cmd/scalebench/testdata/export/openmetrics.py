"""Reads gauges by the strict parser of prometheus_client."""
import json
import sys

from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families)

status, values = {}, {}
with open(sys.argv[1], encoding="utf-8", newline="") as file:
    families = list(text_string_to_metric_families(file.read()))
for family in families:
    for s in family.samples:
        run = s.labels["run"]
        status[run] = s.labels["status"]
        if "measure" in s.labels and s.name != "scalebench_target_reached":
            values.setdefault(run, {})[s.labels["measure"]] = s.value
rate = [f for f in families if f.unit == "samples_per_second"]
assert "scalebench_throughput_samples_per_second" in {f.name for f in rate}
json.dump({"status": status,
           "values": {run: values.get(run, {}) for run in status}},
          sys.stdout)
