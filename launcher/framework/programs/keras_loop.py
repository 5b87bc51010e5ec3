"""Keras's own training loop, with a callback that reports."""

import collections
import time

import tensorflow as tf


def compile(model, optimizer):
    model.compile(optimizer, tf.keras.losses.SparseCategoricalCrossentropy(
        from_logits=True))


def fit(model, run, ahead=False):
    """Trains an epoch of a rank.Rank.

    ahead: batches are made while others are trained on, so that nobody knows
    how long a step waits for its own.
    """
    feed = Feed(run)
    model.fit(feed.dataset(), steps_per_epoch=run.steps_per_epoch, verbose=0,
              callbacks=[Reporter(run, feed, ahead)])


class Feed:
    """The batches of an epoch as a tf.data.Dataset, made when asked for."""

    def __init__(self, run):
        self._run = run
        self.seconds = collections.deque()  # that each batch took to make

    def dataset(self):
        data = tf.data.Dataset.from_generator(
            self._batches, output_signature=tuple(
                tf.TensorSpec((None, *array.shape[1:]), array.dtype)
                for array in self._run.inputs(0)))
        options = tf.data.Options()
        # Made ahead, a batch's time would be in no step.
        options.experimental_optimization.inject_prefetch = False
        options.experimental_distribute.auto_shard_policy = (
            tf.data.experimental.AutoShardPolicy.OFF)
        return data.with_options(options)

    def _batches(self):
        for k in range(self._run.steps_per_epoch):
            begin = time.perf_counter()
            batch = self._run.inputs(k)
            self.seconds.append(time.perf_counter() - begin)
            yield batch


class Reporter(tf.keras.callbacks.Callback):
    """Sets the rate before each step and reports the step after it."""

    def __init__(self, run, feed, ahead):
        super().__init__()
        self._run, self._feed, self._ahead = run, feed, ahead
        self._rate = None  # as set
        # Keras need not turn into NumPy's what is looked at once.
        self._supports_tf_logs = True
        self._losses = 0.0  # of the epoch, summed

    def on_train_batch_begin(self, batch, logs=None):
        rate = self._run.rate()
        if rate != self._rate:
            self.model.optimizer.learning_rate = self._rate = rate

    def on_train_batch_end(self, batch, logs=None):
        # Keras tells the mean of the epoch's losses so far, batches of one
        # size; having it forget them takes it longer than a small step.
        before = self._losses
        self._losses = float(logs["loss"]) * (batch + 1)
        loss = self._losses - before
        wait = None if self._ahead else self._feed.seconds.popleft()
        if self._run.stepped(self._rate, loss, wait):
            self.model.stop_training = True
