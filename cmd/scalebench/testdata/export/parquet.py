"""Reads Parquet tables by pyarrow and by DuckDB, which must agree."""
import json
import sys

import duckdb
import pyarrow.parquet

folder = sys.argv[1]
runs, values, steps = (pyarrow.parquet.read_table(f"{folder}/{name}.parquet")
                       for name in ("runs", "values", "steps"))
status = {r["run"]: r["status"] for r in runs.to_pylist()}
found = {run: {} for run in status}
for v in values.to_pylist():
    if v["value"] is not None:
        found[v["run"]][v["measure"]] = v["value"]
db = duckdb.connect()
for name in ("runs", "values", "steps"):
    db.execute(f'CREATE VIEW "{name}" AS FROM \'{folder}/{name}.parquet\'')
assert dict(db.execute("SELECT run, status FROM runs").fetchall()) == status
for run, measure, value in db.execute(
        'SELECT run, measure, value FROM "values" WHERE value IS NOT NULL'
        ).fetchall():
    assert found[run][measure] == value, (run, measure, value)
labels = db.execute("SELECT DISTINCT parameters->>'parameters.label'"
                    " FROM runs").fetchall()
assert db.execute("SELECT count(DISTINCT rank) FROM steps JOIN runs"
                  " USING (run) WHERE status = 'done' AND workers = 2"
                  ).fetchone() == (2,)
# 2 × (1 + 2 + 4 + 8 + 16) ranks of good runs have 60 steps each, 6 of failed
# ones 30.
assert len(steps) == 62 * 60 + 6 * 30, len(steps)
units = json.loads(steps.schema.metadata[b"scalebench.units"])
assert units["duration"] == "s", units
assert str(runs.schema.field("created").type) == "timestamp[us, tz=UTC]"
json.dump({"status": status, "values": found,
           "label": sorted(t for t, in labels)}, sys.stdout)
