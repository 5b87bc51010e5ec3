"""Serves an ONNX model with MLServer, in one process.

The metrics and the log of requests are left out. gRPC cannot be; where no port
is asked for, it gets any free one.
"""

import asyncio

from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.codecs import NumpyCodec
from mlserver.types import InferenceResponse, MetadataTensor

import onnx_model


class Onnx(MLModel):
    async def load(self):
        o = self.settings.parameters
        self._model = onnx_model.Model(o.uri, o.threads)
        self.inputs = [describe(p) for p in self._model.inputs]
        self.outputs = [describe(p) for p in self._model.outputs]
        return True

    async def predict(self, payload):
        inputs = {i.name: NumpyCodec.decode_input(i) for i in payload.inputs}
        # In a thread: others' requests are read meanwhile.
        outputs = await asyncio.to_thread(self._model.run, inputs)
        return InferenceResponse(
            model_name=self.name, id=payload.id,
            outputs=[NumpyCodec.encode_output(name, value)
                     for name, value in outputs.items()])


def describe(port):
    return MetadataTensor(name=port.name, datatype=port.datatype,
                          shape=port.shape)


async def main():
    o = onnx_model.options()
    server = MLServer(Settings(
        host=o.host, http_port=o.port, grpc_port=o.grpc_port,
        metrics_endpoint=None, parallel_workers=0, debug=False))
    await server.start([ModelSettings(
        name=o.name, implementation=Onnx,
        parameters={"uri": o.model, "threads": o.threads})])


if __name__ == "__main__":
    asyncio.run(main())
