"""Reads the database by the package scalebench, as pandas and as Polars."""
import importlib.resources
import json
import sys

import scalebench

assert "site-packages" in scalebench.__file__, scalebench.__file__
assert importlib.resources.files(scalebench).joinpath("py.typed").is_file()
scalebench.begin()  # does nothing outside a run
scalebench.step(samples=1)
scalebench.report("own", 1.0, unit="s")
with scalebench.open(sys.argv[1]) as db:
    frame = db.runs("hostile")
    again = db.runs("hostile", frame="polars")
    values = db.values("hostile")
    assert len(db.values(frame="polars")) == len(values)
    good = frame[frame["status"] == "done"]
    two = good[good["workers"] == 2].iloc[0]
    steps = db.steps(two["run"])
    assert len(steps) == 2 * 60 and set(steps["rank"]) == {0, 1}, steps
    assert db.runs("none").shape[0] == 0
    assert list(db.runs("none").dtypes.astype(str)) == list(
        frame.drop(columns=["parameters.label"]).dtypes.astype(str))
assert again.columns == list(frame.columns)
assert again["run"].to_list() == list(frame["run"])
assert again["throughput"].to_list() == [
    None if v != v else v for v in frame["throughput"].to_numpy(
        dtype=float, na_value=float("nan"))]
assert again["created"].to_list() == [
    t.to_pydatetime() for t in frame["created"]], again["created"]
assert str(frame["workers"].dtype) == "Int64"
assert str(frame["created"].dtype).endswith(", UTC]"), frame["created"].dtype
found = {run: {} for run in frame["run"]}
for row in values.dropna(subset=["value"]).itertuples():
    found[row.run][row.measure] = row.value
json.dump({"status": dict(zip(frame["run"], frame["status"])),
           "values": found,
           "label": sorted(set(frame["parameters.label"]))}, sys.stdout)
