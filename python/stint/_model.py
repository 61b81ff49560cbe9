"""Models: images through a network, text that goes on."""
import ctypes
import os
import threading
from ctypes import byref, c_int32, c_int64, c_size_t, c_void_p
from typing import Any, Iterator, List, Optional, Union

import numpy as np

from ._arrays import take_array
from ._library import (GeneratorDesc, ModelFacts, RunnerDesc, RunnerFacts, Status,
                       StintError, TextModelFacts, check, fields, lib, text)

_FORMS = {"uint8": 0, "float32": 1}
_NORMALISED = 2
_BITS = {"auto": 0, "f32": 32, "bf16": 16, "q8": 8, "q4": 4}
#: Most images that a model is given at once where the caller says nothing.
_BATCH = 32


class _Handle:
    """A model of the library behind a lock: one call at a time, closed once."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._model: Optional[c_void_p] = c_void_p()

    def _want_open(self) -> None:
        if self._model is None:
            raise StintError(Status.USAGE, f"{self.path} is closed; load it again")

    def close(self) -> None:
        """Free the model's memory. A call that is under way ends first; later ones raise
        StintError. Calling it twice is fine."""
        with self._lock:
            if self._model is not None:
                self._free()
                self._model = None

    def __enter__(self):
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_model", None) is not None and lib is not None:
            self._free()
            self._model = None


class ImageModel(_Handle):
    """A network that classifies images; made by load().

    network: its name. classes: their names. input_shape: (height, width, channels).
    parameters: how many numbers were trained. facts: all else that the file says.
    """

    def __init__(self, path: str, *, threads: int = 0, batch: int = 0,
                 memory_bytes: int = 0) -> None:
        super().__init__()
        self.path = path
        self._runner = c_void_p()
        self._desc = RunnerDesc(batch=batch, threads=threads, memory_bytes=memory_bytes)
        self._batch = batch
        self._size = 0
        check(lib.stint_model_open(os.fsencode(path), byref(self._model)))
        facts = ModelFacts()
        lib.stint_model_describe(self._model, byref(facts))
        self.facts = fields(facts)
        self.network: str = text(facts.network)
        self.classes: List[str] = [text(facts.class_names[i])
                                   for i in range(facts.classes)]
        self.input_shape = (facts.height, facts.width, facts.channels)
        self.parameters: int = facts.parameters
        self.is_text: bool = facts.context > 0

    def _free(self) -> None:
        lib.stint_runner_destroy(self._runner)
        self._runner = c_void_p()
        lib.stint_model_close(self._model)

    def _want_runner(self, count: int) -> None:
        size = self._batch or min(max(count, 1), _BATCH)
        if size == self._size:
            return
        lib.stint_runner_destroy(self._runner)
        self._runner, self._size = c_void_p(), 0
        self._desc.batch = size
        check(lib.stint_runner_create(self._model, byref(self._desc),
                                      byref(self._runner)))
        self._size = size

    def _images(self, x: Any) -> np.ndarray:
        x = take_array(x, tuple(_FORMS), "the array of images")
        if x.shape == self.input_shape:
            x = x[None]
        if x.shape[1:] != self.input_shape:
            raise StintError(Status.INPUT, f"images are {x.shape}; {self.path} takes "
                             "[n, height, width, channels] = "
                             f"[n, {', '.join(map(str, self.input_shape))}]")
        return x

    def _run(self, x: Any, normalised: bool, out: Optional[np.ndarray],
             probabilities: bool) -> np.ndarray:
        x = self._images(x)
        count, classes = x.shape[0], len(self.classes)
        form = _NORMALISED if normalised else _FORMS[x.dtype.name]
        if normalised and x.dtype != np.float32:
            raise StintError(Status.INPUT, "normalised images are float32, not uint8")
        if out is None:
            out = np.empty((count, classes), np.float32)
        elif (out.shape != (count, classes) or out.dtype != np.float32 or
              not out.flags.c_contiguous or not out.flags.writeable):
            raise StintError(Status.INPUT, f"out is {out.dtype} {out.shape}; wanted a dense "
                                           f"float32 array of {(count, classes)}")
        to = out.ctypes.data
        with self._lock:
            self._want_open()
            self._want_runner(count)
            check(lib.stint_runner_run(self._runner, form, x.ctypes.data, count,
                                       None if probabilities else to,
                                       to if probabilities else None))
        return out

    def __call__(self, x: Any, *, normalised: bool = False,
                 out: Optional[np.ndarray] = None) -> np.ndarray:
        """Logits [n, classes] float32 of images [n, height, width, channels].

        x: uint8 (0 to 255), or float32 (0 to 1), which the model normalises as in its
        training; normalised: float32 that is taken as it is. One image may come without
        its first axis. Anything with DLPack on the CPU will do. out: an array to write
        to. An image's logits are the same bits in any batch and for any threads.
        """
        return self._run(x, normalised, out, False)

    def probabilities(self, x: Any, *, normalised: bool = False,
                      out: Optional[np.ndarray] = None) -> np.ndarray:
        """The softmax of the logits, [n, classes]; arguments as of a call."""
        return self._run(x, normalised, out, True)

    def plan(self, batch: int = 1) -> dict:
        """What running so many images at once takes, in bytes: planned_peak_bytes of the
        whole process, weights_bytes, work_bytes."""
        facts = RunnerFacts()
        desc = RunnerDesc(batch=batch, threads=self._desc.threads,
                          memory_bytes=self._desc.memory_bytes)
        with self._lock:
            self._want_open()
            check(lib.stint_runner_plan(self._model, byref(desc), byref(facts)))
        return fields(facts)


class TextModel(_Handle):
    """A transformer that goes on with text; made by load().

    family: "gpt" or "llama". context: tokens that it sees at once. vocabulary, parameters:
    numbers of them. facts: all else.
    """

    def __init__(self, path: str, *, threads: int = 0, memory_bytes: int = 0,
                 weights: str = "auto") -> None:
        super().__init__()
        self.path = path
        if weights not in _BITS:
            raise StintError(Status.USAGE, f"weights are '{weights}'; wanted auto, f32, bf16, q8 or q4")
        self._bits = _BITS[weights]
        self._threads = threads or len(os.sched_getaffinity(0))
        self._memory_bytes = memory_bytes
        check(lib.stint_text_model_open(os.fsencode(path), byref(self._model)))
        self._facts = TextModelFacts()
        lib.stint_text_model_describe(self._model, byref(self._facts))
        self.facts = dict(fields(self._facts.sizes), **fields(self._facts))
        self.family: str = text(self._facts.family)
        self.context: int = self._facts.context
        self.parameters: int = self._facts.parameters
        self.vocabulary: int = self._facts.sizes.vocabulary

    def _free(self) -> None:
        lib.stint_text_model_close(self._model)

    def _tokenizer(self) -> int:
        self._want_open()
        if not self._facts.tokenizer:
            raise StintError(Status.UNSUPPORTED,
                             f"{self.path} has no tokeniser "
                             f"({text(self._facts.no_tokenizer)}); give token identities")
        return self._facts.tokenizer

    def encode(self, prompt: str) -> np.ndarray:
        """The tokens of a text, int32 [tokens]."""
        data, count = prompt.encode(), c_int64()
        with self._lock:
            tokenizer = self._tokenizer()
            tokens = np.empty(lib.stint_tokenizer_most(tokenizer, len(data)) or 1, np.int32)
            check(lib.stint_tokenizer_encode(tokenizer, data, len(data),
                                             tokens.ctypes.data, byref(count)))
        return tokens[:count.value]

    def decode(self, tokens: Any) -> str:
        """The text of tokens; bytes that are no UTF-8 become U+FFFD."""
        with self._lock:
            return b"".join(map(self._bytes_of, tokens)).decode(errors="replace")

    def _bytes_of(self, token: int) -> bytes:
        size = c_size_t()
        at = lib.stint_tokenizer_token(self._tokenizer(), int(token), byref(size))
        return ctypes.string_at(at, size.value) if at else b""

    def _begun(self, tokens: np.ndarray) -> np.ndarray:
        """Behind the token that prompts of this model begin with, if there is one."""
        with self._lock:
            begin = lib.stint_tokenizer_describe(self._tokenizer()).contents.begin_token
        if begin < 0 or (tokens.size and tokens[0] == begin):
            return tokens
        return np.concatenate([np.array([begin], np.int32), tokens])

    def _prompt(self, prompt: Union[str, Any]) -> np.ndarray:
        if isinstance(prompt, str):
            return self._begun(self.encode(prompt))
        if not isinstance(prompt, np.ndarray) and not hasattr(prompt, "__dlpack__"):
            prompt = np.asarray(prompt, np.int32)
        tokens = take_array(prompt, ("int32",), "the prompt's tokens")
        if tokens.ndim != 1:
            raise StintError(Status.INPUT, f"the prompt's tokens are {tokens.shape}; "
                                           "wanted one axis")
        return tokens

    def _begin(self, prompt: Union[str, Any], desc: GeneratorDesc) -> c_void_p:
        tokens, generator = self._prompt(prompt), c_void_p()
        with self._lock:
            self._want_open()
            check(lib.stint_generator_create(self._model, byref(desc), byref(generator)))
        status = lib.stint_generator_prompt(generator, tokens.ctypes.data, tokens.size)
        if status:
            error = StintError(status, text(lib.stint_last_error()))
            lib.stint_generator_destroy(generator)
            raise error
        return generator

    def tokens(self, prompt: Union[str, Any], count: int = 64, *,
               temperature: float = 0.8, top_k: int = 0, top_p: float = 1.0,
               seed: int = 0) -> Iterator[int]:
        """Tokens that follow the prompt, one after the other, at most `count` of them;
        the model's end token ends them and is not given. Arguments as of generate()."""
        desc = GeneratorDesc(threads=self._threads, temperature=temperature, top_k=top_k,
                             top_p=top_p, seed=seed, memory_bytes=self._memory_bytes,
                             weight_bits=self._bits)
        generator, token = self._begin(prompt, desc), c_int32()
        try:
            for _ in range(count):
                check(lib.stint_generator_next(generator, byref(token)))
                if token.value == self._facts.end_token:
                    return
                yield token.value
        finally:
            lib.stint_generator_destroy(generator)

    def generate(self, prompt: Union[str, Any], count: int = 64, *,
                 temperature: float = 0.8, top_k: int = 0, top_p: float = 1.0,
                 seed: int = 0) -> Union[str, np.ndarray]:
        """What follows the prompt: text after text, tokens (int32) after tokens.

        count: tokens at most. temperature: 0 takes the likeliest token each time. top_k:
        draw from so many; 0: all. top_p: from the likeliest that have this probability
        together. seed: of the drawing; the same arguments draw the same text.
        """
        drawn = list(self.tokens(prompt, count, temperature=temperature, top_k=top_k,
                                 top_p=top_p, seed=seed))
        return self.decode(drawn) if isinstance(prompt, str) else np.array(drawn, np.int32)

    def logits(self, prompt: Union[str, Any]) -> np.ndarray:
        """Scores [vocabulary] float32 of what follows the prompt."""
        desc = GeneratorDesc(threads=self._threads, memory_bytes=self._memory_bytes,
                             weight_bits=self._bits)
        generator = self._begin(prompt, desc)
        try:
            at = lib.stint_generator_logits(generator)
            return np.ctypeslib.as_array(at, (self.vocabulary,)).copy()
        finally:
            lib.stint_generator_destroy(generator)


def _is_gguf(path: str) -> bool:
    try:
        with open(path, "rb") as file:
            return file.read(4) == b"GGUF"
    except OSError:
        return False  # whoever opens it next says why


def load(path: "str | os.PathLike[str]", *, threads: int = 0, batch: int = 0,
         memory_bytes: int = 0, weights: str = "auto") -> Union[ImageModel, TextModel]:
    """A model from its file, from the folder of a run, from a folder in Hugging Face's
    layout, or from a GGUF file.

    threads: 0: every CPU; never changes a result. batch: images that go through the
    network at once; 0: as many as a call has, up to 32. memory_bytes: peak resident memory
    of the whole process; what needs more raises StintError of Status.BUDGET. weights: how a
    text model's matrices are kept, "f32", "bf16", "q8" or "q4"; "auto": as its file says.
    """
    path = os.fspath(path)
    if os.path.isfile(os.path.join(path, "config.json")) or _is_gguf(path):
        return TextModel(path, threads=threads, memory_bytes=memory_bytes, weights=weights)
    file = os.path.join(path, "model.safetensors") if os.path.isdir(path) else path
    model = ImageModel(file, threads=threads, batch=batch, memory_bytes=memory_bytes)
    if not model.is_text:
        return model
    model.close()
    return TextModel(file, threads=threads, memory_bytes=memory_bytes, weights=weights)
