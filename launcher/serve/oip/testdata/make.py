"""Writes the files of this folder, with numpy (2.4.6 wrote them).

    make.py FOLDER
"""

import os
import sys

import numpy
from numpy.lib import format

os.chdir(sys.argv[1])
x = numpy.array([[1, -2.5], [0.25, 1e-3], [3, 4], [5, 6], [7, 1e30]])
for name in "float16 float32 float64 int8 uint8 int64 uint16 bool".split():
    with numpy.errstate(all="ignore"):
        numpy.save(f"{name}.npy", x[:, :1].clip(0, 7).astype(name))
numpy.save("pairs.npy", x.astype("float32"))
numpy.save("labels.npy", numpy.array([0, 0, 1, 1, 1]))
numpy.save("four.npy", x[:4].astype("float32"))
numpy.save("fortran.npy", numpy.asfortranarray(x))
numpy.save("bigendian.npy", x.astype(">f4"))
numpy.save("one.npy", numpy.float32(1))
numpy.save("none.npy", x[:0])
numpy.save("text.npy", numpy.array(["a", "bc"]))
numpy.save("complex.npy", x.astype("complex64"))
numpy.save("records.npy", numpy.zeros(2, [("a", "f4"), ("b", "i4")]))
numpy.save("objects.npy", numpy.array([{}, None]))
for version in (2, 0), (3, 0):
    with open(f"version{version[0]}.npy", "wb") as f:
        format.write_array(f, x.astype("float32"), version)
