"""Trains under TensorFlow's own MultiWorkerMirroredStrategy.

One process is one rank with one device. The training loop is TensorFlow's own
kind: a gradient tape within strategy.run, the gradients averaged by the
strategy's collectives.
"""

import json
import os
import time

import tensorflow as tf

import meeting
import rank
import tensorflow_replica as replica
import tensorflow_strategy

SUM, MEAN = tf.distribute.ReduceOp.SUM, tf.distribute.ReduceOp.MEAN


class Trainer(tensorflow_strategy.Trainer):
    name = "MultiWorkerMirroredStrategy"

    def join(self, point, place):
        self.configure(point, place)
        self._meet(place)
        self.strategy = tf.distribute.MultiWorkerMirroredStrategy()
        resolver = self.strategy.cluster_resolver
        index = resolver.task_id if place.size > 1 else 0
        size = self.strategy.num_replicas_in_sync
        if (size, index) != (point["workers"], place.rank):
            raise RuntimeError(
                f"TensorFlow has replica {index} of {size} here; the plan has"
                f" rank {place.rank} of {point['workers']}")
        return size

    def _meet(self, place):
        """Tells each rank where all are. TensorFlow takes the ports of a
        cluster from its environment, so that they must be known before."""
        os.environ.pop("TF_CONFIG", None)
        if place.size == 1:
            return
        with meeting.Port(place) as port:
            addresses = meeting.exchange(place, port.address)
        os.environ["TF_CONFIG"] = json.dumps({
            "cluster": {"worker": addresses},
            "task": {"type": "worker", "index": place.rank}})

    @tf.function
    def _step(self, inputs, labels):
        clock = replica.Clock()

        def step(inputs, labels):
            with tf.GradientTape() as tape:
                loss = replica.mean_loss(self.model(inputs, training=True),
                                         labels)
            context = tf.distribute.get_replica_context()
            weights = self.model.trainable_variables
            gradients = tape.gradient(loss, weights)
            if context.num_replicas_in_sync > 1:
                gradients = clock.group(
                    lambda them: context.all_reduce(MEAN, them), gradients)
            self.optimizer.apply_gradients(
                zip(gradients, weights),
                experimental_aggregate_gradients=False)
            return loss, clock.moments()

        return self.strategy.run(step, (inputs, labels))

    def epoch(self, run):
        for k in range(run.steps_per_epoch):
            begin = time.perf_counter()
            inputs, labels = run.inputs(k)
            wait = time.perf_counter() - begin
            rate = run.rate()
            self.optimizer.learning_rate = rate
            loss, moments = self._step(tf.constant(inputs),
                                       tf.constant(labels))
            communication, exposed = self.reduction(moments)
            if run.stepped(rate, float(loss), wait, exposed, communication):
                return

    @tf.function(reduce_retracing=True)
    def _evaluate(self, inputs, labels):
        return self.strategy.run(
            lambda *batch: replica.judged(self.model, *batch),
            (inputs, labels))

    @tf.function
    def _sums(self, numbers):
        # The identity has a device, which the collective asks for.
        return self.strategy.run(
            lambda n: tf.distribute.get_replica_context().all_reduce(
                SUM, tf.identity(n)), (numbers,))

    def sums(self, numbers):
        return self._sums(tf.constant(numbers, tf.float64)).numpy().tolist()


if __name__ == "__main__":
    rank.main(Trainer())
