"""An ONNX model on the CPU, and what the servers beside this file are told.

    serve_NAME.py --model FILE --listen HOST:PORT [--grpc-port PORT]
                  [--name NAME] [--threads N] [--batch N]
"""

import argparse

import onnxruntime

# Datatypes of ONNX's tensors, and what the Open Inference Protocol calls them.
DATATYPES = {
    "tensor(bool)": "BOOL", "tensor(uint8)": "UINT8",
    "tensor(uint16)": "UINT16", "tensor(uint32)": "UINT32",
    "tensor(uint64)": "UINT64", "tensor(int8)": "INT8",
    "tensor(int16)": "INT16", "tensor(int32)": "INT32",
    "tensor(int64)": "INT64", "tensor(float16)": "FP16",
    "tensor(float)": "FP32", "tensor(double)": "FP64",
}


def options():
    """The command line; --listen is taken apart into host and port."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--model", required=True, metavar="FILE",
                        help="the ONNX file")
    parser.add_argument("--name", default="model",
                        help="of the model in requests (%(default)s)")
    parser.add_argument("--listen", required=True, metavar="HOST:PORT",
                        help="for HTTP")
    parser.add_argument("--grpc-port", type=int, default=0, metavar="PORT",
                        help="for gRPC on that host; 0: none is needed")
    parser.add_argument("--threads", type=int, default=1,
                        help="that compute a request (%(default)s)")
    parser.add_argument("--batch", type=int, default=1,
                        help="the most samples in a request (%(default)s)")
    o = parser.parse_args()
    o.host, _, port = o.listen.rpartition(":")
    o.port = int(port)
    return o


class Port:
    """An input or an output; -1 in its shape is any size."""

    def __init__(self, port):
        self.name = port.name
        if port.type not in DATATYPES:
            raise ValueError(f"{port.name} is a {port.type}; valid: "
                             + ", ".join(DATATYPES))
        self.datatype = DATATYPES[port.type]
        self.shape = [size if isinstance(size, int) else -1
                      for size in port.shape]


class Model:
    def __init__(self, path, threads):
        settings = onnxruntime.SessionOptions()
        # One request is computed on all threads, an operator after the other.
        settings.intra_op_num_threads = threads
        settings.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            path, settings, providers=["CPUExecutionProvider"])
        self.inputs = [Port(p) for p in self._session.get_inputs()]
        self.outputs = [Port(p) for p in self._session.get_outputs()]

    @property
    def batched(self):
        """Whether all leave their first size open, which is the batch."""
        return all(p.shape[:1] == [-1] for p in self.inputs + self.outputs)

    def run(self, inputs):
        """Outputs by name, of inputs by name."""
        names = [p.name for p in self.outputs]
        return dict(zip(names, self._session.run(names, inputs)))
