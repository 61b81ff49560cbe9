"""Plans and training by recipes."""
import os
from ctypes import byref, c_void_p
from typing import Any, Callable, Dict, Mapping, NamedTuple, Optional, Union

from ._library import (PROGRESS, PlanDesc, PlanResult, Status, StintError, TrainDesc,
                       TrainProgress, TrainResult, check, fields, lib, text)

#: A file of a recipe, or its keys: {"train.batch": 32}. None: defaults alone.
Recipe = Union[str, "os.PathLike[str]", Mapping[str, Any], None]


class Progress(NamedTuple):
    """How far a training is, as its callback gets it: steps and epochs done of all, means
    over this epoch, results of the last evaluation (NaN before the first)."""
    step: int
    steps: int
    epoch: int
    epochs: int
    loss: float
    accuracy: float
    images_per_s: float
    context: int
    rss_bytes: int
    seconds_left: float
    test_loss: float
    test_accuracy: float
    epoch_done: bool
    evaluating: bool
    evaluated: int
    to_evaluate: int


class Record(dict):
    """A dict whose entries are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _key(name: str) -> str:
    section, _, rest = name.partition("_")
    return f"{section}.{rest}"


class _Recipe:
    """A recipe of the library, for the length of a with block."""

    def __init__(self, recipe: Recipe, data: Any, keys: Dict[str, Any]) -> None:
        self.handle = c_void_p()
        if recipe is None or isinstance(recipe, Mapping):
            check(lib.stint_recipe_create(byref(self.handle)))
            settings = dict(recipe or {})
        else:
            check(lib.stint_recipe_load(os.fsencode(recipe), byref(self.handle)))
            settings = {}
        if data is not None:
            settings["data.path"] = os.path.abspath(os.fspath(data))
        settings.update((_key(name), value) for name, value in keys.items())
        try:
            for key, value in settings.items():
                check(lib.stint_recipe_set(self.handle, key.encode(),
                                           _value(value).encode()))
        except BaseException:
            lib.stint_recipe_destroy(self.handle)
            raise

    def __enter__(self) -> c_void_p:
        return self.handle

    def __exit__(self, *_: Any) -> None:
        lib.stint_recipe_destroy(self.handle)


def plan(recipe: Recipe = None, data: "str | os.PathLike[str] | None" = None, *,
         ranks: int = 1, **keys: Any) -> Record:
    """What a training would take, before anything is taken: a Record of peak_bytes (of the
    whole process), fits, budget_bytes, smallest_bytes, batch_that_fits, threads, lanes,
    parameters and more, and parts, {name: bytes}, which add up to peak_bytes.

    Arguments as of train(). ranks: processes that share the work; the plan is that of the
    first one.
    """
    result = PlanResult()
    with _Recipe(recipe, data, keys) as handle:
        check(lib.stint_plan(handle, byref(PlanDesc(ranks=ranks)), byref(result)))
    try:
        answer = Record(fields(result))
        del answer["timeline_bytes"], answer["svg"]
        answer["parts"] = {}
        for part in result.parts[:result.part_count]:
            name = text(part.name)
            answer["parts"][name] = answer["parts"].get(name, 0) + part.bytes
        return answer
    finally:
        lib.stint_plan_fini(byref(result))


def train(recipe: Recipe = None, data: "str | os.PathLike[str] | None" = None, *,
          callback: Optional[Callable[[Progress], Any]] = None, resume: bool = False,
          force: bool = False, **keys: Any) -> Record:
    """Train as a recipe says; a Record of test_accuracy, test_loss, seconds,
    planned_peak_bytes, peak_rss_bytes, weights_sha256, out (the run's folder) and more.

    recipe: an INI file, or a dict {"train.batch": 32}. data: its data.path. Further keys
    have their section in front: train_epochs=2, run_memory="200M", run_out="runs/a",
    model_name="resnet8". callback: gets a Progress now and then; an exception that it
    raises, Ctrl-C too, ends the run with its checkpoint saved, and comes out here. resume:
    go on from the newest checkpoint. force: a finished run in the folder may be replaced.
    """
    raised = []

    def progress(_: Any, now: Any) -> None:
        try:
            if callback is not None and not raised:
                here: TrainProgress = now.contents
                callback(Progress(*(getattr(here, name) for name in Progress._fields)))
        except BaseException as error:  # nothing may pass through C
            raised.append(error)
            lib.stint_stop(Status.INTERRUPTED)

    desc = TrainDesc(resume=resume, force=force, progress=PROGRESS(progress))
    result = TrainResult()
    with _Recipe(recipe, data, keys) as handle:
        status = lib.stint_train(handle, byref(desc), byref(result))
        words = lib.stint_last_error()
    if raised:
        raise raised[0]
    if status:
        raise StintError(status, text(words))
    return Record(fields(result))
