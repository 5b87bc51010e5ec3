"""Trains under JAX, one process a rank, and reports to scalebench.

The ranks meet by jax.distributed and make one computation, which XLA divides
over all devices: samples always, and with workload.zero = 3 parameters,
gradients and the optimiser's state, too; with 1 that state alone. With
workload.shard = S, groups of S ranks each hold a copy.
"""

import hashlib
import os
import platform
import time

import numpy

import batches
import decoder
import gemm
import rank
import recipe
import samples

jax = jnp = jax_decoder = None  # once it is known what for; see join


class Trainer:
    name = "jax"
    precisions = "fp32", "bf16"
    arrays = "batches"
    covers = 1
    together = True

    def join(self, point, place):
        global jax, jnp, jax_decoder
        gpu = point["resources"]["device"] == "gpu"
        self.threads = min(max(point["resources"]["cpus_per_worker"], 1),
                           len(os.sched_getaffinity(0)))
        os.environ["JAX_PLATFORMS"] = "cuda" if gpu else "cpu"
        os.environ["PJRT_NPROC"] = str(self.threads)  # XLA's own threads
        import jax
        import jax.numpy as jnp

        import jax_decoder
        if not gpu:
            jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(
            f"{place.address}:{place.port}", place.size, place.rank,
            # A task that sees one GPU only sees it as the first.
            local_device_ids=[place.local_rank] if gpu and not os.environ.get(
                "CUDA_VISIBLE_DEVICES", ",").isdecimal() else None,
            initialization_timeout=600)
        size, own = jax.process_count(), jax.process_index()
        if (size != point["workers"] or own != place.rank
                or jax.device_count() != size):
            raise RuntimeError(
                f"JAX has process {own} of {size} with {jax.device_count()}"
                f" devices here; the plan has rank {place.rank} of"
                f" {point['workers']}")
        return size

    def versions(self):
        return {"python": platform.python_version(), "jax": jax.__version__,
                "numpy": numpy.__version__}

    def data(self, point):
        return samples.find(point, batches)

    def build(self, point):
        workload = point["workload"]
        self.workload = workload
        self.shape = decoder.Shape(point)
        self.batch = point["worker_batch"]
        self.part = point.get("micro_batch") or self.batch
        self.checkpointing = workload.get("checkpointing", False)
        self.dtype = (jnp.bfloat16 if workload.get("precision") == "bf16"
                      else jnp.float32)
        ranks = jax.process_count()
        self.shard = workload.get("shard") or ranks
        devices = sorted(jax.devices(), key=lambda d: d.process_index)
        self.mesh = jax.sharding.Mesh(
            numpy.array(devices).reshape(-1, self.shard),
            ("replicate", "shard"))
        everyone = jax.sharding.PartitionSpec(None, ("replicate", "shard"))
        self.by_sample = jax.sharding.NamedSharding(self.mesh, everyone)
        zero = workload.get("zero", 0)
        self.parameters, self.sharding, state = {}, {}, {}
        seed = recipe.stream(point["seed"], "model")
        for name, values in self.shape.drawn(seed):
            shared = self._sharding(values.shape, True)
            self.sharding[name] = self._sharding(values.shape, zero == 3)
            self.parameters[name] = self._put(values, self.sharding[name])
            state[name] = shared if zero else self.sharding[name]
        moments = ("velocity",) if workload["optimizer"] == "sgd" else (
            "first", "second")
        self.state_sharding = {moment: state for moment in moments}
        self.state = {
            moment: {name: self._put(numpy.zeros(p.shape, numpy.float32),
                                     state[name])
                     for name, p in self.parameters.items()}
            for moment in moments}
        self.made = 0  # steps
        self._step = jax.jit(
            self.step, donate_argnums=(0, 1),
            out_shardings=(self.sharding, self.state_sharding,
                           self.by_sample))
        self._scored = jax.jit(self.scored,
                               out_shardings=(self.by_sample,) * 2)
        return sum(p.size for p in self.parameters.values())

    def gemm(self):
        if jax.default_backend() != "cpu":
            return None
        multiply = jax.jit(jnp.matmul)

        def product(size):
            matrix = jnp.ones((size, size), self.dtype)
            return lambda: multiply(matrix, matrix).block_until_ready()

        return gemm.best(product)

    def _sharding(self, size, shared):
        """Along the first axis, where the ranks divide it."""
        spec = jax.sharding.PartitionSpec()
        if shared and size[0] % self.shard == 0:
            spec = jax.sharding.PartitionSpec("shard")
        return jax.sharding.NamedSharding(self.mesh, spec)

    @staticmethod
    def _put(values, sharding):
        return jax.make_array_from_callback(values.shape, sharding,
                                            lambda index: values[index])

    def mean_loss(self, parameters, inputs, labels):
        parameters = {name: p.astype(self.dtype)
                      for name, p in parameters.items()}
        scores = jax_decoder.scores(parameters, self.shape, inputs,
                                    self.checkpointing)
        each = jax_decoder.losses(scores, labels).mean(1)
        return each.mean(), each

    def step(self, parameters, state, inputs, labels, rate, made):
        """A step on parts of a batch, [parts, samples, places]."""
        gradient = jax.grad(self.mean_loss, has_aux=True)

        def add(total, part):
            found, each = gradient(parameters, *part)
            return jax.tree.map(jnp.add, total, found), each

        zeros = jax.tree.map(jnp.zeros_like, parameters)
        total, each = jax.lax.scan(add, zeros, (inputs, labels))
        found = jax.tree.map(lambda g: g / inputs.shape[0], total)
        return (*self.updated(parameters, state, found, rate, made), each)

    def updated(self, parameters, state, gradient, rate, made):
        """As PyTorch's SGD, Adam and AdamW do it."""
        w, tree = self.workload, jax.tree
        decay = w["weight_decay"]
        if w["optimizer"] == "adamw":
            parameters = tree.map(lambda p: p * (1 - rate * decay), parameters)
        else:
            gradient = tree.map(lambda g, p: g + decay * p, gradient,
                                parameters)
        if w["optimizer"] == "sgd":
            velocity = tree.map(lambda v, g: w["momentum"] * v + g,
                                state["velocity"], gradient)
            parameters = tree.map(lambda p, v: p - rate * v, parameters,
                                  velocity)
            return parameters, {"velocity": velocity}
        beta1, beta2 = w["beta1"], w["beta2"]
        first = tree.map(lambda m, g: beta1 * m + (1 - beta1) * g,
                         state["first"], gradient)
        second = tree.map(lambda v, g: beta2 * v + (1 - beta2) * g * g,
                          state["second"], gradient)
        whole1, whole2 = 1 - beta1 ** made, 1 - beta2 ** made

        def moved(p, m, v):
            size = jnp.sqrt(v) / jnp.sqrt(whole2) + w["epsilon"]
            return p - rate / whole1 * m / size

        return (tree.map(moved, parameters, first, second),
                {"first": first, "second": second})

    def epoch(self, run):
        clock = time.perf_counter
        for k in range(run.steps_per_epoch):
            begin = clock()
            inputs, labels = (self._global(x) for x in run.inputs(k))
            wait = clock() - begin
            rate = run.rate()
            self.made += 1
            self.parameters, self.state, each = self._step(
                self.parameters, self.state, inputs, labels,
                jnp.float32(rate), jnp.float32(self.made))
            jax.block_until_ready(self.parameters)
            loss = float(_own(each).mean())
            if run.stepped(rate, loss, wait):
                return

    def _global(self, x):
        """This rank's samples as its part of everyone's."""
        x = x.reshape(-1, self.part, x.shape[-1])
        return jax.make_array_from_process_local_data(self.by_sample, x)

    def scored(self, parameters, inputs, labels):
        parameters = {name: p.astype(self.dtype)
                      for name, p in parameters.items()}
        scores = jax_decoder.scores(parameters, self.shape, inputs[0])
        each = jax_decoder.losses(scores, labels[0]).sum(1)
        right = (scores.argmax(-1) == labels[0]).sum(1)
        return each[None], right[None]

    def evaluate(self, inputs, labels):
        loss, correct = 0.0, 0
        for at in range(0, len(inputs), self.part):
            pair = [x[at:at + self.part] for x in (inputs, labels)]
            there = len(pair[0])
            # All ranks compute parts of one size; what is filled up does not
            # count.
            each, right = self._scored(self.parameters, *(
                self._global(numpy.pad(x, ((0, self.part - there), (0, 0))))
                for x in pair))
            loss += float(_own(each)[0, :there].astype(numpy.float64).sum())
            correct += int(_own(right)[0, :there].sum())
        return loss, correct

    def average_statistics(self):
        pass  # there are none

    def vectors(self):
        """The whole parameters, one after the other, as vectors."""
        from jax.experimental import multihost_utils
        for name, _ in self.shape.parameters():  # JAX orders them by name
            p = self.parameters[name]
            if not p.is_fully_replicated:
                yield multihost_utils.process_allgather(
                    p, tiled=True).reshape(-1)
            else:
                yield numpy.asarray(p.addressable_data(0)).reshape(-1)

    def parameter_sha256(self):
        digest = hashlib.sha256()
        for vector in self.vectors():
            digest.update(vector.astype("<f4").tobytes())
        return digest.hexdigest()

    def sums(self, numbers):
        """In double precision, which JAX has only where asked: as bits."""
        from jax.experimental import multihost_utils
        bits = numpy.array(numbers, numpy.float64).view(numpy.uint32)
        every = numpy.asarray(multihost_utils.process_allgather(bits))
        every = numpy.ascontiguousarray(every.reshape(-1, len(bits)))
        return every.view(numpy.float64).sum(0).tolist()

    def barrier(self):
        self.sums([0.0])

    def memory(self):
        if jax.default_backend() == "cpu":
            return {}
        # Sums are all that the ranks have: each puts its own in its place.
        found = jax.local_devices()[0].memory_stats() or {}
        own = [0.0] * jax.process_count()
        own[jax.process_index()] = float(found.get("peak_bytes_in_use", 0))
        peak = int(max(self.sums(own)))
        return {"allocated_memory": peak} if peak else {}


def _own(array):
    """This rank's part of what is divided by samples."""
    return numpy.asarray(array.addressable_data(0))


if __name__ == "__main__":
    rank.main(Trainer())
