"""Computes a model's only output from its only input, both as raw numbers.

    onnx_alone.py MODEL SIZE ... <input >output
"""

import sys

import numpy
import onnxruntime

session = onnxruntime.InferenceSession(sys.argv[1],
                                       providers=["CPUExecutionProvider"])
x = numpy.frombuffer(sys.stdin.buffer.read(), numpy.float32)
x = x.reshape([int(size) for size in sys.argv[2:]])
y, = session.run(None, {session.get_inputs()[0].name: x})
sys.stdout.buffer.write(y.tobytes())
