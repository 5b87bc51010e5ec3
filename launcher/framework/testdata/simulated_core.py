"""gemm.best on a simulated core of 100 GFLOP/s of which others have every
second slice of 4 ms: time for the product of two matrices of 512, not of
1024."""

import gemm

SLICE = 0.004
now = 0.0


def product(size):
    def multiply():
        global now
        work = 2 * size ** 3 / 1e11
        while work > 0:
            slices, used = divmod(now, SLICE)
            left = SLICE - used
            if slices % 2 == 0:
                work -= left
                if work < 0:
                    left += work
            now += left + 1e-9
    return multiply


gemm.time.perf_counter = lambda: now
for now in 0.0, 0.001, 0.004, 7.0031:
    began, reached = now, gemm.best(product)
    assert abs(reached / 1e11 - 1) < 1e-3, reached
    # No more than its time, the first of each and what is under way then.
    assert now - began < gemm.SECONDS + 0.12, now - began
