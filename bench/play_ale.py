#!/usr/bin/env python3
"""Frames, rates and golden hashes beside the Arcade Learning Environment (ale-py).

    play_ale.py --golden FILE ROM...     writes tests/atari/frames_golden.h anew: chanceNN.bin and
                                         our own programs, 60 frames, action 7 * frame mod 18
    play_ale.py --frames N ROM...        plays N frames of random actions in both, compares colours
                                         and RAM frame by frame (by hashes of blocks, then one by one)

ALE takes the rules of a title by the name of a file, so each program is copied to seaquest.bin.
Needs ale-py 0.12.1 and NumPy; STINT names the program (build/release/stint). No commercial image
is read.
"""

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile

import ale_py


def ale_hash(rom, actions, keep=False):
    """Hash of getScreen and getRAM over the frames; with keep the frames themselves."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "seaquest.bin")
        with open(rom, "rb") as source, open(path, "wb") as copy:
            copy.write(source.read())
        ale = ale_py.ALEInterface()
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("random_seed", 1)
        ale.loadROM(path)
        total, frames = hashlib.sha256(), []
        for action in actions:
            if ale.game_over():
                return None, frames
            ale.act(action)
            frame = ale.getScreen().tobytes() + ale.getRAM().tobytes()
            total.update(frame)
            if keep:
                frames.append(frame)
        return total.hexdigest(), frames


def golden(path, roms):
    chance, own = [], []
    for rom in roms:
        name = os.path.splitext(os.path.basename(rom))[0]
        value = ale_hash(rom, [frame * 7 % 18 for frame in range(60)])[0]
        if value is None:
            sys.exit("%s: ALE ends its game, byte A3 of RAM is not 0" % rom)
        (chance if name.startswith("chance") else own).append((name, value))
    with open(path, "w", encoding="ascii") as out:
        out.write("/* SHA-256 of ALE's frames, see frames_test.c; written by "
                  "bench/play_ale.py --golden. */\n")
        out.write("static const char *const made[%d] = {\n" % len(chance))
        out.writelines('    "%s",\n' % value for _, value in sorted(chance))
        out.write("};\n\nstatic const struct {\n    const char *name, *golden;\n} own[] = {\n")
        out.writelines('    {"%s", "%s"},\n' % pair for pair in own)
        out.write("};\n")


def compare(rom, frames):
    """0, or the first frame that differs, from 1."""
    chance = random.Random(2600)
    actions = [chance.randrange(18) for _ in range(frames)]
    program = os.environ.get("STINT", "build/release/stint")
    with tempfile.TemporaryDirectory() as folder:
        listing = os.path.join(folder, "actions")

        def ours(count):
            with open(listing, "w", encoding="ascii") as out:
                out.writelines("%d\n" % action for action in actions[:count])
            answer = subprocess.run(
                [program, "play", "run", rom, "--game", "none", "--json", "--frames", str(count),
                 "--actions", listing], stdout=subprocess.PIPE, check=True)
            return json.loads(answer.stdout)["frames_sha256"]

        if ale_hash(rom, actions)[0] == ours(frames):
            return 0
        low, high = 0, frames  # equal up to low, different up to high
        while high - low > 1:
            middle = (low + high) // 2
            if ale_hash(rom, actions[:middle])[0] == ours(middle):
                low = middle
            else:
                high = middle
        return high


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--golden")
    parser.add_argument("--frames", type=int, default=10000)
    parser.add_argument("roms", nargs="+")
    args = parser.parse_args()
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    if args.golden:
        golden(args.golden, args.roms)
        return
    different = 0
    for rom in args.roms:
        first = compare(rom, args.frames)
        different += first > 0
        print("%-40s %d frames %s" % (rom, args.frames,
                                      "differ from frame %d on" % first if first else "equal"),
              flush=True)
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
