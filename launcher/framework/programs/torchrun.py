"""Starts a node's ranks by PyTorch's torchrun, with a few words of its own.

    python torchrun.py OPTION… PROGRAM

SIGUSR1 is the scheduler's early warning, meant for the ranks; it would end
torchrun. What torchrun writes goes to the run folder: in the node's /tmp it
would stay for good if this were killed.
"""

import os
import signal
import sys
import tempfile


def main():
    from torch.distributed import run  # is slow

    signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    # Keep the ranks from writing compiled files next to the programs, too.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    folder = os.environ["SCALEBENCH_RUN"]
    with tempfile.TemporaryDirectory(prefix=".torchrun-", dir=folder) as logs:
        run.main(["--log_dir=" + logs, *sys.argv[1:]])


if __name__ == "__main__":
    main()
