"""Prints where an interpreter's packages have NCCL and cuBLAS, as JSON.

PyTorch's wheels for CUDA 12 and 11 bring them in nvidia/nccl/lib and
nvidia/cublas/lib, for CUDA 13 cuBLAS is in nvidia/cu13/lib; before version 2
some are in torch/lib. Nothing is imported: PyTorch takes seconds.
"""

import glob
import importlib.util
import json
import os
import re


def folders(name):
    spec = importlib.util.find_spec(name)
    return list(spec.submodule_search_locations or []) if spec else []


def first(*patterns):
    for pattern in patterns:
        for file in sorted(glob.glob(pattern), key=version, reverse=True):
            return file
    return ""


def version(file):
    number = re.search(r"\.so\.(\d+)", file)
    return int(number.group(1)) if number else 0


def cuda(torch):
    """The CUDA that PyTorch was built for: 12; "" if unknown."""
    for folder in torch:
        try:
            with open(os.path.join(folder, "version.py")) as file:
                found = re.search(r"^cuda\b.*?(\d+)\.\d+", file.read(), re.M)
        except OSError:
            continue
        if found:
            return found.group(1)
    return ""


nvidia, torch = folders("nvidia"), folders("torch")
built = cuda(torch)
nccl = [f"{folder}/nccl/lib/libnccl.so.2" for folder in nvidia]
cublas = [f"{folder}/{place}/lib/libcublas.so."
          for folder in nvidia for place in ("cublas", "cu13", "cu12")]
cublas += [f"{folder}/lib/libcublas.so." for folder in torch]
print(json.dumps({
    "nccl": first(*nccl, *(f"{folder}/lib/libnccl.so.2" for folder in torch)),
    "cublas": first(*(f"{file}{built}" for file in cublas if built),
                    *(f"{file}[0-9]*" for file in cublas)),
    "pytorch": bool(torch)}))
