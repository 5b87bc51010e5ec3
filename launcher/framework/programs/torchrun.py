"""Starts a node's ranks by PyTorch's torchrun, with a few words of its own.

    python torchrun.py OPTION… PROGRAM

SIGUSR1 is the scheduler's early warning and is for the ranks; torchrun knows
nothing of it and would be ended by it. What it keeps of the ranks is in the run
folder, where it stays if this is killed: a node's /tmp is nobody's to clear.
"""

import os
import signal
import sys
import tempfile


def main():
    from torch.distributed import run  # is slow

    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    # The ranks write no compiled files beside the programs either.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    with tempfile.TemporaryDirectory(prefix=".torchrun-", dir=os.environ["SCALEBENCH_RUN"]) as logs:
        run.main(["--log_dir=" + logs, *sys.argv[1:]])


if __name__ == "__main__":
    main()
