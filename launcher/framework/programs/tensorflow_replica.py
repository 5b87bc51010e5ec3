"""What the trainers of the TensorFlow family have in common."""

import hashlib
import os
import platform

import numpy
import tensorflow as tf

import batches
import rank
import recipe
import samples
import tensorflow_models


class Trainer:
    """A model and its optimiser; who subclasses it joins ranks and trains."""

    covers = 1

    def configure(self, point, place, workers=1):
        """Threads and devices, before TensorFlow is first used."""
        resources = point["resources"]
        self.threads = min(max(resources["cpus_per_worker"], 1) * workers,
                           len(os.sched_getaffinity(0)))
        tf.config.threading.set_intra_op_parallelism_threads(self.threads)
        # The threads on which operations wait, for communication for example.
        tf.config.threading.set_inter_op_parallelism_threads(
            max(2, self.threads))
        # On a GPU, work is still under way when an operation is back.
        self.clocked = resources["device"] == "cpu"
        if resources["device"] == "cpu":
            tf.config.set_visible_devices([], "GPU")
            return
        found = tf.config.list_physical_devices("GPU")
        if not found:
            raise RuntimeError('resources.device is "gpu", but TensorFlow'
                               f" {tf.__version__} sees no GPU here")
        if workers == 1:
            # A task that sees one GPU only sees it as the first.
            found = [found[place.local_rank if len(found) > 1 else 0]]
            tf.config.set_visible_devices(found, "GPU")
        for device in found:
            tf.config.experimental.set_memory_growth(device, True)

    # What a model of the native trainer's takes, until data knows otherwise.
    _sample = numpy.zeros((1, 32, 32, 3), numpy.float32)

    def data(self, point):
        found = samples.find(point, batches)
        if isinstance(found, samples.Own):
            self._sample = found.training[0][:1]
        return found

    def build(self, point):
        workload = point["workload"]
        self.model = tensorflow_models.build(
            point, recipe.stream(point["seed"], "model"), self._sample)
        self.optimizer = tensorflow_models.SGD(
            0.0, workload["momentum"], workload["weight_decay"])
        return sum(int(numpy.prod(w.shape))
                   for w in self.model.trainable_variables)

    @tf.function(reduce_retracing=True)
    def _evaluate(self, inputs, labels):
        return judged(self.model, inputs, labels)

    def evaluate(self, inputs, labels):
        loss, correct = self._evaluate(inputs, labels)
        return float(loss), int(correct)

    def reduction(self, moments):
        """Of a step's reduction, from its Clock's moments, the seconds in all
        and those in which nothing was computed; None where they are not
        measured."""
        if not self.clocked:
            return None, None
        if moments is None:
            return 0.0, 0.0
        moments = moments.numpy().tolist()
        begins = moments[:len(moments) // 2]
        busy, until = rank.busy(zip(begins, moments[len(begins):]))
        return busy, until - max(begins)

    def local_statistics(self):
        """Of each rank here, the running averages of batch norm as arrays."""
        return [[average.numpy() for average in
                 tensorflow_models.statistics(self.model)]]

    def parameter_sha256(self):
        return sha256(tensorflow_models.flat(self.model))

    def versions(self):
        return {"python": platform.python_version(),
                "tensorflow": tf.__version__,
                "keras": tf.keras.__version__, "numpy": numpy.__version__}


def mean_loss(logits, labels):
    """The mean cross entropy, with the classes along the last axis."""
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels, logits))


def judged(model, inputs, labels):
    """The sum of the losses, and how many labels are found rightly."""
    logits = tf.cast(model(inputs, training=False), tf.float64)
    labels = tf.cast(labels, tf.int64)
    loss = tf.reduce_sum(tf.nn.sparse_softmax_cross_entropy_with_logits(
        labels, logits))
    correct = tf.reduce_sum(tf.cast(
        tf.equal(tf.argmax(logits, -1), labels), tf.int64))
    return loss, correct


def sha256(vector):
    """The hash of a float32 vector, equal for equal bits only."""
    return hashlib.sha256(vector.tobytes()).hexdigest()


class Clock:
    """Times operations within a graph, by TensorFlow's own clock."""

    def __init__(self):
        self._begins, self._ends = [], []

    def time(self, operation, tensors):
        """What operation makes of each tensor; the time runs from when the
        tensor is there to when the result is."""
        return [self._ended(operation(self._begun(tensor)))
                for tensor in tensors]

    def group(self, operation, tensors):
        """The same for an operation on all tensors at once; of each, the time
        runs from when that tensor is there."""
        results = operation([self._begun(tensor) for tensor in tensors])
        return [self._ended(result) for result in results]

    def _begun(self, tensor):
        with tf.control_dependencies([tensor]):
            begin = tf.timestamp()
        self._begins.append(begin)
        with tf.control_dependencies([begin]):
            return tf.identity(tensor)

    def _ended(self, result):
        with tf.control_dependencies([result]):
            self._ends.append(tf.timestamp())
        return result

    def moments(self):
        """In seconds, when each operation began, and then when each ended:
        float64 [2 · operations]; None if there were none."""
        return tf.stack(self._begins + self._ends) if self._begins else None
