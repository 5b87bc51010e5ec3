"""Trains under Keras with MirroredStrategy on the devices of one node.

One process drives all ranks, which are devices: GPUs, or on CPUs as many
logical devices as there are workers, which share the process's threads. The
training loop is Keras's, compile and fit, with a callback that reports.
"""

import tensorflow as tf

import keras_loop
import rank
import tensorflow_replica as replica
import tensorflow_strategy


class Trainer(tensorflow_strategy.Trainer):
    name = "MirroredStrategy"

    def join(self, point, place):
        if place.size != place.local_size:
            raise RuntimeError("MirroredStrategy runs on one node; there are"
                               f" {place.size} workers, {place.local_size} of"
                               " them on this node")
        self.covers = workers = point["workers"]
        self.configure(point, place, workers)
        kind = "GPU"
        if point["resources"]["device"] == "cpu":
            kind = "CPU"
            tf.config.set_logical_device_configuration(
                tf.config.list_physical_devices(kind)[0],
                [tf.config.LogicalDeviceConfiguration()] * workers)
        devices = tf.config.list_logical_devices(kind)
        if len(devices) < workers:
            raise RuntimeError(f"TensorFlow has {len(devices)} devices of kind"
                               f" {kind} here; the plan has {workers} workers")
        self.strategy = tf.distribute.MirroredStrategy(
            [device.name for device in devices[:workers]])
        size = self.strategy.num_replicas_in_sync
        if size != workers:
            raise RuntimeError(f"TensorFlow has {size} replicas here; the plan"
                               f" has {workers} workers")
        return size

    def build(self, point):
        parameters = super().build(point)
        with self.strategy.scope():
            keras_loop.compile(self.model, self.optimizer)
        return parameters

    def epoch(self, run):
        keras_loop.fit(self.model, run, ahead=True)

    def sums(self, numbers):
        return numbers


if __name__ == "__main__":
    rank.main(Trainer())
