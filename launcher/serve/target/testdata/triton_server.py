"""Serves a model with Triton: y is twice x, n how many of x are above 0.

    triton_server.py HTTP GRPC METRICS

are the ports to listen at, on this host alone.
"""

import sys

import numpy
from pytriton.decorators import batch
from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig


@batch
def infer(x):
    return {"y": 2 * x,
            "n": (x > 0).sum(1, keepdims=True).astype(numpy.int64)}


def main(http, grpc, metrics):
    config = TritonConfig(http_address="127.0.0.1", http_port=http,
                          grpc_address="127.0.0.1", grpc_port=grpc,
                          metrics_port=metrics)
    with Triton(config=config) as triton:
        triton.bind(
            model_name="double", infer_func=infer,
            inputs=[Tensor(name="x", dtype=numpy.float32, shape=(3,))],
            outputs=[Tensor(name="y", dtype=numpy.float32, shape=(3,)),
                     Tensor(name="n", dtype=numpy.int64, shape=(1,))],
            config=ModelConfig(max_batch_size=16))
        triton.serve()


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
