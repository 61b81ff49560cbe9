#!/usr/bin/env python3
"""Rewards, lives and ends of the titles beside the Arcade Learning Environment (ale-py).

    play_titles.py [--steps N] [--timeout S] [TITLE...]
    play_titles.py --golden FILE           writes tests/atari/titles_golden.h anew, 150 steps each

A program of our own that leaves RAM alone stands in for each title, and RAM is poked: bytes by
chance, digits, the values that titles look for. While SELECT is pressed it counts all of RAM up,
since titles with modes press it until a byte equals the mode. Both sides boot it as the title is
booted; each step is a frame. Needs ale-py 0.12.1; BENCH names play_titles_bench
(build/release/bench/play_titles_bench). No commercial image is read.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile

TITLES = """adventure air_raid alien amidar assault asterix asteroids atlantis bank_heist
battle_zone beam_rider berzerk bowling boxing breakout carnival centipede chopper_command
crazy_climber defender demon_attack double_dunk elevator_action enduro fishing_derby freeway
frostbite gopher gravitar hero ice_hockey jamesbond journey_escape kaboom kangaroo krull
kung_fu_master montezuma_revenge ms_pacman name_this_game phoenix pitfall pong pooyan private_eye
qbert riverraid road_runner robotank seaquest skiing solaris space_invaders star_gunner tennis
time_pilot tutankham up_n_down venture video_pinball wizard_of_wor yars_revenge zaxxon""".split()


# By which of these programs a title can be started depends on it: (counts while SELECT is not
# pressed, what RAM is filled with at power on; -1: it stays by chance; 256: each byte with half
# its address).
KINDS = [(0, -1), (1, -1), (0, 0), (1, 0), (0, 0x11), (1, 0x11), (0, 0x5A), (1, 0x5A), (0, 0xC3),
         (1, 0xC3), (1, 256)]


FLAGS = [0, 1, 0xFF, 0x80, 5]
VALUES = [0, 1, 2, 5, 0x0A, 0xFF, 0x80, 0xA0]


def image(idle, fill):
    """Counts RAM up by one a frame with SELECT pressed, by `idle` a frame without."""
    code = bytearray()

    def emit(*data):
        code.extend(data)

    def count():
        emit(0xA2, 0x80)                   # ldx #80
        emit(0xF6, 0x00, 0xE8, 0xD0, 0xFB)  # inc 0,x; inx; bne
    emit(0x78, 0xD8)
    if fill == 256:
        emit(0xA2, 0x80, 0x8A, 0x4A, 0x95, 0x00, 0xE8, 0xD0, 0xF9)  # txa; lsr; sta 0,x; inx; bne
    elif fill >= 0:
        emit(0xA9, fill, 0xA2, 0x80, 0x95, 0x00, 0xE8, 0xD0, 0xFB)  # sta 0,x; inx; bne
    frame = len(code)
    emit(0xA9, 2, 0x85, 0, 0x85, 2, 0x85, 2, 0x85, 2, 0xA9, 0, 0x85, 0)  # VSYNC
    emit(0xAD, 0x82, 0x02, 0x29, 0x02)     # lda SWCHB; and #2
    if idle:
        count()
    else:
        emit(0xD0, 7)                      # bne over the counting
        count()
    emit(0xA0, 220, 0x85, 2, 0x88, 0xD0, 0xFB)  # lines
    emit(0x4C, frame, 0xF0)
    rom = bytearray([0xEA] * 4096)
    rom[:len(code)] = code
    rom[0xFFC:0xFFE] = b"\x00\xF0"
    return bytes(rom)


class Chance:
    """Marsaglia's xorshift of 32 bits; tests/atari/titles_test.c has the same."""

    def __init__(self, seed):
        self.state = seed

    def __call__(self, below):
        self.state ^= self.state << 13 & 0xFFFFFFFF
        self.state ^= self.state >> 17
        self.state ^= self.state << 5 & 0xFFFFFFFF
        return self.state % below


def bytes_by_chance(chance, base):
    """All by chance, or digits of base ten and flags, or a few changes of what was there."""
    kind = chance(10)
    if kind < 3:
        return [chance(256) for _ in range(128)]
    if kind < 6:
        return [chance(10) << 4 | chance(10) if chance(10) < 7 else FLAGS[chance(5)]
                for _ in range(128)]
    base = list(base)
    for _ in range(1 + chance(5)):
        at, what = chance(128), chance(9)
        base[at] = VALUES[what] if what < 8 else chance(256)
    return base


def ale_side(ale, idle, title, steps):
    """The records for our side, and what ALE says of each frame."""
    chance = Chance(1 + TITLES.index(title))
    records, answers = [], []
    base, start = [0] * 128, None
    while len(answers) < steps:
        if ale.game_over():
            if start is None:
                sys.exit(3)
            ale.restoreState(start)
            records.append(bytes([2]) + bytes(128))
        if start is None:
            start = ale.cloneState()
            records.append(bytes([1]) + bytes(128))
        base = bytes_by_chance(chance, base)
        poked = [(value - idle) & 255 for value in base]
        for at, value in enumerate(poked):
            ale.setRAM(at, value)
        records.append(bytes([0]) + bytes(poked))
        reward = ale.act(0)
        answers.append((int(reward), ale.lives(), int(ale.game_over())))
    return b"".join(records), answers


def one(title, kind, steps, golden):
    import ale_py
    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    program = os.environ.get("BENCH", "build/release/bench/play_titles_bench")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, title + ".bin")
        with open(path, "wb") as out:
            out.write(image(*KINDS[kind]))
        ale = ale_py.ALEInterface()
        ale.setFloat("repeat_action_probability", 0.0)
        ale.setInt("random_seed", 1)
        ale.loadROM(path)
        records, answers = ale_side(ale, KINDS[kind][0], title, steps)
        said = "" if golden else subprocess.run([program, title, path], input=records, stdout=subprocess.PIPE,
                              check=True).stdout.decode().split("\n")
    ours = [tuple(int(word) for word in line.split()) for line in said if line]
    if golden:
        told = "".join("%d %d %d\n" % answer for answer in answers)
        print('    {"%s", %d, "%s"},' % (title, kind, hashlib.sha256(told.encode()).hexdigest()))
        sys.exit(0)
    wrong = [i for i in range(steps) if ours[i] != answers[i]]
    text = "%-18s %d steps, %d ends, %d rewards, %d differ" % (
        title, steps, sum(answer[2] for answer in answers),
        sum(answer[0] != 0 for answer in answers), len(wrong))
    if wrong:
        text += "; step %d: ours %s, ALE's %s" % (wrong[0], ours[wrong[0]], answers[wrong[0]])
    print(text, flush=True)
    sys.exit(1 if wrong else 0)


def try_kinds(args, title, more):
    """(1 where it failed or 0, what was said) with the first program that can be started."""
    for kind in range(len(KINDS)):
        command = [sys.executable, __file__, "--kind", str(kind), "--steps", str(args.steps),
                   title] + more
        try:
            run = subprocess.run(command, timeout=args.timeout, check=False,
                                 stdout=subprocess.PIPE)
        except subprocess.TimeoutExpired:
            continue
        if run.returncode in (0, 1):
            if not more:
                print(run.stdout.decode(), end="", flush=True)
            return run.returncode, run.stdout.decode()
    print("%-18s cannot be started with a program of our own" % title, file=sys.stderr)
    return 1, ""


def write_golden(args):
    args.steps = 150
    rows = [try_kinds(args, title, ["--golden", "-"]) for title in TITLES]
    with open(args.golden, "w", encoding="ascii") as out:
        out.write("/* Title, program that it is booted with, SHA-256 of what ALE says of 150 "
                  "frames,\n * see titles_test.c; written by bench/play_titles.py --golden. */\n")
        out.write("static const struct {\n    const char *name;\n    int kind;\n"
                  "    const char *golden;\n} titles[] = {\n")
        out.writelines(text for _, text in rows)
        out.write("};\n")
    return any(failed for failed, _ in rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--golden")
    parser.add_argument("--kind", type=int, help=argparse.SUPPRESS)
    parser.add_argument("titles", nargs="*")
    args = parser.parse_args()
    if args.kind is not None:
        one(args.titles[0], args.kind, args.steps, args.golden)
    if args.golden:
        sys.exit(write_golden(args))
    failed = sum(try_kinds(args, title, [])[0] for title in args.titles or TITLES)
    print("%d titles, %d not equal" % (len(args.titles or TITLES), failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
