"""The decoder transformer of decoder.py in JAX: functions of a dictionary with
its parameters."""

import functools

import jax
import jax.numpy as jnp

import decoder


def scores(parameters, shape, tokens, checkpointing=False):
    """Of the next token at each place; in the parameters' own precision."""
    x = parameters["embedding.weight"][tokens]
    if shape.positions:
        x = x + parameters["positions.weight"][:tokens.shape[1]]
    layer = functools.partial(_layer, shape)
    if checkpointing:
        layer = jax.checkpoint(layer)
    for i in range(shape.layers):
        prefix = f"layers.{i}."
        x = layer({name[len(prefix):]: value
                   for name, value in parameters.items()
                   if name.startswith(prefix)}, x)
    x = _norm(parameters, "norm", x)
    matrix = "embedding.weight" if shape.tied else "output.weight"
    return x @ parameters[matrix].T


def losses(scores, labels):
    """The cross entropy at each place, in single precision."""
    logs = jax.nn.log_softmax(scores.astype(jnp.float32))
    return -jnp.take_along_axis(logs, labels[..., None], -1)[..., 0]


def _layer(shape, parameters, x):
    x = x + _linear(parameters, "mix", _attention(
        shape, parameters, _norm(parameters, "norm1", x)))
    return x + _linear(parameters, "down", _widened(
        shape, parameters, _norm(parameters, "norm2", x)))


def _attention(shape, parameters, x):
    batch, places, hidden = x.shape

    def heads(name, count):
        return _linear(parameters, name, x).reshape(batch, places, count,
                                                    shape.head)

    queries = heads("queries", shape.heads)
    keys = heads("keys", shape.kv_heads)
    values = heads("values", shape.kv_heads)
    if not shape.positions:
        turns = [jnp.asarray(x)[:, None]
                 for x in decoder.turns(shape.head, places)]
        queries, keys = _turned(queries, *turns), _turned(keys, *turns)
    mixed = jax.nn.dot_product_attention(queries, keys, values, is_causal=True)
    return mixed.reshape(batch, places, hidden)


def _turned(x, cosines, sines):
    first, second = jnp.split(x, 2, -1)
    turned = x * cosines + jnp.concatenate((-second, first), -1) * sines
    return turned.astype(x.dtype)


def _widened(shape, parameters, x):
    up = _linear(parameters, "up", x)
    if shape.gated:
        return jax.nn.silu(_linear(parameters, "gate", x)) * up
    return jax.nn.gelu(up, approximate=True)


def _linear(parameters, name, x):
    y = x @ parameters[name + ".weight"].T
    bias = parameters.get(name + ".bias")
    return y if bias is None else y + bias


def _norm(parameters, name, x):
    """LayerNorm where there is a bias, else RMSNorm."""
    bias = parameters.get(name + ".bias")
    wide = x.astype(jnp.float32)
    if bias is not None:
        wide = wide - wide.mean(-1, keepdims=True)
    wide = wide * jax.lax.rsqrt(jnp.square(wide).mean(-1, keepdims=True)
                                + decoder.EPSILON)
    y = wide.astype(x.dtype) * parameters[name + ".weight"]
    return y if bias is None else y + bias
