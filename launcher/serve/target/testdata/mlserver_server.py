"""Serves a model with MLServer: y is twice x, n how many of x are above 0.

    mlserver_server.py HTTP GRPC METRICS

are the ports to listen at, on this host alone.
"""

import asyncio
import sys

import numpy
from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse, MetadataTensor


class Double(MLModel):
    async def load(self):
        return True

    async def predict(self, payload):
        x = NumpyCodec.decode_input(payload.inputs[0])
        positive = (x > 0).sum(1, keepdims=True).astype(numpy.int64)
        return InferenceResponse(
            model_name=self.name, id=payload.id,
            outputs=[NumpyCodec.encode_output("y", 2 * x),
                     NumpyCodec.encode_output("n", positive)])


def tensor(name, datatype, size):
    return MetadataTensor(name=name, datatype=datatype, shape=[-1, size])


async def main(http, grpc, metrics):
    server = MLServer(Settings(host="127.0.0.1", http_port=http,
                               grpc_port=grpc, metrics_port=metrics,
                               parallel_workers=0))
    await server.start([ModelSettings(
        name="double", implementation=Double,
        inputs=[tensor("x", "FP32", 3)],
        outputs=[tensor("y", "FP32", 3), tensor("n", "INT64", 1)])])


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
