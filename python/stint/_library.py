"""libstint.so: where it is, its structures, its errors."""
import ctypes
import ctypes.util
import enum
import os
from ctypes import (POINTER, Structure, byref, c_bool, c_char, c_char_p, c_double,
                    c_float, c_int, c_int32, c_int64, c_size_t, c_uint32, c_uint64,
                    c_void_p)

#: Version of the library that the structures below are of.
WANTED = "0.1.0"


class Status(enum.IntEnum):
    """How a call ended; the numbers are also the exit codes of the program `stint`."""
    OK = 0
    FAILED = 1
    USAGE = 2
    BUDGET = 3
    INPUT = 4
    IO = 5
    PEER = 6
    MEMORY = 7
    UNSUPPORTED = 8
    BUG = 9
    INTERRUPTED = 130
    TERMINATED = 143


class StintError(Exception):
    """What every failure of the library raises.

    status: a Status. str() is the library's text: cause, object, numbers, way out.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = Status(status)


# ---- structures, in the order of the headers; a test compares their layout ----

class Shape(Structure):
    """stint_shape (graph.h)"""
    _fields_ = [("rank", c_int32), ("dtype", c_int), ("dim", c_int64 * 6)]


class RotaryScaling(Structure):
    """stint_rotary_scaling (op.h)"""
    _fields_ = [("kind", c_int), ("factor", c_float), ("low", c_float),
                ("high", c_float), ("attention", c_float), ("original", c_float)]


class TextModelDesc(Structure):
    """stint_text_model_desc (model.h)"""
    _fields_ = [("vocabulary", c_int64), ("depth", c_int64), ("width", c_int64),
                ("heads", c_int64), ("kv_heads", c_int64), ("dropout", c_float),
                ("hidden", c_int64), ("epsilon", c_float), ("rotary_base", c_float),
                ("head", c_int), ("head_size", c_int64), ("qkv_bias", c_bool),
                ("proj_bias", c_bool), ("mlp_bias", c_bool), ("qk_norm", c_bool),
                ("window", c_int64), ("window_from", c_int64),
                ("rotary_scaling", RotaryScaling), ("positions", c_int64)]


class FieldDesc(Structure):
    """stint_field_desc (model.h)"""
    _fields_ = [("coordinates", c_int64), ("outputs", c_int64), ("width", c_int64),
                ("depth", c_int64), ("omega", c_float), ("omega_hidden", c_float),
                ("activation", c_int), ("features", c_int64),
                ("feature_scale", c_float), ("skip", c_bool)]


class TokenizerInfo(Structure):
    """stint_tokenizer_info (text.h)"""
    _fields_ = [("kind", c_int), ("vocabulary", c_int32), ("hash", c_char_p),
                ("begin_token", c_int32)]


class ModelFacts(Structure):
    """stint_model_facts (store.h)"""
    _fields_ = [("network", c_char_p), ("classes", c_int32),
                ("class_names", POINTER(c_char_p)), ("height", c_int64),
                ("width", c_int64), ("channels", c_int64), ("parameters", c_int64),
                ("tensors", c_int64), ("recipe", c_char_p), ("step", c_int64),
                ("test_accuracy", c_double), ("test_loss", c_double),
                ("context", c_int64), ("text", TextModelDesc),
                ("field", FieldDesc), ("weights_sha256", c_char * 65)]


class TextModelFacts(Structure):
    """stint_text_model_facts (store.h)"""
    _fields_ = [("family", c_char_p), ("sizes", TextModelDesc), ("context", c_int64),
                ("parameters", c_int64), ("end_token", c_int64),
                ("tokenizer", c_void_p), ("no_tokenizer", c_char_p)]


class RunnerDesc(Structure):
    """stint_runner_desc (run.h)"""
    _fields_ = [("batch", c_int64), ("threads", c_int), ("memory_bytes", c_size_t)]


class RunnerFacts(Structure):
    """stint_runner_facts (run.h)"""
    _fields_ = [("batch", c_int64), ("threads", c_int), ("input", Shape),
                ("output", Shape), ("planned_peak_bytes", c_size_t),
                ("weights_bytes", c_size_t), ("work_bytes", c_size_t)]


class GeneratorDesc(Structure):
    """stint_generator_desc (generate.h)"""
    _fields_ = [("threads", c_int), ("tokens", c_int64), ("temperature", c_double),
                ("top_k", c_int64), ("top_p", c_double), ("seed", c_uint64),
                ("memory_bytes", c_size_t), ("weight_bits", c_int)]


class TopkDesc(Structure):
    """stint_topk_desc (topk.h)"""
    _fields_ = [("type", c_int), ("key", c_int), ("nan", c_int),
                ("zeros_equal", c_bool), ("sorted", c_bool), ("rows", c_int64),
                ("n", c_int64), ("stride", c_int64), ("k", c_int64),
                ("index_base", c_int64), ("threads", c_int), ("method", c_int),
                ("exponent", c_int), ("part", c_int64), ("has_addend", c_bool),
                ("costs", c_void_p)]


class CodecDesc(Structure):
    """stint_codec_desc (codec.h)"""
    _fields_ = [("rank", c_int), ("dim", c_int64 * 4), ("bound", c_double),
                ("dither", c_bool), ("seed", c_uint64), ("id", c_uint64),
                ("shard", c_uint32), ("predictor", c_int), ("threads", c_int)]


class CodecResult(Structure):
    """stint_codec_result (codec.h)"""
    _fields_ = [("bytes", c_size_t), ("max_error", c_double), ("zeros", c_int64),
                ("outliers", c_int64), ("raw", c_int64), ("predictor", c_int),
                ("contexts", c_int)]


class CodecInfo(Structure):
    """stint_codec_info (codec.h)"""
    _fields_ = [("rank", c_int), ("dim", c_int64 * 4), ("count", c_int64),
                ("bound", c_double), ("dither", c_bool), ("masked", c_bool),
                ("bytes", c_size_t), ("max_error", c_double), ("zeros", c_int64),
                ("outliers", c_int64), ("raw", c_int64), ("predictor", c_int),
                ("contexts", c_int)]


class TrainProgress(Structure):
    """stint_train_progress (infer.h)"""
    _fields_ = [("step", c_int64), ("steps", c_int64), ("epoch", c_int64),
                ("epochs", c_int64), ("loss", c_double), ("accuracy", c_double),
                ("images_per_s", c_double), ("context", c_int64),
                ("rss_bytes", c_size_t), ("seconds_left", c_double),
                ("test_loss", c_double), ("test_accuracy", c_double),
                ("epoch_done", c_bool), ("evaluating", c_bool), ("evaluated", c_int64),
                ("to_evaluate", c_int64)]


class PlanPart(Structure):
    """stint_plan_part (train.h)"""
    _fields_ = [("name", c_char_p), ("detail", c_char_p), ("bytes", c_size_t)]


class PlanTensor(Structure):
    """stint_plan_tensor (train.h)"""
    _fields_ = [("name", c_char * 96), ("form", c_int), ("bytes", c_size_t),
                ("held_bytes", c_size_t)]


class PlanSum(Structure):
    """stint_plan_sum (train.h)"""
    _fields_ = [("bits", c_int), ("keep", c_double), ("rank_bytes", c_double),
                ("seconds", c_double), ("fits", c_bool), ("own", c_bool)]


class PlanNet(Structure):
    """stint_plan_net (train.h)"""
    _fields_ = [("ranks", c_int), ("shards", c_int64), ("values", c_int64),
                ("float_values", c_int64), ("chosen", c_bool), ("overlap", c_bool),
                ("link_bits_per_s", c_double), ("time_s", c_double),
                ("sums", PlanSum * 8), ("sum_count", c_int),
                ("keep_that_fits", c_double)]


class PlanStage(Structure):
    """stint_plan_stage (train.h)"""
    _fields_ = [("epoch", c_int64), ("batch", c_int64), ("accumulate", c_int64),
                ("images", c_int64), ("lr_factor", c_double), ("steps", c_int64),
                ("rank_bytes", c_double)]


class PlanMachine(Structure):
    """stint_plan_machine (train.h)"""
    _fields_ = [("bytes", c_size_t), ("source", c_char_p), ("holds", c_bool),
                ("batch_that_fits", c_int64), ("memory_that_fits", c_size_t)]


class PlanDerivatives(Structure):
    """stint_plan_derivatives (train.h)"""
    _fields_ = [("set", c_char_p), ("jets", c_bool), ("laplacian", c_bool),
                ("reverse_multiply_adds", c_double),
                ("jets_multiply_adds", c_double)]


class PlanResult(Structure):
    """stint_plan_result (train.h)"""
    _fields_ = [("peak_bytes", c_size_t), ("budget_bytes", c_size_t), ("fits", c_bool),
                ("threads", c_int), ("lanes", c_int), ("batch", c_int64),
                ("shards", c_int64), ("parameters", c_int64),
                ("forward_flop", c_double), ("context", c_int64),
                ("of_field", c_bool), ("derivatives", PlanDerivatives * 4),
                ("derivative_count", c_int), ("smallest_bytes", c_size_t),
                ("slowdown", c_double),
                ("tensors", POINTER(PlanTensor)), ("tensor_count", c_int),
                ("peak_at", c_char * 96), ("peak_at_bytes", c_size_t),
                ("batch_that_fits", c_int64), ("shards_that_fit", c_int64),
                ("stage_too_large", c_int64), ("images_that_fit", c_int64),
                ("parts", PlanPart * 20), ("part_count", c_int),
                ("timeline_bytes", c_size_t * 64), ("timeline_count", c_int),
                ("svg", c_char_p), ("net", PlanNet), ("stages", POINTER(PlanStage)),
                ("stage_count", c_int), ("run_rank_bytes", c_double),
                ("run_rank_bytes_fixed", c_double), ("machine", PlanMachine)]


class PlanDesc(Structure):
    """stint_plan_desc (train.h)"""
    _fields_ = [("svg", c_bool), ("ranks", c_int)]


PROGRESS = ctypes.CFUNCTYPE(None, c_void_p, POINTER(TrainProgress))
LOG = ctypes.CFUNCTYPE(None, c_void_p, c_int, c_char_p)


class TrainDesc(Structure):
    """stint_train_desc (train.h)"""
    _fields_ = [("resume", c_bool), ("force", c_bool), ("force_memory", c_bool),
                ("progress", PROGRESS), ("planned", c_void_p), ("user", c_void_p),
                ("net", c_void_p), ("profile", c_void_p)]


class TrainResult(Structure):
    """stint_train_result (train.h)"""
    _fields_ = [("train_loss", c_double), ("test_loss", c_double),
                ("test_accuracy", c_double), ("balanced_accuracy", c_double),
                ("lowest_recall", c_double), ("lowest_class", c_char * 256),
                ("images_per_s", c_double), ("tokens_per_s", c_double),
                ("psnr", c_double), ("relative_l2", c_double),
                ("bits_per_byte", c_double), ("seconds", c_double),
                ("planned_peak_bytes", c_size_t), ("peak_rss_bytes", c_size_t),
                ("weights_sha256", c_char * 65), ("seed", c_uint64),
                ("threads", c_int), ("lanes", c_int), ("batch", c_int64),
                ("shards", c_int64), ("steps", c_int64), ("epochs", c_int64),
                ("parameters", c_int64), ("batch_first", c_int64),
                ("noise_scale", c_double), ("kl", c_double), ("sigma", c_double * 3),
                ("chosen_epoch", c_int64), ("validation_accuracy", c_double),
                ("validation_mismatch", c_double), ("validation_loss", c_double),
                ("loss_part", c_double * 3),
                ("loss_weight", c_double * 3), ("ranks", c_int),
                ("net_messages", c_int64), ("net_bytes", c_int64),
                ("out", c_char * 1024)]


# ---- the library ----

_HANDLE = POINTER(c_void_p)
#: Functions that return a status: their name and arguments.
_STATUS_CALLS = {
    "stint_model_open": [c_char_p, _HANDLE],
    "stint_runner_plan": [c_void_p, POINTER(RunnerDesc), POINTER(RunnerFacts)],
    "stint_runner_create": [c_void_p, POINTER(RunnerDesc), _HANDLE],
    "stint_runner_run": [c_void_p, c_int, c_void_p, c_int64, c_void_p, c_void_p],
    "stint_text_model_open": [c_char_p, _HANDLE],
    "stint_generator_peak_bytes": [c_void_p, POINTER(GeneratorDesc), POINTER(c_size_t)],
    "stint_generator_create": [c_void_p, POINTER(GeneratorDesc), _HANDLE],
    "stint_generator_prompt": [c_void_p, c_void_p, c_int64],
    "stint_generator_next": [c_void_p, POINTER(c_int32)],
    "stint_tokenizer_encode": [c_void_p, c_char_p, c_size_t, c_void_p, POINTER(c_int64)],
    "stint_recipe_create": [_HANDLE],
    "stint_recipe_load": [c_char_p, _HANDLE],
    "stint_recipe_set": [c_void_p, c_char_p, c_char_p],
    "stint_plan": [c_void_p, POINTER(PlanDesc), POINTER(PlanResult)],
    "stint_train": [c_void_p, POINTER(TrainDesc), POINTER(TrainResult)],
    "stint_topk_workspace_bytes": [POINTER(TopkDesc), POINTER(c_size_t)],
    "stint_topk": [POINTER(TopkDesc), c_void_p, c_void_p, c_void_p, c_void_p, c_void_p,
                   c_size_t],
    "stint_codec_max_bytes": [POINTER(CodecDesc), POINTER(c_size_t)],
    "stint_codec_workspace_bytes": [POINTER(CodecDesc), POINTER(c_size_t)],
    "stint_codec_pack": [POINTER(CodecDesc), c_void_p, c_void_p, c_void_p, c_size_t,
                         c_void_p, c_size_t, POINTER(CodecResult)],
    "stint_codec_info_read": [c_void_p, c_size_t, POINTER(CodecInfo)],
    "stint_codec_unpack": [POINTER(CodecDesc), c_void_p, c_size_t, c_void_p, c_void_p,
                           c_void_p, c_size_t],
}
#: Others: result, arguments.
_OTHER_CALLS = {
    "stint_last_error": (c_char_p, []),
    "stint_version": (c_char_p, []),
    "stint_set_log": (None, [LOG, c_void_p]),
    "stint_stop": (None, [c_int]),
    "stint_model_close": (None, [c_void_p]),
    "stint_model_describe": (None, [c_void_p, POINTER(ModelFacts)]),
    "stint_runner_destroy": (None, [c_void_p]),
    "stint_runner_describe": (None, [c_void_p, POINTER(RunnerFacts)]),
    "stint_text_model_close": (None, [c_void_p]),
    "stint_text_model_describe": (None, [c_void_p, POINTER(TextModelFacts)]),
    "stint_generator_destroy": (None, [c_void_p]),
    "stint_generator_logits": (POINTER(c_float), [c_void_p]),
    "stint_tokenizer_most": (c_int64, [c_void_p, c_size_t]),
    "stint_tokenizer_describe": (POINTER(TokenizerInfo), [c_void_p]),
    "stint_tokenizer_token": (c_void_p, [c_void_p, c_int32, POINTER(c_size_t)]),
    "stint_recipe_destroy": (None, [c_void_p]),
    "stint_plan_fini": (None, [POINTER(PlanResult)]),
}


def _candidates():
    name = os.environ.get("STINT_LIBRARY")
    if name:  # said by the user: no other will do
        yield name
        return
    here = os.path.dirname(os.path.abspath(__file__))
    yield os.path.join(here, "libstint.so")
    for prefix in ("/usr/local", os.path.expanduser("~/.local"), "/usr"):
        for lib in ("lib", "lib64", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu"):
            yield os.path.join(prefix, lib, "libstint.so.0")
    found = ctypes.util.find_library("stint")
    if found:
        yield found


def _open():
    named = "STINT_LIBRARY" in os.environ
    for path in _candidates():
        if named or os.sep not in path or os.path.exists(path):
            try:
                return ctypes.CDLL(path)
            except OSError as error:
                raise StintError(Status.IO, f"{path} cannot be loaded: {error}") from None
    raise StintError(Status.IO, "libstint.so is not installed: run `cmake --install` in a "
                                "build of Stint, or set STINT_LIBRARY to its path")


def _declare(library):
    for name, arguments in _STATUS_CALLS.items():
        call = getattr(library, name)
        call.restype, call.argtypes = c_int, arguments
    for name, (result, arguments) in _OTHER_CALLS.items():
        call = getattr(library, name)
        call.restype, call.argtypes = result, arguments
    return library


def _check_version(library):
    library.stint_version.restype = c_char_p
    version = library.stint_version().decode()
    if version.split(".")[:2] != WANTED.split(".")[:2]:
        raise StintError(Status.UNSUPPORTED,
                         f"this package is for libstint {WANTED}, but {version} was "
                         "found; install both from one tree")
    return library


lib = _declare(_check_version(_open()))


def check(status: int) -> None:
    """Raise StintError for a status that is not OK, with this thread's last words."""
    if status:
        raise StintError(status, lib.stint_last_error().decode(errors="replace"))


def text(value: "bytes | None") -> str:
    """A text of the library."""
    return value.decode(errors="replace") if value else ""


def fields(structure: Structure) -> dict:
    """The members of a structure that are numbers or texts."""
    values = {}
    for name, *_ in structure._fields_:
        value = getattr(structure, name)
        if isinstance(value, bytes):
            value = text(value)
        if isinstance(value, ctypes.Array):
            value = tuple(value)
        if value is None or isinstance(value, (str, bool, int, float, tuple)):
            values[name] = value
    return values
