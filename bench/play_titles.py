#!/usr/bin/env python3
"""Rewards, lives and ends of the titles beside the Arcade Learning Environment (ale-py).

    play_titles.py [--steps N] [--timeout S] [TITLE...]

A program of our own that leaves RAM alone stands in for each title, and RAM is poked: bytes by
chance, digits, the values that titles look for. While SELECT is pressed it counts all of RAM up,
since titles with modes press it until a byte equals the mode. Both sides boot it as the title is
booted; each step is a frame. Needs ale-py 0.12.1; BENCH names play_titles_bench
(build/release/bench/play_titles_bench). No commercial image is read.
"""

import argparse
import os
import random
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
# pressed, what RAM is filled with at power on; -1: it stays by chance).
KINDS = [(0, -1), (1, -1), (0, 0), (1, 0), (0, 0x11), (1, 0x11), (0, 0x5A), (1, 0x5A), (0, 0xC3),
         (1, 0xC3)]


def image(idle, fill):
    """Counts RAM up by one a frame with SELECT pressed, by `idle` a frame without."""
    code = bytearray()

    def emit(*data):
        code.extend(data)

    def count():
        emit(0xA2, 0x80)                   # ldx #80
        emit(0xF6, 0x00, 0xE8, 0xD0, 0xFB)  # inc 0,x; inx; bne
    emit(0x78, 0xD8)
    if fill >= 0:
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


def bytes_by_chance(chance, base):
    kind = chance.random()
    if kind < 0.3:
        return [chance.randrange(256) for _ in range(128)]
    if kind < 0.6:  # digits of base ten, and what flags are
        return [(chance.randrange(10) << 4 | chance.randrange(10)) if chance.random() < 0.7
                else chance.choice([0, 1, 0xFF, 0x80, 5]) for _ in range(128)]
    base = list(base)
    for _ in range(chance.randrange(1, 6)):
        base[chance.randrange(128)] = chance.choice(
            [0, 1, 2, 5, 0x0A, 0xFF, 0x80, 0xA0, chance.randrange(256)])
    return base


def ale_side(ale, idle, title, steps):
    """The records for our side, and what ALE says of each frame."""
    chance = random.Random(title)
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


def one(title, kind, steps):
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
        said = subprocess.run([program, title, path], input=records, stdout=subprocess.PIPE,
                              check=True).stdout.decode().split("\n")
    ours = [tuple(int(word) for word in line.split()) for line in said if line]
    wrong = [i for i in range(steps) if ours[i] != answers[i]]
    text = "%-18s %d steps, %d ends, %d rewards, %d differ" % (
        title, steps, sum(answer[2] for answer in answers),
        sum(answer[0] != 0 for answer in answers), len(wrong))
    if wrong:
        text += "; step %d: ours %s, ALE's %s" % (wrong[0], ours[wrong[0]], answers[wrong[0]])
    print(text, flush=True)
    sys.exit(1 if wrong else 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=10000)
    parser.add_argument("--timeout", type=float, default=120)
    parser.add_argument("--kind", type=int, help=argparse.SUPPRESS)
    parser.add_argument("titles", nargs="*")
    args = parser.parse_args()
    if args.kind is not None:
        one(args.titles[0], args.kind, args.steps)
    failed = 0
    for title in args.titles or TITLES:
        for kind in range(len(KINDS)):
            command = [sys.executable, __file__, "--kind", str(kind), "--steps", str(args.steps),
                       title]
            try:
                code = subprocess.run(command, timeout=args.timeout, check=False).returncode
            except subprocess.TimeoutExpired:
                code = None
            if code in (0, 1):
                failed += code
                break
        else:
            print("%-18s cannot be started with a program of our own" % title, flush=True)
            failed += 1
    print("%d titles, %d not equal" % (len(args.titles or TITLES), failed))
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
