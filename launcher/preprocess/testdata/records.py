"""Writes images.tfrecord beside it, by the package tfrecord 1.14.6."""
import pathlib

from tfrecord.writer import TFRecordWriter

here = pathlib.Path(__file__).parent
writer = TFRecordWriter(str(here / "images.tfrecord"))
for label, name in enumerate(["wide", "tall"]):
    writer.write({
        "image/class/label": (label, "int"),
        "image/encoded": ((here / f"{name}.jpg").read_bytes(), "byte"),
        "image/filename": (name.encode(), "byte"),
    })
writer.close()
