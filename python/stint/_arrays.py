"""Arrays in and out; the best k of them; packing within an error bound."""
import warnings
from ctypes import byref, c_size_t
from typing import Any, NamedTuple, Optional, Tuple

import numpy as np

from ._library import (CodecDesc, CodecInfo, CodecResult, Status, StintError, TopkDesc,
                       check, lib)

_said = set()


def take_array(x: Any, types: Tuple[str, ...], what: str) -> np.ndarray:
    """x as a dense NumPy array of one of the types; its own memory where that will do.

    x: an array of NumPy, or of whatever has __dlpack__ on the CPU. A view that is not
    dense is copied, which is said once by a warning.
    """
    if not isinstance(x, np.ndarray):
        if hasattr(x, "__dlpack__"):
            try:
                x = np.from_dlpack(x)
            except (BufferError, RuntimeError, TypeError, ValueError) as error:
                raise StintError(Status.INPUT, f"{what}: DLPack: {error}; wanted an array "
                                               "on the CPU that needs no gradient") from None
        else:
            x = np.asarray(x)
    if x.dtype.name not in types or not x.dtype.isnative:
        raise StintError(Status.INPUT,
                         f"{what} is {x.dtype}; wanted {' or '.join(types)}: "
                         f"x.astype('{types[0]}')")
    if not x.flags.c_contiguous:
        if what not in _said:
            _said.add(what)
            warnings.warn(f"{what} is not dense in memory and is copied at each call "
                          "(numpy.ascontiguousarray does it once)", stacklevel=4)
        x = np.ascontiguousarray(x)
    return x


# ---- the best k ----

_TOPK_TYPES = {"float32": 0, "float16": 1, "int32": 3, "int8": 4, "uint32": 5, "uint8": 6,
               "bool": 6, "float64": 7, "int64": 8, "uint64": 9, "int16": 10, "uint16": 11}
_TOPK_KEYS = {"max": 0, "min": 1, "abs": 2}
_TOPK_NANS = {"error": 0, "first": 1, "last": 2}


def _word(words: dict, word: str, what: str) -> int:
    if word not in words:
        raise StintError(Status.USAGE, f"{what} is '{word}'; wanted {', '.join(words)}")
    return words[word]


def topk(x: Any, k: int, *, key: str = "max", nan: str = "last", sorted: bool = True,
         threads: int = 1) -> Tuple[np.ndarray, np.ndarray]:
    """The k best of the last axis: (values, positions), each [..., min(k, n)].

    x [..., n]: floats of 16, 32 or 64 bits, or integers of 8 to 64.
    key: "max", "min" or "abs", what makes an element good. nan: "last", "first", or
    "error", which refuses them. sorted: best first, else by position. Of equal elements
    the first one is better, so that the answer is one for all threads and machines.
    """
    x = take_array(x, tuple(_TOPK_TYPES), "topk's x")
    if x.ndim == 0:
        raise StintError(Status.INPUT, "topk's x has no axis to choose from")
    n = x.shape[-1]
    rows = x.size // n if n else 0
    desc = TopkDesc(type=_TOPK_TYPES[x.dtype.name], key=_word(_TOPK_KEYS, key, "key"),
                    nan=_word(_TOPK_NANS, nan, "nan"), sorted=sorted, rows=rows, n=n, k=k,
                    threads=threads)
    shape = x.shape[:-1] + (min(max(k, 0), n),)
    values, index = np.empty(shape, x.dtype), np.empty(shape, np.int64)
    size = c_size_t()
    check(lib.stint_topk_workspace_bytes(byref(desc), byref(size)))
    if rows:
        work = np.empty(size.value, np.uint8)
        check(lib.stint_topk(byref(desc), x.ctypes.data, None, index.ctypes.data,
                             values.ctypes.data, work.ctypes.data, size.value))
    return values, index


# ---- packing ----

class Packed(NamedTuple):
    """What pack gives: the block, and the largest error that occurred in it."""
    block: bytes
    max_error: float


def _codec_desc(shape: Tuple[int, ...], bound: float, threads: int) -> CodecDesc:
    if not 1 <= len(shape) <= 4:
        raise StintError(Status.USAGE, f"an array of {len(shape)} axes; 1 to 4 can be packed")
    desc = CodecDesc(rank=len(shape), bound=bound, threads=threads)
    for axis, length in enumerate(shape):
        desc.dim[axis] = length
    return desc


def _workspace(desc: CodecDesc) -> np.ndarray:
    size = c_size_t()
    check(lib.stint_codec_workspace_bytes(byref(desc), byref(size)))
    return np.empty(size.value, np.uint8)


def pack(x: Any, bound: float, *, dither: bool = False, seed: int = 0,
         threads: int = 1) -> Packed:
    """Pack x so that every value comes back within bound of itself.

    x: float32, 1 to 4 axes, the last of which is taken as channels. Zeros come back as
    zeros; NaN, infinities and what cannot be held to the bound come back bit for bit.
    dither: make errors uniform and independent of the values, by a noise that the seed
    says. The block is the same for any number of threads.
    """
    x = take_array(x, ("float32",), "pack's x")
    desc = _codec_desc(x.shape, bound, threads)
    desc.dither, desc.seed = dither, seed
    size, result = c_size_t(), CodecResult()
    check(lib.stint_codec_max_bytes(byref(desc), byref(size)))
    block, work = np.empty(size.value, np.uint8), _workspace(desc)
    check(lib.stint_codec_pack(byref(desc), x.ctypes.data, None, block.ctypes.data,
                               block.size, work.ctypes.data, work.size, byref(result)))
    return Packed(block[:result.bytes].tobytes(), result.max_error)


def unpack(block: "bytes | Packed", *, threads: int = 1,
           out: Optional[np.ndarray] = None) -> np.ndarray:
    """The array of a block that pack, or the program `stint codec`, made.

    out: float32 of the block's shape to unpack into, dense; None: a new one. Any bytes
    may be given: what is no block, or damaged, raises StintError of Status.INPUT.
    """
    data = np.frombuffer(block.block if isinstance(block, Packed) else block, np.uint8)
    info = CodecInfo()
    check(lib.stint_codec_info_read(data.ctypes.data, data.size, byref(info)))
    shape = tuple(info.dim[:info.rank])
    if out is None:
        out = np.empty(shape, np.float32)
    elif (out.shape != shape or out.dtype != np.float32 or not out.flags.c_contiguous or
          not out.flags.writeable):
        raise StintError(Status.INPUT, f"out is {out.dtype} {out.shape}; the block wants a "
                                       f"dense float32 array of {shape}")
    desc = _codec_desc(shape, info.bound, threads)
    work = _workspace(desc)
    check(lib.stint_codec_unpack(byref(desc), data.ctypes.data, data.size, None,
                                 out.ctypes.data, work.ctypes.data, work.size))
    return out
