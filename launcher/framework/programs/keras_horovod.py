"""Trains under Keras with Horovod and reports to scalebench.

One process is one rank. The training loop is Keras's: compile, with Horovod's
optimiser around the plain one, and fit, with a callback that reports.
"""

import horovod.keras

import keras_loop
import rank
import tensorflow_horovod


class Trainer(tensorflow_horovod.Trainer):
    name = "Horovod with Keras"

    def build(self, point):
        parameters = super().build(point)
        keras_loop.compile(self.model, horovod.keras.DistributedOptimizer(
            self.optimizer))
        return parameters

    def epoch(self, run):
        keras_loop.fit(self.model, run)


if __name__ == "__main__":
    rank.main(Trainer())
