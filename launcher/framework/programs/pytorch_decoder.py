"""The decoder transformer of decoder.py in PyTorch."""

import contextlib
import functools

import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

import decoder


class RMSNorm(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        square = x.float().square().mean(-1, keepdim=True)
        x = x * torch.rsqrt(square + decoder.EPSILON).type_as(x)
        return x * self.weight


def _norm(shape):
    if shape.biases:
        return nn.LayerNorm(shape.hidden, eps=decoder.EPSILON)
    return RMSNorm(shape.hidden)


@functools.lru_cache(maxsize=2)
def _turns(head, sequence, device):
    return tuple(torch.from_numpy(x).to(device)
                 for x in decoder.turns(head, sequence))


def _turned(x, cosines, sines):
    """x with rotary positions, [batch, head, place, number]."""
    first, second = x.chunk(2, -1)
    turned = x * cosines + torch.cat((-second, first), -1) * sines
    return turned.type_as(x)


def _attention(queries, keys, values):
    """Causal, of places along the last axis but one."""
    attend = getattr(functional, "scaled_dot_product_attention", None)
    if attend:
        return attend(queries, keys, values, is_causal=True)
    places = queries.size(-2)  # PyTorch 1 has no such function
    scores = queries @ keys.transpose(-1, -2) / queries.size(-1) ** 0.5
    ahead = torch.ones(places, places, dtype=torch.bool,
                       device=queries.device).triu(1)
    scores = scores.masked_fill(ahead, float("-inf"))
    return torch.softmax(scores.float(), -1).type_as(values) @ values


class Layer(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.shape = shape
        for name, size in shape.layer():
            name, _, kind = name.rpartition(".")
            if kind == "weight":
                setattr(self, name, _norm(shape) if len(size) == 1 else
                        nn.Linear(size[1], size[0], bias=shape.biases))

    def forward(self, x):
        x = x + self.mix(self.attention(self.norm1(x)))
        return x + self.down(self.widened(self.norm2(x)))

    def attention(self, x):
        shape = self.shape
        batch, places, _ = x.shape

        def heads(x, count):
            return x.view(batch, places, count, shape.head).transpose(1, 2)

        queries = heads(self.queries(x), shape.heads)
        keys = heads(self.keys(x), shape.kv_heads)
        values = heads(self.values(x), shape.kv_heads)
        if not shape.positions:
            turns = _turns(shape.head, places, x.device)
            queries, keys = _turned(queries, *turns), _turned(keys, *turns)
        # Each key is shared by several adjacent queries.
        group = shape.heads // shape.kv_heads
        if group > 1:
            keys = keys.repeat_interleave(group, 1)
            values = values.repeat_interleave(group, 1)
        mixed = _attention(queries, keys, values).transpose(1, 2)
        return mixed.reshape(batch, places, shape.hidden)

    def widened(self, x):
        if self.shape.gated:
            return functional.silu(self.gate(x)) * self.up(x)
        return functional.gelu(self.up(x), approximate="tanh")


class Decoder(nn.Module):
    """Scores of the next token at each place."""

    def __init__(self, shape, checkpointing=False):
        super().__init__()
        self.shape, self.checkpointing = shape, checkpointing
        self.embedding = nn.Embedding(shape.vocabulary, shape.hidden)
        if shape.positions:
            self.positions = nn.Embedding(shape.positions, shape.hidden)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.norm = _norm(shape)
        if not shape.tied:
            self.output = nn.Linear(shape.hidden, shape.vocabulary, bias=False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        if self.shape.positions:
            x = x + self.positions.weight[:tokens.size(1)]
        for layer in self.layers:
            if self.checkpointing and torch.is_grad_enabled():
                x = checkpoint(layer, x, use_reentrant=False)
            else:
                x = layer(x)
        x = self.norm(x)
        if self.shape.tied:
            return functional.linear(x, self.embedding.weight)
        return self.output(x)


def build(point, within=None):
    """The model of a point, without values: on no device, or as a context
    makes it. fill gives it both.
    """
    shape = decoder.Shape(point)
    with within or _nowhere():
        model = Decoder(shape, point["workload"].get("checkpointing", False))
    # DeepSpeed keeps the whole shape of what it shares out.
    there = [(name, tuple(getattr(p, "ds_shape", p.shape)))
             for name, p in model.named_parameters()]
    if there != list(shape.parameters()):
        raise AssertionError("pytorch_decoder.py and decoder.py disagree on"
                             " the model's parameters")
    return model


def _nowhere():
    """A context in which modules are made without memory for them; PyTorch 1
    has none, and makes them on the host."""
    device = torch.device("meta")
    return device if hasattr(device, "__enter__") else contextlib.nullcontext()


def fill(model, device, seed, put=lambda parameter, values:
         parameter.copy_(values)):
    """Gives the model memory on a device, and its values at the start; put
    copies the values of a whole parameter into what of it is here."""
    if any(p.is_meta for p in model.parameters()):
        model.to_empty(device=device)
    else:
        model.to(device)
    parameters = dict(model.named_parameters())
    with torch.no_grad():
        for name, values in model.shape.drawn(seed):
            put(parameters[name], torch.from_numpy(values))
    return model
