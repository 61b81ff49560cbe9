"""Stint for Python: models run, text generated, networks trained within a budget.

    import stint
    model = stint.load("runs/letters")               # or a folder of Hugging Face's
    logits = model(images)                           # uint8 [n, height, width, channels]
    result = stint.train("recipe.ini", "photos", run_memory="200M", run_out="runs/a")
    values, index = stint.topk(scores, 10)
    packed = stint.pack(activations, bound=1e-3)

Arrays are NumPy's, or those of anything that has DLPack on the CPU. Failures raise
StintError, which has the status of the program `stint`. While the library works, other
Python threads run. docs/python.md has more.

The library is libstint.so: where STINT_LIBRARY says, or as `cmake --install` put it.
"""
from typing import Callable, Optional

from ._arrays import Packed, pack, topk, unpack
from ._library import LOG, Status, StintError, lib, text
from ._model import ImageModel, TextModel, load
from ._training import Progress, Record, plan, train

__all__ = ["ImageModel", "Packed", "Progress", "Record", "Status", "StintError",
           "TextModel", "load", "pack", "plan", "set_log", "stop", "topk", "train",
           "unpack", "version"]
__version__ = text(lib.stint_version())

_log = LOG()


def version() -> str:
    """Version of the library in use."""
    return text(lib.stint_version())


def stop() -> None:
    """Ask the training or generation that runs, on another thread, to stop; it then raises
    StintError of Status.INTERRUPTED, a training with its checkpoint saved."""
    lib.stint_stop(Status.INTERRUPTED)


def set_log(receive: Optional[Callable[[int, str], None]]) -> None:
    """Send the library's messages to receive(level, text): 0 error, 1 warning, 2 info, 3
    debug. None, as at first, drops them. Call it while nothing else runs."""
    global _log
    made = LOG(lambda _, level, words: receive(level, text(words))) if receive else LOG()
    lib.stint_set_log(made, None)
    _log = made  # which C calls from now on, so that it must live
