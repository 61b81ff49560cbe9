"""Stint's vector environment for Python: one file, ctypes and NumPy.

    import stint_env
    envs = stint_env.VectorEnv("rally.bin", 64, game="none",
                               reward="ram:0x81-ram:0x80", done="ram:0x81==21")
    observations, info = envs.reset(seed=1)
    observations, rewards, terminations, truncations, info = envs.step(actions)
    envs.close()

It has the calls of gymnasium.vector.VectorEnv (in its next-step mode: the step behind an
episode's end begins the next one), and is one where gymnasium is installed. Observations
are uint8 [envs, stack, height, width]. send() and recv() hand actions to some
environments and take the first that are ready, as EnvPool does.

The library is libstint.so: beside this file, where STINT_LIBRARY says, or where the
loader finds it.
"""
import ctypes
import os

import numpy as np

try:
    import gymnasium
    _Base = gymnasium.vector.VectorEnv
except ImportError:
    gymnasium = None
    _Base = object


class _Desc(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_char_p), ("envs", ctypes.c_int64), ("seed", ctypes.c_uint64),
        ("threads", ctypes.c_int), ("rom", ctypes.c_char_p), ("game", ctypes.c_char_p),
        ("reward", ctypes.c_char_p), ("lives", ctypes.c_char_p),
        ("done", ctypes.c_char_p), ("actions", ctypes.c_char_p), ("frameskip", ctypes.c_int), ("stack", ctypes.c_int),
        ("size", ctypes.c_int), ("observe", ctypes.c_char_p),
        ("sticky", ctypes.c_double), ("noop_max", ctypes.c_int),
        ("fire_reset", ctypes.c_bool), ("episodic_life", ctypes.c_bool),
        ("clip_reward", ctypes.c_bool), ("max_frames", ctypes.c_int64)]


class _Facts(ctypes.Structure):
    _fields_ = [
        ("kind", ctypes.c_char_p), ("envs", ctypes.c_int64), ("actions", ctypes.c_int),
        ("stack", ctypes.c_int), ("height", ctypes.c_int), ("width", ctypes.c_int),
        ("frameskip", ctypes.c_int), ("observation_bytes", ctypes.c_size_t),
        ("state_bytes", ctypes.c_size_t), ("env_bytes", ctypes.c_size_t),
        ("identity", ctypes.c_char * 65)]


class _Result(ctypes.Structure):
    _fields_ = [("reward", ctypes.c_void_p), ("ended", ctypes.c_void_p),
                ("truncated", ctypes.c_void_p), ("lives", ctypes.c_void_p)]


class _Ready(ctypes.Structure):
    _fields_ = [("env", ctypes.c_void_p), ("result", _Result)]


class Error(RuntimeError):
    """A call that failed: the library's words, and its status."""

    def __init__(self, status, text):
        super().__init__(text)
        self.status = status


def _load():
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libstint.so")
    path = os.environ.get("STINT_LIBRARY") or (here if os.path.exists(here) else "libstint.so")
    library = ctypes.CDLL(path)
    pointer, i64 = ctypes.c_void_p, ctypes.c_int64
    for name, result, arguments in (
            ("stint_last_error", ctypes.c_char_p, []),
            ("stint_env_open", ctypes.c_int, [pointer, pointer]),
            ("stint_env_close", None, [pointer]),
            ("stint_env_describe", ctypes.POINTER(_Facts), [pointer]),
            ("stint_env_reset", ctypes.c_int, [pointer, pointer, pointer]),
            ("stint_env_step", ctypes.c_int, [pointer, pointer, pointer]),
            ("stint_env_send", ctypes.c_int, [pointer, i64, pointer, pointer]),
            ("stint_env_recv", ctypes.c_int, [pointer, i64, i64, pointer, pointer]),
            ("stint_env_observe", None, [pointer, pointer]),
            ("stint_env_frame", pointer, [pointer, i64, ctypes.c_int]),
            ("stint_env_ram", pointer, [pointer, i64]),
            ("stint_env_save", None, [pointer, i64, pointer]),
            ("stint_env_load", ctypes.c_int, [pointer, i64, pointer])):
        call = getattr(library, name)
        call.restype, call.argtypes = result, arguments
    return library


_library = None


def _call(name, *arguments):
    global _library
    if _library is None:
        _library = _load()
    return getattr(_library, name)(*arguments)


def _check(status):
    if status != 0:
        raise Error(status, _call("stint_last_error").decode())


def _address(array):
    return array.ctypes.data


class VectorEnv(_Base):
    """Many environments, stepped together. Keywords are the fields of stint_env_desc
    (include/stint/env.h): game, reward, lives, done, actions, frameskip, stack, observe ("frames"
    or "ram"), sticky, noop_max, fire_reset, episodic_life, clip_reward, max_frames,
    seed, threads, kind."""

    metadata = {"autoreset_mode": "next_step"}

    def __init__(self, rom=None, num_envs=1, **keywords):
        self._env = None
        texts = {"kind", "game", "reward", "lives", "done", "actions", "observe"}
        known = {name for name, _ in _Desc._fields_} - {"rom", "envs"}
        for name in keywords:
            if name not in known:
                raise TypeError(f"no option '{name}'; there are {', '.join(sorted(known))}")
        desc = _Desc(rom=os.fsencode(rom) if rom is not None else None, envs=num_envs)
        for name, value in keywords.items():
            setattr(desc, name, value.encode() if name in texts and value is not None else value)
        env = ctypes.c_void_p()
        _check(_call("stint_env_open", ctypes.byref(desc), ctypes.byref(env)))
        self._env = env
        facts = _call("stint_env_describe", env).contents
        self.num_envs, self.actions = facts.envs, facts.actions
        self.identity, self.state_bytes = facts.identity.decode(), facts.state_bytes
        self.observation_shape = (facts.stack, facts.height, facts.width)
        self._reward = np.zeros(num_envs, np.float32)
        self._flags = np.zeros((2, num_envs), np.uint8)
        self._lives = np.zeros(num_envs, np.int32)
        if gymnasium is not None:
            spaces = gymnasium.spaces
            self.single_observation_space = spaces.Box(0, 255, self.observation_shape, np.uint8)
            self.single_action_space = spaces.Discrete(self.actions)
            batch = gymnasium.vector.utils.batch_space
            self.observation_space = batch(self.single_observation_space, num_envs)
            self.action_space = batch(self.single_action_space, num_envs)

    def _observe(self):
        out = np.empty((self.num_envs, *self.observation_shape), np.uint8)
        _call("stint_env_observe", self._env, _address(out))
        return out

    def _result(self):
        return _Result(_address(self._reward), _address(self._flags[0]),
                       _address(self._flags[1]), _address(self._lives))

    def _taken(self, count=None):
        reward, lives = self._reward[:count].copy(), self._lives[:count].copy()
        ended, truncated = self._flags[:, :count].astype(bool)
        return reward, ended, truncated, lives

    def reset(self, *, seed=None, options=None):
        """Begin new episodes: of all, or of those that options["reset_mask"] says. seed:
        one number, from which each environment's is made, or one each."""
        mask = (options or {}).get("reset_mask")
        if mask is not None:
            mask = np.ascontiguousarray(mask, np.uint8)
        seeds = None
        if seed is not None:
            seeds = np.asarray(seed, np.uint64)
            if seeds.ndim == 0:
                seeds = np.full(self.num_envs, seeds, np.uint64)
            seeds = np.ascontiguousarray(seeds)
        for name, array in (("reset_mask", mask), ("seed", seeds)):
            if array is not None and array.shape != (self.num_envs,):
                raise ValueError(f"{name}: {self.num_envs} are wanted, got {array.shape}")
        _check(_call("stint_env_reset", self._env,
                     None if mask is None else _address(mask),
                     None if seeds is None else _address(seeds)))
        return self._observe(), {}

    def step(self, actions):
        """One step of all: observations, rewards, terminations, truncations, info."""
        actions = np.ascontiguousarray(actions, np.int32)
        if actions.shape != (self.num_envs,):
            raise ValueError(f"{self.num_envs} actions are wanted, got {actions.shape}")
        _check(_call("stint_env_step", self._env, _address(actions),
                     ctypes.byref(self._result())))
        reward, ended, truncated, lives = self._taken()
        return self._observe(), reward, ended, truncated, {"lives": lives}

    def send(self, envs, actions):
        """Hand an action to each of these environments, and go on."""
        envs = np.ascontiguousarray(envs, np.int32)
        actions = np.ascontiguousarray(actions, np.int32)
        if envs.ndim != 1 or envs.shape != actions.shape:
            raise ValueError("an action for each environment is wanted")
        _check(_call("stint_env_send", self._env, len(envs), _address(envs), _address(actions)))

    def recv(self, least=1, most=None):
        """Wait for at least so many: numbers of environments, observations, rewards,
        terminations, truncations, info."""
        envs = np.zeros(self.num_envs, np.int32)
        count = ctypes.c_int64()
        ready = _Ready(_address(envs), self._result())
        most = self.num_envs if most is None else min(most, self.num_envs)
        _check(_call("stint_env_recv", self._env, least, most, ctypes.byref(ready),
                     ctypes.byref(count)))
        envs = envs[:count.value]
        reward, ended, truncated, lives = self._taken(count.value)
        return envs, self._stacks(envs), reward, ended, truncated, {"lives": lives}

    def _stacks(self, envs):
        stack, height, width = self.observation_shape
        out = np.empty((len(envs), stack, height, width), np.uint8)
        for k, i in enumerate(envs):
            for age in range(stack):
                at = _call("stint_env_frame", self._env, int(i), age)
                ctypes.memmove(out[k, stack - 1 - age].ctypes.data, at, height * width)
        return out

    def ram(self, env):
        """The console's 128 bytes of RAM (of a chain its state), a copy."""
        self._range(env)
        at = _call("stint_env_ram", self._env, env)
        size = 1 if self.observation_shape[2] == 8 else 128
        return np.frombuffer(ctypes.string_at(at, size), np.uint8)

    def save(self, env):
        """All that the future of an environment depends on, as bytes."""
        self._range(env)
        out = ctypes.create_string_buffer(self.state_bytes)
        _call("stint_env_save", self._env, env, out)
        return out.raw

    def load(self, env, state):
        """Back to where an environment was saved, of the same image and rules."""
        self._range(env)
        if len(state) != self.state_bytes:
            raise ValueError(f"a state has {self.state_bytes} bytes, got {len(state)}")
        _check(_call("stint_env_load", self._env, env, state))

    def _range(self, env):
        if not 0 <= env < self.num_envs:
            raise IndexError(f"environment {env}: 0 to {self.num_envs - 1} are there")

    def close(self, **keywords):
        """Free all of it; more than once is fine."""
        if self._env is not None:
            _call("stint_env_close", self._env)
            self._env = None

    def __del__(self):
        self.close()
