"""Trains under MXNet with Horovod and reports to scalebench.

One process is one rank. The training loop is Gluon's own kind around Horovod's
DistributedTrainer, which has MXNet's engine average the gradients.
"""

import hashlib
import os
import platform
import time

import horovod
import horovod.mxnet as hvd
import mxnet
import numpy

import batches
import horovod_world
import mxnet_models
import rank
import recipe
import samples


class Trainer:
    name = "MXNet with Horovod"
    covers = 1

    def join(self, point, place):
        if point["resources"]["device"] != "cpu":
            raise RuntimeError("MXNet trains on CPUs here only")
        # MXNet took OMP_NUM_THREADS, which was set from the same key.
        self.threads = min(max(point["resources"]["cpus_per_worker"], 1),
                           len(os.sched_getaffinity(0)))
        self._server = horovod_world.join(hvd, place)
        return horovod_world.check(hvd, place, point["workers"])

    def data(self, point):
        found = samples.find(point, batches)
        if isinstance(found, samples.Own):
            self._sample = array(found.training[0][:1])
        return found

    def build(self, point):
        workload = point["workload"]
        self.model = mxnet_models.build(
            point, recipe.stream(point["seed"], "model"))
        parameters = self.model.collect_params()
        # Before the first sample, which puts weights into oneDNN's order.
        hvd.broadcast_parameters(parameters, root_rank=0)
        self._variances = mxnet_models.Variances(self.model, self._sample)
        self.model.hybridize(static_alloc=True)
        self._momentum, self._last_rate = workload["momentum"], 0.0
        self._optimizer = mxnet.optimizer.SGD(
            momentum=workload["momentum"], wd=workload["weight_decay"])
        self._updates = hvd.DistributedTrainer(
            parameters, self._optimizer, compression=PlainOrder)
        return sum(p.data().size
                   for p in mxnet_models.parameters(self.model))

    # What a model of the native trainer's takes, until data knows otherwise.
    _sample = mxnet.nd.zeros((1, 32, 32, 3))

    def epoch(self, run):
        clock = time.perf_counter
        for k in range(run.steps_per_epoch):
            begin = clock()
            inputs, labels = map(array, run.inputs(k))
            wait = clock() - begin
            rate = run.rate()
            self._variances.train(len(inputs))
            with mxnet.autograd.record():
                loss = losses(self.model(inputs), labels).mean()
            loss.backward()
            self._set_rate(rate)
            self._updates.step(1)  # the loss is a mean already
            # Of the engine's work a step waits for the loss and no more, as
            # Gluon's loops do for their metrics: what comes after it is done
            # while Python prepares the next step, and in that one's time.
            loss = float(loss.asscalar())
            # Horovod's part of the step is the engine's, which tells no times.
            if run.stepped(rate, loss, wait):
                return

    def _set_rate(self, rate):
        """Sets the learning rate of the next step.

        MXNet keeps it within what it carries on, −rate·v, where the native
        trainer carries on v. A momentum that is larger by what the rate has
        grown turns the rate within it into the new one.
        """
        grown = rate / self._last_rate if self._last_rate else 1
        self._optimizer.momentum = self._momentum * grown
        self._updates.set_learning_rate(rate)
        self._last_rate = rate

    def barrier(self):
        hvd.allreduce(mxnet.nd.zeros(1), name="barrier").wait_to_read()

    def sums(self, numbers):
        # The ranks vote in the last step of an epoch and of a run, of which
        # then nothing is left to do after it.
        mxnet.nd.waitall()
        return hvd.allreduce(mxnet.nd.array(numbers, dtype="float64"),
                             op=hvd.Sum, name="sums").asnumpy().tolist()

    def average_statistics(self):
        """They become their mean over the ranks, so that an evaluation shared
        by the ranks is of one model."""
        self._variances.look()
        for i, p in enumerate(mxnet_models.statistics(self.model)):
            hvd.allreduce_(p.data(), op=hvd.Average, name=f"statistics_{i}")
        mxnet.nd.waitall()

    def local_statistics(self):
        """Of each rank here, the running averages of batch norm as arrays."""
        self._variances.look()
        return [[p.data().asnumpy()
                 for p in mxnet_models.statistics(self.model)]]

    def evaluate(self, inputs, labels):
        inputs, labels = array(inputs), array(labels)
        scores = self.model(inputs)
        loss = losses(scores.astype("float64"), labels).sum()
        found = scores.argmax(-1).asnumpy() == labels.asnumpy()
        return float(loss.asscalar()), int(found.sum())

    def parameter_sha256(self):
        """The hash of all parameters, equal for equal bits only."""
        return hashlib.sha256(
            mxnet_models.flat(self.model).tobytes()).hexdigest()

    def versions(self):
        return {"python": platform.python_version(),
                "mxnet": mxnet.__version__, "horovod": horovod.__version__,
                "numpy": numpy.__version__}


class PlainOrder(hvd.Compression.none):
    """Hands Horovod the gradients of convolutions in the plain order of axes.

    They come in the blocks that oneDNN computes with, which Horovod fails to
    read ("We can't generate TBlob for MKLDNN data"). Arithmetic makes plain
    arrays; nothing is compressed.
    """

    @staticmethod
    def compress(tensor):
        return (tensor * 1 if tensor.ndim > 2 else tensor), None


def array(values):
    """A NumPy array as MXNet's, of the same type."""
    return mxnet.nd.array(values, dtype=values.dtype)


def losses(scores, labels):
    """The cross entropy of each label, with the classes along the last
    axis."""
    return -mxnet.nd.pick(mxnet.nd.log_softmax(scores, axis=-1), labels,
                          axis=-1)


if __name__ == "__main__":
    rank.main(Trainer())
