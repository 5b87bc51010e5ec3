"""Writes the Parquet files beside it, by pyarrow 26.0.1:
CODEC-VERSION-ENCODING.parquet."""

import datetime
import decimal
import pathlib

import pyarrow
import pyarrow.parquet

here = pathlib.Path(__file__).parent
rows = range(40)


def column(value, kind):  # every seventh is null, from the fourth on
    return pyarrow.array(
        [None if i % 7 == 3 else value(i) for i in rows], kind
    )


table = pyarrow.table(
    {
        "image": column(
            lambda i: {"bytes": bytes([i]) * (i % 5), "path": f"{i}.jpg"},
            pyarrow.struct(
                [("bytes", pyarrow.binary()), ("path", pyarrow.string())]
            ),
        ),
        "label": pyarrow.array(rows, pyarrow.int64()),
        "small": column(lambda i: i - 20, pyarrow.int32()),
        "single": column(lambda i: i / 4, pyarrow.float32()),
        "double": column(lambda i: i / 8, pyarrow.float64()),
        "truth": column(lambda i: i % 3 == 0, pyarrow.bool_()),
        "word": column(lambda i: "abc"[i % 3] * 3, pyarrow.string()),
        "price": column(lambda i: decimal.Decimal(i), pyarrow.decimal128(30)),
        "day": column(
            lambda i: datetime.date(1970, 1, 1) + datetime.timedelta(i),
            pyarrow.date32(),
        ),
        "count": column(lambda i: 2**64 - 1 - i, pyarrow.uint64()),
        "list": column(
            lambda i: [i] * (i % 3), pyarrow.list_(pyarrow.int64())
        ),
    }
)
required = pyarrow.schema(
    [
        field.with_nullable(False) if field.name == "label" else field
        for field in table.schema
    ]
)
table = table.cast(required)
for codec, version, encoding in [
    ("none", "1.0", "plain"),
    ("snappy", "1.0", "dictionary"),
    ("gzip", "2.0", "dictionary"),
    ("zstd", "2.0", "plain"),
    ("zstd", "1.0", "dictionary"),
    ("brotli", "1.0", "plain"),
]:
    pyarrow.parquet.write_table(
        table,
        here / f"{codec}-{version}-{encoding}.parquet",
        row_group_size=15,
        compression=codec,
        data_page_version=version,
        use_dictionary=encoding == "dictionary",
        write_page_checksum=codec == "gzip",
        data_page_size=40,
        write_batch_size=4,
    )
