"""Writes images.parquet and plain.parquet beside it, by pyarrow 26.0.1: as
Hugging Face has images, and as bytes alone."""

import pathlib

import pyarrow
import pyarrow.parquet

here = pathlib.Path(__file__).parent
names = ["wide.jpg", "tall.jpg"]
files = [(here / name).read_bytes() for name in names]
images = [{"bytes": file, "path": name} for name, file in zip(names, files)]
kind = pyarrow.struct(
    [("bytes", pyarrow.binary()), ("path", pyarrow.string())]
)
pyarrow.parquet.write_table(
    pyarrow.table({"label": [0, 1], "image": pyarrow.array(images, kind)}),
    here / "images.parquet",
    row_group_size=1,
)
pyarrow.parquet.write_table(
    pyarrow.table({"name": names, "picture": files}),
    here / "plain.parquet",
    compression="zstd",
    use_dictionary=False,
)
