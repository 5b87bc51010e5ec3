"""Reads a trace as Perfetto's documentation describes the format."""
import collections
import json
import sys

with open(sys.argv[1], encoding="utf-8") as file:
    trace = json.load(file)
sums, ends = collections.Counter(), collections.Counter()
for e in sorted((e for e in trace["traceEvents"] if e["ph"] == "X"),
                key=lambda e: e["ts"]):
    track = e["pid"], e["tid"]
    assert e["ts"] > ends[track] - 0.01, e  # one at a time on a track
    ends[track] = e["ts"] + e["dur"]
    sums[e["cat"]] += e["dur"] / 1e6
about = trace["otherData"]
json.dump({"status": {about["run"]: about["status"]}, "sums": sums},
          sys.stdout)
