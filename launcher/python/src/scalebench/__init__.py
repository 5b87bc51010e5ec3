"""Reports a training to scalebench, and reads its results as data frames."""

from ._events import begin, epoch, evaluate, note, part, report, step
from ._results import Results, open_results as open

__all__ = ["Results", "begin", "epoch", "evaluate", "note", "open", "part",
           "report", "step"]
