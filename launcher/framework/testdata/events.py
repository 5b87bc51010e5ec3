"""Reports a made-up run: python3 events.py HOW."""

import math
import sys
import time

import scalebench


def main(how):
    interruption = scalebench.Interruption(grace=0.2)
    path = scalebench.event_file(rank=1, restart=2)
    events = scalebench.Events(path, "mine", rank=1, world_size=4,
                               local_rank=1, restart=2)
    interruption.events = events
    if how == "wait":
        # Nothing is written again by this program itself.
        for _ in range(3):
            events.step(0.001, 8)
        print("ready", flush=True)
        time.sleep(60)
    events.environment(threads=2, versions={"python": "3"})
    events.train(parameters=10, gradient_bytes=40, train_samples=100,
                 test_samples=20, global_batch=8, steps_per_epoch=12,
                 parameter_sha256="ab")
    for i in range(250):
        events.step(0.001 * (i + 1), 8, data_wait=0.0, compute=0.0005)
    events.step(2.5, 7)
    events.step(1e-7, 7, communication=1e-6)
    events.epoch(samples=2014, seconds=1.5, learning_rate=0.1, loss=1.25)
    events.epoch(samples=0, seconds=0.5, learning_rate=0.01, loss=math.nan)
    events.gradients(epoch=2, samples=8, global_samples=32, steps=[3, 1],
                     own=[2.5, 0.0], averaged=[1.25, 0.0])
    events.evaluation(accuracy=0.0, samples=20, seconds=0.25, loss=2.5)
    events.evaluation(accuracy=1.0, samples=20, seconds=0.25)
    events.error("train", 'line 1\nline 2 "quoted" \u2028 ü')
    events.stop("failed", "x", "cd")
    events.stop("done")  # only the first counts
    events.step(1, 1)
    events.flush()
    try:
        scalebench.Events(path, "mine", rank=1, world_size=4, restart=2)
    except FileExistsError:
        return 0
    return "a second writer was let in"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
