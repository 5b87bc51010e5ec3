"""What the CPUs of a rank reach in multiplying two matrices: the peak that an
MFU on CPUs is of."""

import time

# Other programs on a core leave slices of some milliseconds. A product of
# small matrices fits into one; a large one gives work to many threads.
SIZES = 256, 512, 1024
SECONDS = 0.5


def best(product, seconds=SECONDS):
    """FLOP/s of the fastest of many products, tried for so long.

    product(size) gives a function that multiplies two square matrices and
    returns when it has done so.
    """
    products = [(2 * size ** 3, product(size)) for size in SIZES]
    for _, multiply in products:
        multiply()  # compiles, or starts threads
    reached, end = 0.0, time.perf_counter() + seconds
    while True:
        for flops, multiply in products:
            begin = time.perf_counter()
            multiply()
            now = time.perf_counter()
            reached = max(reached, flops / (now - begin))
            if now >= end:
                return reached
