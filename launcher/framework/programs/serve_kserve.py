"""Serves an ONNX model with the model server of KServe's Python SDK.

The log of requests is left out, and gRPC unless it is asked for.
"""

import asyncio
import logging
import sys

import onnx_model

# KServe reads the command line when it is imported, and does not know ours.
options = onnx_model.options()
del sys.argv[1:]

import kserve  # noqa: E402
import kserve.model_server  # noqa: E402


class RESTServer(kserve.model_server.RESTServer):
    """KServe's listens on all addresses of the host."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.config.host = options.host


kserve.model_server.RESTServer = RESTServer


class Onnx(kserve.Model):
    def __init__(self, name, model):
        super().__init__(name)
        self._model = model
        self.ready = True

    async def get_input_types(self):
        return [describe(p) for p in self._model.inputs]

    async def get_output_types(self):
        return [describe(p) for p in self._model.outputs]

    async def predict(self, payload, headers=None, response_headers=None):
        inputs = {i.name: i.as_numpy() for i in payload.inputs}
        # In a thread: others' requests are read meanwhile.
        outputs = await asyncio.to_thread(self._model.run, inputs)
        answers = []
        for p in self._model.outputs:
            value = outputs[p.name]
            answer = kserve.InferOutput(p.name, list(value.shape), p.datatype)
            if payload.from_grpc:
                answer.set_data_from_numpy(value, binary_data=True)
            else:  # encoded as the request wants it
                answer.data = value
            answers.append(answer)
        return kserve.InferResponse(
            payload.id, self.name, answers,
            use_binary_outputs=payload.use_binary_outputs,
            requested_outputs=payload.request_outputs)


def describe(port):
    return {"name": port.name, "datatype": port.datatype,
            "shape": port.shape}


def main():
    o = options
    server = kserve.ModelServer(http_port=o.port, grpc_port=o.grpc_port,
                                enable_grpc=o.grpc_port > 0,
                                enable_latency_logging=False)
    # A line in the log for each request would be a part of what is measured.
    for name in "kserve", "kserve.trace", "uvicorn.access":
        logging.getLogger(name).setLevel(logging.WARNING)
    server.start([Onnx(o.name, onnx_model.Model(o.model, o.threads))])


if __name__ == "__main__":
    main()
