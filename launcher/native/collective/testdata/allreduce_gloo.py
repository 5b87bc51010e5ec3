"""Times torch.distributed.all_reduce of float32 sums over Gloo.

RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT say who takes part. Each argument
is BYTES:BATCHES:OPERATIONS; for each, rank 0 prints the bytes and, of every
batch, the seconds that one operation took in it.
"""

import sys
import time

import torch
import torch.distributed as dist


def main():
    dist.init_process_group("gloo")
    torch.set_num_threads(1)
    for argument in sys.argv[1:]:
        size, batches, operations = map(int, argument.split(":"))
        v = torch.zeros(size // 4)
        times = []
        for batch in range(-1, batches):  # the first warms up
            dist.barrier()
            begin = time.perf_counter()
            for _ in range(operations):
                dist.all_reduce(v)
            if batch >= 0:
                times.append((time.perf_counter() - begin) / operations)
        if dist.get_rank() == 0:
            print(size, *(f"{t:.9g}" for t in times), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
