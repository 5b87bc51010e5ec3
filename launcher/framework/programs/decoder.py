"""A decoder transformer, as far as no framework has a say in it: its
parameters, in order, and what they are at the start.

The shape is the point's architecture: Llama's where the feed-forward is gated
(rotary positions, RMSNorm, SwiGLU, grouped queries, no biases), else GPT-2's
(learned positions, LayerNorm, GELU, biases). Matrices are [outputs, inputs].
"""

import math

import numpy

EPSILON = 1e-5  # of the norms
TURN = 500000.0  # base of the rotary positions' wavelengths, Llama 3's
DEVIATION = 0.02  # of weights at the start (Radford et al. 2019)


class Shape:
    def __init__(self, point):
        a = point["architecture"]
        self.layers, self.hidden = a["layers"], a["hidden"]
        self.heads = a["heads"]
        self.kv_heads = a.get("kv_heads") or self.heads
        self.head = self.hidden // self.heads
        self.ffn, self.vocabulary = a["ffn"], a["vocabulary"]
        self.sequence = a["sequence"]
        self.positions = a.get("positions", 0)
        self.gated = a.get("gated", False)
        self.biases = a.get("biases", False)
        self.tied = a.get("tied", False)

    def parameters(self):
        """Names and sizes of all of them, in order."""
        yield "embedding.weight", (self.vocabulary, self.hidden)
        if self.positions:
            yield "positions.weight", (self.positions, self.hidden)
        for i in range(self.layers):
            for name, size in self.layer():
                yield f"layers.{i}.{name}", size
        yield from self._norm("norm")
        if not self.tied:
            yield "output.weight", (self.vocabulary, self.hidden)

    def layer(self):
        """Those of one layer."""
        keys = self.kv_heads * self.head
        yield from self._norm("norm1")
        yield from self._linear("queries", self.hidden, self.hidden)
        yield from self._linear("keys", keys, self.hidden)
        yield from self._linear("values", keys, self.hidden)
        yield from self._linear("mix", self.hidden, self.hidden)
        yield from self._norm("norm2")
        if self.gated:
            yield from self._linear("gate", self.ffn, self.hidden)
        yield from self._linear("up", self.ffn, self.hidden)
        yield from self._linear("down", self.hidden, self.ffn)

    def _linear(self, name, outputs, inputs):
        yield name + ".weight", (outputs, inputs)
        if self.biases:
            yield name + ".bias", (outputs,)

    def _norm(self, name):
        yield name + ".weight", (self.hidden,)
        if self.biases:
            yield name + ".bias", (self.hidden,)

    def drawn(self, seed):
        """Names and values at the start, as float32: one parameter after the
        other, for together they may be more than a host's memory.

        Normal ones, of which those that write into the residual stream are
        smaller the more layers do (Radford et al. 2019, section 2.3). Each
        parameter has a stream of its own.
        """
        for i, (name, size) in enumerate(self.parameters()):
            if name.endswith(".bias"):
                yield name, numpy.zeros(size, numpy.float32)
            elif len(size) == 1:
                yield name, numpy.ones(size, numpy.float32)
            else:
                deviation = DEVIATION
                if name.endswith((".mix.weight", ".down.weight")):
                    deviation /= math.sqrt(2 * self.layers)
                draw = numpy.random.default_rng((seed, i))
                values = draw.standard_normal(size, numpy.float32)
                values *= numpy.float32(deviation)
                yield name, values


def turns(head, sequence):
    """Cosines and sines of the rotary positions, [sequence, head]. A number is
    turned with the one half a head behind it."""
    pairs = numpy.arange(0, head, 2) / head
    angles = numpy.outer(numpy.arange(sequence), TURN ** -pairs)
    angles = numpy.concatenate((angles, angles), 1)
    return (numpy.cos(angles).astype(numpy.float32),
            numpy.sin(angles).astype(numpy.float32))
