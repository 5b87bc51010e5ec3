"""Reads OTLP JSON by OpenTelemetry's protocol buffers."""
import json
import sys

from google.protobuf import json_format
from opentelemetry.proto.metrics.v1 import metrics_pb2

status, values, labels = {}, {}, set()
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        data = json_format.Parse(line, metrics_pb2.MetricsData())
        for resource in data.resource_metrics:
            about = {a.key: a.value.string_value
                     for a in resource.resource.attributes}
            run = about["scalebench.run"]
            status[run] = about["scalebench.status"]
            labels.add(about["scalebench.parameter.parameters.label"])
            found = values[run] = {}
            for metric in resource.scope_metrics[0].metrics:
                point, = metric.gauge.data_points
                found[metric.name.split(".", 1)[1]] = point.as_double
json.dump({"status": status, "values": values, "label": sorted(labels)},
          sys.stdout)
