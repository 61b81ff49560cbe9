#!/usr/bin/env python3
"""Frames, rates and golden hashes beside the Arcade Learning Environment (ale-py).

    play_ale.py --golden FILE ROM...     writes tests/atari/frames_golden.h anew: chanceNN.bin and
                                         our own programs, 60 frames, action 7 * frame mod 18
    play_ale.py --frames N ROM...        plays N frames of random actions in both, compares colours
                                         and RAM frame by frame (by hashes of blocks, then one by one)

ALE takes the rules of a title by the name of a file, so each program is copied to seaquest.bin, or
to that of a title without modes by whose rules it ends least often. An ended game begins anew.
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


TITLES = ["seaquest", "qbert", "enduro", "asterix", "boxing", "riverraid", "venture"]


def ale_hash(rom, actions, title="seaquest"):
    """Hash of getScreen and getRAM over the frames, and how many games ended."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, title + ".bin")
        with open(rom, "rb") as source, open(path, "wb") as copy:
            copy.write(source.read())
        ale = ale_py.ALEInterface()
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("random_seed", 1)
        ale.loadROM(path)
        total, ended = hashlib.sha256(), 0
        for action in actions:
            if ale.game_over():
                ended += 1
                ale.reset_game()
            ale.act(action)
            total.update(ale.getScreen())
            total.update(ale.getRAM())
        return total.hexdigest(), ended


def golden(path, roms):
    chance, own = [], []
    for rom in roms:
        name = os.path.splitext(os.path.basename(rom))[0]
        value, ended = ale_hash(rom, [frame * 7 % 18 for frame in range(60)])
        if ended:
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


def our_run(rom, title, actions, folder):
    """What stint play run says."""
    listing = os.path.join(folder, "actions")
    with open(listing, "w", encoding="ascii") as out:
        out.writelines("%d\n" % action for action in actions)
    answer = subprocess.run(
        [os.environ.get("STINT", "build/release/stint"), "play", "run", rom, "--game", title,
         "--json", "--frames", str(len(actions)), "--actions", listing],
        stdout=subprocess.PIPE, check=True)
    return json.loads(answer.stdout)


def quietest(rom, actions, folder):
    """The title by whose rules the fewest games end."""
    def ends(title):
        try:
            return our_run(rom, title, actions[:3000], folder)["episodes"]
        except subprocess.CalledProcessError:
            return len(actions)
    best = None
    for title in TITLES:
        count = ends(title)
        if best is None or count < best[0]:
            best = (count, title)
        if count == 0:
            break
    return best[1]


def compare(rom, frames):
    """The title, and 0 or the first frame that differs, from 1."""
    chance = random.Random(2600)
    actions = [chance.randrange(18) for _ in range(frames)]
    with tempfile.TemporaryDirectory() as folder:
        title = quietest(rom, actions, folder)

        def same(count):
            return (ale_hash(rom, actions[:count], title)[0] ==
                    our_run(rom, title, actions[:count], folder)["frames_sha256"])

        if same(frames):
            return title, 0
        low, high = 0, frames  # equal up to low, different up to high
        while high - low > 1:
            middle = (low + high) // 2
            if same(middle):
                low = middle
            else:
                high = middle
        return title, high


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
        title, first = compare(rom, args.frames)
        different += first > 0
        print("%-32s as %-9s %d frames %s" %
              (os.path.basename(rom), title, args.frames,
               "differ from frame %d on" % first if first else "equal"), flush=True)
    print("%d programs, %d differ" % (len(args.roms), different))
    sys.exit(1 if different else 0)


if __name__ == "__main__":
    main()
