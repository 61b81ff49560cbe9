#!/usr/bin/env python3
"""Our vector environments beside the Arcade Learning Environment's (ale-py).

    play_vector.py --equal [--envs 64] [--steps 20000] [--threads 2]
        observations, rewards, ends and lives of the same actions, step by step. The programs are
        recipes/roms/rally.asm and bricks.asm, assembled (by dasm) with their points where the rules
        of pong and breakout look for them, since ALE knows titles only.
    play_vector.py --speed [--envs 64] [--seconds 5] [--threads 1] [--pairs 3] [ROM...]
        raw frames a second, skip 4, random actions after 1,000 frames each, in turns, each ROM as
        seaquest; by default eight of our programs; ratios pair by pair, and their median

Needs ale-py 0.12.1, NumPy and bindings/stint_env.py's library (STINT_LIBRARY). An observation at
the end of an episode is not compared: ALE shows what was seen two frames before, ours what was
drawn last.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time

import ale_py
import numpy as np
from ale_py._ale_py import ALEVectorInterface

HERE = os.path.dirname(os.path.abspath(__file__))
ROMS = os.path.join(HERE, "..", "recipes", "roms")
sys.path.insert(0, os.path.join(HERE, "..", "bindings"))
import stint_env  # noqa: E402

EIGHT = ["rally", "bricks", "mapper-4k", "mapper-f8", "mapper-f6sc", "mapper-e0", "mapper-3f",
         "mapper-dpc"]


class Ale:
    """ALE's vector environment with the calls of ours."""

    def __init__(self, rom, envs, threads, **options):
        self.envs = envs
        self.vector = ALEVectorInterface(rom_path=rom, num_envs=envs, num_threads=threads,
                                         **options)
        self.actions = len(self.vector.get_action_set())
        self.strength = [1.0] * envs

    def reset(self):
        return self.vector.reset(list(range(self.envs)), list(range(1, self.envs + 1)))[0]

    def step(self, actions):
        self.vector.send(actions.tolist(), self.strength)
        return self.vector.recv()


def assemble(folder, source, name, define):
    path = os.path.join(folder, name + ".bin")
    subprocess.run(["dasm", source + ".asm", "-f3", "-D%s=1" % define, "-o" + path], cwd=ROMS,
                   check=True, stdout=subprocess.DEVNULL)
    return path


def compare(path, title, envs, steps, threads, episodic_life):
    """Counts of what differs: observations beyond one grey level, rewards, ends, lives."""
    ours = stint_env.VectorEnv(path, envs, game=title, noop_max=1, threads=threads,
                               episodic_life=episodic_life, max_frames=20000)
    peer = Ale(path, envs, threads, noop_max=1, use_fire_reset=False, reward_clipping=False,
               episodic_life=episodic_life, max_episode_steps=20000)
    chance = np.random.default_rng(7)
    a, b = ours.reset()[0], peer.reset()
    count = dict(steps=0, pixels=0, off=0, differ=0, rewards=0, ends=0, episodes=0, lives=0)
    hidden = np.zeros((envs, 4), bool)  # observations that are not compared, oldest first
    for _ in range(steps):
        away = np.abs(a.astype(np.int16) - b)
        away[hidden] = 0
        count["off"] += int((away > 0).sum())
        count["differ"] += int((away > 1).sum())
        count["pixels"] += away.size
        actions = chance.integers(0, peer.actions, envs)
        a, reward, ended, cut, info = ours.step(actions)
        b, peer_reward, peer_ended, peer_cut, peer_info = peer.step(actions)
        over = ended | cut
        count["rewards"] += int((reward != peer_reward).sum())
        count["ends"] += int(((ended != peer_ended) | (cut != peer_cut)).sum())
        count["lives"] += int((info["lives"] != peer_info["lives"]).sum())
        count["episodes"] += int(over.sum())
        count["steps"] += envs
        hidden = np.concatenate([hidden[:, 1:], over[:, None]], 1)
    ours.close()
    return count


def equal(args):
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        for source, title, define in (("rally", "pong", "PONG"), ("bricks", "breakout", "BREAKOUT")):
            path = assemble(folder, source, title, define)
            for episodic_life in (False, True) if title == "breakout" else (False,):
                c = compare(path, title, args.envs, args.steps, args.threads, episodic_life)
                print("%s as %s%s: %d steps of %d environments, %d episodes; rewards that differ "
                      "%d, ends %d, lives %d; pixels off by one %.4f %%, by more %d" %
                      (source, title, ", a life an episode" if episodic_life else "", args.steps,
                       args.envs, c["episodes"], c["rewards"], c["ends"], c["lives"],
                       100.0 * (c["off"] - c["differ"]) / c["pixels"], c["differ"]), flush=True)
                failed |= c["rewards"] + c["ends"] + c["lives"] + c["differ"] > 0
    return failed


def rate(env, actions_of, seconds):
    """Raw frames, and those for a second of a CPU: what counts where others run, too."""
    frames, start, cpu = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - start < seconds:
        actions = actions_of()
        env.step(actions)
        frames += 4 * len(actions)
    return (frames / (time.perf_counter() - start), frames / (time.process_time() - cpu))


def speed(args):
    chance = np.random.default_rng(1)

    def draw():
        return chance.integers(0, 18, args.envs)
    roms = args.roms or [os.path.join(ROMS, name + ".bin") for name in EIGHT]
    ratios, rates = [], []
    for rom in roms:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "seaquest.bin")
            with open(rom, "rb") as source, open(path, "wb") as copy:
                copy.write(source.read())
            ours = stint_env.VectorEnv(path, args.envs, game="seaquest", threads=args.threads)
            peer = Ale(path, args.envs, args.threads, use_fire_reset=False)
            ours.reset()
            peer.reset()
            for _ in range(args.warm):  # consoles that do not march in step
                actions = draw()
                ours.step(actions)
                peer.step(actions)
            pairs = [(rate(ours, draw, args.seconds), rate(peer, draw, args.seconds))
                     for _ in range(args.pairs)]
            ours.close()
        ratio = statistics.median(a[0] / b[0] for a, b in pairs)
        of_cpu = statistics.median(a[1] / b[1] for a, b in pairs)
        ratios.append((ratio, of_cpu))
        rates.append(statistics.median(a[0] for a, _ in pairs))
        print("%-16s ours %6.0f raw frames/s, ALE %6.0f; x %.2f; a CPU second %6.0f and %6.0f, "
              "x %.2f" % (os.path.basename(rom), rates[-1], statistics.median(b[0] for _, b in pairs),
                          ratio, statistics.median(a[1] for a, _ in pairs),
                          statistics.median(b[1] for _, b in pairs), of_cpu), flush=True)
    print("median of %d programs, %d environments, %d threads: %.0f raw frames/s, x %.2f; by CPU "
          "time x %.2f" % (len(roms), args.envs, args.threads, statistics.median(rates),
                           statistics.median(r for r, _ in ratios),
                           statistics.median(c for _, c in ratios)))
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--equal", action="store_true")
    parser.add_argument("--speed", action="store_true")
    parser.add_argument("--envs", type=int, default=64)
    parser.add_argument("--steps", type=int, default=20000)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--warm", type=int, default=250)
    parser.add_argument("roms", nargs="*")
    args = parser.parse_args()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    if args.equal == args.speed:
        parser.error("--equal or --speed")
    sys.exit(equal(args) if args.equal else speed(args))


if __name__ == "__main__":
    main()
