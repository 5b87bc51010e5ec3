"""Reads scalebench's database, through its stable views, into data frames."""

from __future__ import annotations

import os
import pathlib
import sqlite3
import types
from typing import TYPE_CHECKING, Any, Literal, Optional, Sequence, Union
from typing import overload

if TYPE_CHECKING:
    import pandas
    import polars

Frame = Literal["pandas", "polars"]
DataFrame = Union["pandas.DataFrame", "polars.DataFrame"]

# The types of the views' columns; all others are text.
_TIMES = {"created", "ingested", "submitted", "started", "ended"}
_INTEGERS = {"repeat", "attempt", "workers", "nodes", "world", "restart",
             "steps", "warmup_steps", "samples", "epochs", "algorithm", "id",
             "rank", "step", "counts", "reached"}
_FLOATS = {"throughput", "end_to_end", "train_seconds", "init_seconds",
           "step_p50", "step_p95", "step_p99", "skew", "data_wait", "compute",
           "communication", "final_accuracy", "value", "duration"}
_PARAMETER_TYPES = {"integer": int, "real": float, "boolean": bool}


def open_results(path: Union[str, "os.PathLike[str]", None] = None
                 ) -> "Results":
    """Opens a database for reading: path, $SCALEBENCH_DB, or the default."""
    if path is None:
        data = os.environ.get("XDG_DATA_HOME", "")
        if not os.path.isabs(data):
            data = os.path.join(os.path.expanduser("~"), ".local", "share")
        path = (os.environ.get("SCALEBENCH_DB")
                or os.path.join(data, "scalebench", "scalebench.db"))
    return Results(path)


class Results:
    """An open database. It changes nothing. Use it in a with statement."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        file = pathlib.Path(path).absolute()
        if not file.is_file():
            raise FileNotFoundError(
                f"database {file} does not exist; scalebench collect makes it")
        self._db = sqlite3.connect(file.as_uri() + "?mode=ro", uri=True)
        # Output of programs, quoted in a detail, may be in any encoding.
        self._db.text_factory = lambda text: text.decode("utf-8", "replace")

    def close(self) -> None:
        self._db.close()

    def __enter__(self) -> "Results":
        return self

    def __exit__(self, kind: Optional[type[BaseException]],
                 error: Optional[BaseException],
                 trace: Optional[types.TracebackType]) -> None:
        self.close()

    @overload
    def runs(self, study: Optional[str] = None, *,
             frame: Literal["pandas"] = "pandas") -> "pandas.DataFrame": ...

    @overload
    def runs(self, study: Optional[str] = None, *,
             frame: Literal["polars"]) -> "polars.DataFrame": ...

    def runs(self, study: Optional[str] = None, *,
             frame: Frame = "pandas") -> DataFrame:
        """All runs, or those of a study, oldest first, failed ones included.

        After the columns of the view runs comes one for each parameter that
        differs among the runs.
        """
        columns = self._select("runs", "created, id", study=study)
        at = {run: i for i, run in enumerate(columns["run"][1])}
        columns.update(self._swept(at, study, columns))
        return _frame(columns, frame)

    @overload
    def values(self, study: Optional[str] = None, *,
               frame: Literal["pandas"] = "pandas") -> "pandas.DataFrame": ...

    @overload
    def values(self, study: Optional[str] = None, *,
               frame: Literal["polars"]) -> "polars.DataFrame": ...

    def values(self, study: Optional[str] = None, *,
               frame: Frame = "pandas") -> DataFrame:
        """Every measure of every run, in base units: the view values."""
        return _frame(self._select("values", "run, measure, at", study=study),
                      frame)

    @overload
    def steps(self, run: str, *,
              frame: Literal["pandas"] = "pandas") -> "pandas.DataFrame": ...

    @overload
    def steps(self, run: str, *,
              frame: Literal["polars"]) -> "polars.DataFrame": ...

    def steps(self, run: str, *, frame: Frame = "pandas") -> DataFrame:
        """Every step of every rank of one run: the view rank_step."""
        return _frame(self._select("rank_step", "restart, rank, step",
                                   run=run), frame)

    def _select(self, view: str, order: str, **where: Optional[str]
                ) -> "dict[str, tuple[type, list[Any]]]":
        """The columns of a view, each with its type."""
        given = {k: v for k, v in where.items() if v is not None}
        condition = " AND ".join(f"{k} = ?" for k in given) or "true"
        cursor = self._db.execute(
            f'SELECT * FROM "{view}" WHERE {condition} ORDER BY {order}',
            list(given.values()))
        names = [d[0] for d in cursor.description]
        rows = cursor.fetchall()
        return {name: (_type(name), [row[i] for row in rows])
                for i, name in enumerate(names)}

    def _swept(self, at: "dict[str, int]", study: Optional[str],
               taken: "dict[str, Any]"
               ) -> "dict[str, tuple[type, list[Any]]]":
        """A column for each parameter that differs among the runs."""
        found: "dict[str, tuple[set[str], list[Any]]]" = {}
        for run, key, value, kind in self._db.execute(
                "SELECT run, key, value, type FROM parameters"
                " WHERE ? IS NULL OR study = ? ORDER BY key", (study, study)):
            kinds, column = found.setdefault(key, (set(), [None] * len(at)))
            kinds.add(kind)
            if run in at:
                column[at[run]] = value
        columns = {}
        for key, (kinds, column) in found.items():
            if key in taken or all(v == column[0] for v in column):
                continue
            kind = _PARAMETER_TYPES.get(kinds.pop(), str) \
                if len(kinds) == 1 else float \
                if kinds == {"integer", "real"} else str
            columns[key] = kind, column
        return columns


def _type(column: str) -> type:
    if column in _INTEGERS:
        return int
    return float if column in _FLOATS or column in _TIMES else str


def _cast(kind: type, column: "Sequence[Any]") -> "list[Any]":
    return [None if v is None else kind(v) for v in column]


def _microseconds(column: "Sequence[Any]") -> "list[Any]":
    return [None if v is None else round(v * 1e6) for v in column]


def _frame(columns: "dict[str, tuple[type, list[Any]]]",
           frame: str) -> DataFrame:
    if frame == "pandas":
        return _pandas(columns)
    if frame == "polars":
        return _polars(columns)
    raise ValueError(f"frame={frame!r}: want \"pandas\" or \"polars\"")


def _pandas(columns: "dict[str, tuple[type, list[Any]]]"
            ) -> "pandas.DataFrame":
    import pandas
    kinds = {int: "Int64", float: "Float64", bool: "boolean", str: "string"}
    made = {}
    for name, (kind, column) in columns.items():
        if name in _TIMES:
            made[name] = pandas.Series(_microseconds(column), dtype="Int64"
                                       ).astype("datetime64[us, UTC]")
        else:
            made[name] = pandas.Series(_cast(kind, column), dtype=kinds[kind])
    return pandas.DataFrame(made)


def _polars(columns: "dict[str, tuple[type, list[Any]]]"
            ) -> "polars.DataFrame":
    import polars
    kinds = {int: polars.Int64, float: polars.Float64, bool: polars.Boolean,
             str: polars.String}
    made = []
    for name, (kind, column) in columns.items():
        if name in _TIMES:
            made.append(polars.Series(name, _microseconds(column),
                                      dtype=polars.Int64
                                      ).cast(polars.Datetime("us", "UTC")))
        else:
            made.append(polars.Series(name, _cast(kind, column),
                                      dtype=kinds[kind]))
    return polars.DataFrame(made)
