"""What the trainers under a tf.distribute strategy have in common."""

import tensorflow as tf

import tensorflow_models
import tensorflow_replica as replica


class Trainer(replica.Trainer):
    """One replica a rank; the strategy keeps their parameters equal."""

    def build(self, point):
        with self.strategy.scope():
            return super().build(point)

    def barrier(self):
        self.sums([0.0])

    def average_statistics(self):
        self._average_statistics()

    @tf.function
    def _average_statistics(self):
        def average():
            # Each replica's own, which an assignment in it changes alone.
            for own in tensorflow_models.statistics(self.model):
                own.assign(tf.distribute.get_replica_context().all_reduce(
                    tf.distribute.ReduceOp.MEAN, own.read_value()))

        self.strategy.run(average)

    def local_statistics(self):
        return [[average.numpy() for average in replica] for replica in zip(
            *(self.strategy.experimental_local_results(average) for average in
              tensorflow_models.statistics(self.model)))] \
            or [[]] * self.covers

    def parameter_sha256(self):
        """An error if this process's own replicas differ."""
        replicas = zip(*(self.strategy.experimental_local_results(weight)
                         for weight in self.model.trainable_variables))
        hashes = {replica.sha256(tensorflow_models.join(
            weight.numpy() for weight in weights)) for weights in replicas}
        if len(hashes) != 1:
            raise RuntimeError("the replicas of this process have different"
                               " parameters: " + ", ".join(sorted(hashes)))
        return hashes.pop()
