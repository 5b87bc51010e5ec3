# What Python's onnxruntime answers, for TestServing.
#
#   reference.py types FILE          writes a model with a tensor of each type
#   reference.py light NAME          the file of a model of the package onnx
#   reference.py answer FILE IN OUT  computes what is in the folder IN
import os
import sys

import numpy
import onnx
from onnx import TensorProto, helper

TYPES = {
    "FP64": TensorProto.DOUBLE, "FP32": TensorProto.FLOAT,
    "FP16": TensorProto.FLOAT16, "INT64": TensorProto.INT64,
    "INT32": TensorProto.INT32, "INT8": TensorProto.INT8,
    "UINT8": TensorProto.UINT8, "BOOL": TensorProto.BOOL}
NUMPY = {
    "tensor(double)": "f8", "tensor(float)": "f4", "tensor(float16)": "f2",
    "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(int8)": "i1",
    "tensor(uint8)": "u1", "tensor(bool)": "?"}


def types(file):
    """Each input, n by 3, comes back as an output; so does the sum of all."""
    inputs, outputs, nodes, singles = [], [], [], []

    def tensor(name, kind):
        return helper.make_tensor_value_info(name, kind, ["n", 3])

    for name, kind in TYPES.items():
        x, y, single = "in_" + name, "out_" + name, "single_" + name
        inputs.append(tensor(x, kind))
        outputs.append(tensor(y, kind))
        nodes.append(helper.make_node("Identity", [x], [y]))
        nodes.append(
            helper.make_node("Cast", [x], [single], to=TensorProto.FLOAT))
        singles.append(single)
    nodes.append(helper.make_node("Sum", singles, ["sum"]))
    outputs.append(tensor("sum", TensorProto.FLOAT))
    graph = helper.make_graph(nodes, "types", inputs, outputs)
    opsets = [helper.make_opsetid("", 13)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, file)


def light(name):
    package = os.path.dirname(onnx.__file__)
    print(os.path.join(package, "backend", "test", "data", "light", name))


def answer(file, inputs, outputs):
    import onnxruntime
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        file, options, providers=["CPUExecutionProvider"])
    feed = {}
    for i, port in enumerate(session.get_inputs()):
        with open(os.path.join(inputs, f"{i}.shape")) as f:
            shape = [int(word) for word in f.read().split()]
        raw = os.path.join(inputs, f"{i}.raw")
        feed[port.name] = numpy.fromfile(raw, NUMPY[port.type]).reshape(shape)
    for i, array in enumerate(session.run(None, feed)):
        array.tofile(os.path.join(outputs, f"{i}.raw"))
        with open(os.path.join(outputs, f"{i}.shape"), "w") as f:
            f.write(" ".join(map(str, array.shape)))


{"types": types, "light": light, "answer": answer}[sys.argv[1]](*sys.argv[2:])
