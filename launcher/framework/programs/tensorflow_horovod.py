"""Trains under TensorFlow with Horovod and reports to scalebench.

One process is one rank. The training loop is TensorFlow's own kind: a gradient
tape in a graph function, each gradient averaged by Horovod as soon as it is
there, while the backward pass goes on.
"""

import time

import horovod
import horovod.tensorflow as hvd
import tensorflow as tf

import horovod_world
import rank
import tensorflow_models
import tensorflow_replica as replica


class Trainer(replica.Trainer):
    name = "Horovod with TensorFlow"

    def join(self, point, place):
        self.configure(point, place)
        self._server = horovod_world.join(hvd, place)
        return horovod_world.check(hvd, place, point["workers"])

    def versions(self):
        return {**super().versions(), "horovod": horovod.__version__}

    def build(self, point):
        parameters = super().build(point)
        hvd.broadcast_variables(self.model.variables, root_rank=0)
        return parameters

    def barrier(self):
        hvd.allreduce(tf.zeros(1), name="barrier")

    @tf.function
    def _step(self, inputs, labels):
        clock = replica.Clock()
        with tf.GradientTape() as tape:
            loss = replica.mean_loss(self.model(inputs, training=True), labels)
        weights = self.model.trainable_variables
        gradients = tape.gradient(loss, weights)
        if hvd.size() > 1:
            names = iter(range(len(weights)))
            gradients = clock.time(
                lambda g: hvd.allreduce(g, op=hvd.Average,
                                        name=f"gradient_{next(names)}"),
                gradients)
        self.optimizer.apply_gradients(zip(gradients, weights))
        return loss, clock.moments()

    def epoch(self, run):
        for k in range(run.steps_per_epoch):
            begin = time.perf_counter()
            inputs, labels = run.inputs(k)
            wait = time.perf_counter() - begin
            rate = run.rate()
            self.optimizer.learning_rate = rate
            loss, moments = self._step(inputs, labels)
            communication, exposed = self.reduction(moments)
            if run.stepped(rate, float(loss), wait, exposed, communication):
                return

    def sums(self, numbers):
        return hvd.allreduce(tf.constant(numbers, tf.float64), op=hvd.Sum,
                             name="sums").numpy().tolist()

    def average_statistics(self):
        for i, average in enumerate(tensorflow_models.statistics(self.model)):
            average.assign(hvd.allreduce(average, op=hvd.Average,
                                         name=f"statistics_{i}"))


if __name__ == "__main__":
    rank.main(Trainer())
