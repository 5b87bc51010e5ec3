"""Serves an ONNX model with NVIDIA's Triton, by PyTriton.

Triton's Python backend hands requests to this process. Where the model leaves
its batch open, Triton's dynamic batcher puts waiting requests together, up to
the larger of its own default (4 samples) and --batch.

The port of the metrics stays closed, and gRPC's unless it is asked for.
"""

import pathlib
import shutil
import signal
import sys
import tempfile

import numpy
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

import onnx_model

DEFAULT_BATCH = 4  # Triton's
EXIT_TIME = 4  # seconds; replicas get one more before they are killed


def numpy_type(datatype):
    return {"BOOL": numpy.bool_, "FP16": numpy.float16, "FP32": numpy.float32,
            "FP64": numpy.float64}.get(datatype) or getattr(
                numpy, datatype.lower())


def main():
    o = onnx_model.options()
    model = onnx_model.Model(o.model, o.threads)
    first = 1 if model.batched else 0

    def tensors(ports):
        return [Tensor(name=p.name, dtype=numpy_type(p.datatype),
                       shape=tuple(p.shape[first:])) for p in ports]

    def one(requests):
        return [model.run(request.data) for request in requests]

    @batch
    def many(**inputs):
        return model.run(inputs)

    folder = tempfile.mkdtemp(prefix="scalebench-triton-")
    workspace = pathlib.Path(folder) / "workspace"

    def end(*_):
        # First, as there may be no time for it later; what is open stays open.
        shutil.rmtree(folder, ignore_errors=True)
        sys.exit()

    # Triton itself does not end by SIGTERM. PyTriton ends it when this process
    # exits; it gives the model the time to leave its shared memory.
    signal.signal(signal.SIGTERM, end)
    try:
        with Triton(config=TritonConfig(
                http_address=o.host, http_port=o.port,
                allow_grpc=o.grpc_port > 0, grpc_address=o.host,
                grpc_port=o.grpc_port or None, allow_metrics=False,
                exit_timeout_secs=EXIT_TIME), workspace=workspace) as triton:
            triton.bind(
                model_name=o.name, infer_func=many if first else one,
                inputs=tensors(model.inputs), outputs=tensors(model.outputs),
                config=ModelConfig(
                    batching=bool(first),
                    max_batch_size=max(o.batch, DEFAULT_BATCH)))
            # PyTriton's copy of Triton: all that it needs is loaded now, and
            # who is killed leaves nothing large behind.
            shutil.rmtree(workspace / "tritonserver", ignore_errors=True)
            triton.serve()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
