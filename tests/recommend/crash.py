#!/usr/bin/env python3
"""Runs that are killed, and disks whose power is cut, beside an undisturbed run.

    crash.py STINT WRITE_LOG_LIBRARY --kills 200 --cuts 200 [--seed 1]

A kill: SIGKILL at a random time of a training; then --resume to the end. Half of them are
killed again while they resume.

A power cut: a training runs under write_log.c. A random place in its log is where the power
goes. What was synced before is there; of every write behind the last sync of its file each
sector of 512 bytes is there or not, as it happens (none, all, half of them, those up to some
time); of names that were made, changed or removed since the last sync of their folder as many
as it happens, in their order. (Folders themselves are taken as there.) --resume then goes on
from such a disk; half of these runs are cut again.

In the end each must have the weights_sha256 of the undisturbed run. Prints how many were lost."""
import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

RECIPE = """[model]
name = dlrm
width = 12
bottom = 16
top = 16
[data]
format = csv
[train]
batch = 96
steps = 150
shards = 4
[optimizer]
lr = 0.005
[embedding]
optimizer = rowwise-adagrad
io = threads
cache = 200k
policy = lru
hot = 0.3
[run]
checkpoint_every = 15
keep = %d
"""
SECTOR = 512


class File:
    """Bytes that are surely there, and what was done to them since."""

    def __init__(self, data=b""):
        self.sure = bytearray(data)
        self.since = []

    @staticmethod
    def apply(data, op):
        kind, at, piece = op
        if kind == "t":
            del data[at:]
            data.extend(bytes(at - len(data)))
        else:
            if len(data) < at + len(piece):
                data.extend(bytes(at + len(piece) - len(data)))
            data[at:at + len(piece)] = piece

    def sync(self):
        for op in self.since:
            self.apply(self.sure, op)
        self.since = []

    def cut(self, how, rng):
        data = bytearray(self.sure)
        upto = rng.randrange(len(self.since) + 1)
        for i, (kind, at, piece) in enumerate(self.since):
            if how == "none" or how == "prefix" and i >= upto:
                continue
            if kind == "t" or how != "half":
                if kind == "w" or how != "half" or rng.random() < 0.5:
                    self.apply(data, (kind, at, piece))
                continue
            for k in range(0, len(piece), SECTOR):
                if rng.random() < 0.5:
                    self.apply(data, (kind, at + k, piece[k:k + SECTOR]))
        return data


class Disk:
    """The files below a folder, as programs see them and as a power cut would find them."""

    def __init__(self, folder, deaf):
        self.folder, self.open, self.deaf = folder, {}, deaf
        self.names, self.sure, self.since = {}, {}, []
        for base, _, files in os.walk(folder):
            for name in files:
                path = os.path.join(base, name)
                with open(path, "rb") as f:
                    self.names[path] = self.sure[path] = File(f.read())

    def change(self, path, file):
        if file is None:
            self.names.pop(path, None)
        else:
            self.names[path] = file
        self.since.append((path, file))

    def sync_folder(self, folder):
        rest = []
        for path, file in self.since:
            if os.path.dirname(path) == folder:
                self.apply(self.sure, path, file)
            else:
                rest.append((path, file))
        self.since = rest

    @staticmethod
    def apply(names, path, file):
        if file is None:
            names.pop(path, None)
        else:
            names[path] = file

    def do(self, op, fd, offset, path, data):
        if op == "o":
            if offset == 1:
                self.change(path, File())
            self.open[fd] = self.names.get(path, path.rstrip("/"))
            if offset == 2:
                self.names[path].since.append(("t", 0, b""))
        elif op in "wt":
            self.open[fd].since.append((op, offset, data))
        elif op == "s":
            what = self.open[fd]
            if self.deaf and what in [self.names[n] for n in self.names if "/journal-" in n]:
                return
            self.sync_folder(what) if isinstance(what, str) else what.sync()
        elif op == "r":
            file = self.names[path]
            self.since.append((path, None))
            self.names.pop(path)
            self.change(data.decode(), file)
        elif op == "u":
            self.change(path, None)

    def cut_to(self, folder, rng):
        """The files that are left, below another folder."""
        how = rng.choice(["none", "all", "half", "half", "prefix"])
        names = dict(self.sure)
        for path, file in self.since[:rng.randrange(len(self.since) + 1)]:
            self.apply(names, path, file)
        for path, file in names.items():
            to = os.path.join(folder, os.path.relpath(path, self.folder))
            os.makedirs(os.path.dirname(to), exist_ok=True)
            with open(to, "wb") as f:
                f.write(file.cut(how, rng))
        return how


def read_log(path):
    with open(path, "rb") as f:
        while head := f.readline().split():
            op, fd, offset, length, path_length = head[0].decode(), *map(int, head[1:])
            name = f.read(path_length).decode()
            yield op, fd, offset, name, f.read(length)


class Crash:
    def __init__(self, args, folder):
        self.args, self.folder = args, folder
        self.rng = random.Random(args.seed)
        self.env = dict(os.environ, XDG_CACHE_HOME=os.path.join(folder, "cache"))
        self.lost, self.checkpoints, self.undone = [], 0, 0
        subprocess.run([args.stint, "data", "clicks", "--out", "c.csv", "--rows", "9000",
                        "--fields", "3000,900,200", "--seed", "3", "-q"], cwd=folder,
                       env=self.env, check=True, stdout=subprocess.DEVNULL)
        for keep in (1, 3):
            with open(os.path.join(folder, "r%d.ini" % keep), "w") as f:
                f.write(RECIPE % keep)
        self.want = self.end("whole", 1, [])

    def command(self, out, keep, options):
        return [self.args.stint, "train", "r%d.ini" % keep, "--data", "c.csv", "--out", out,
                "--json", "-q", "-j1", *options]

    def end(self, out, keep, options):
        done = subprocess.run(self.command(out, keep, options), cwd=self.folder, env=self.env,
                              capture_output=True, text=True)
        if done.returncode != 0:
            return "exit %d: %s" % (done.returncode, done.stderr.strip())
        return json.loads(done.stdout)["weights_sha256"]

    def check(self, what, out, keep):
        self.checkpoints += bool(os.path.isdir(os.path.join(self.folder, out, "checkpoints"))
                                 and os.listdir(os.path.join(self.folder, out, "checkpoints")))
        got = self.end(out, keep, ["--resume"])
        if got != self.want:
            self.lost.append("%s: %s" % (what, got))
            print("lost:", self.lost[-1], file=sys.stderr)
        else:
            shutil.rmtree(os.path.join(self.folder, out))

    def kill(self, out, keep, options, seconds):
        run = subprocess.Popen(self.command(out, keep, options), cwd=self.folder, env=self.env,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(self.rng.uniform(0, seconds))
        run.send_signal(signal.SIGKILL)
        run.wait()

    def kills(self):
        start = time.time()
        self.end("timed", 1, [])
        seconds, done, trial = time.time() - start, 0, 0
        while done < self.args.kills:
            out, keep = "kill%d" % trial, self.rng.choice((1, 3))
            for again in range(1 + trial % 2):
                if done < self.args.kills:
                    self.kill(out, keep, ["--resume"] if again else [], seconds)
                    done += 1
            self.check("kill %d (seed %d)" % (trial, self.args.seed), out, keep)
            trial += 1

    def record(self, out, keep, options):
        log = os.path.join(self.folder, out + ".log")
        disk = Disk(os.path.join(self.folder, out), self.args.deaf)
        env = dict(self.env, LD_PRELOAD=self.args.library, WRITE_LOG=log,
                   WRITE_LOG_ROOT=disk.folder)
        done = subprocess.run(self.command(out, keep, options), cwd=self.folder, env=env,
                              capture_output=True, text=True)
        if self.args.deaf or done.returncode == 0 and json.loads(done.stdout)["weights_sha256"] == self.want:
            ops = list(read_log(log))
            os.remove(log)
            if not any(op[0] == "s" for op in ops):
                sys.exit("nothing was written down; is %s built as it should be?"
                         % self.args.library)
            return disk, ops
        self.lost.append("%s: %s" % (out, done.stderr.strip() or "other weights"))
        return None

    def cut(self, recorded, at, out):
        """recorded: Disk and ops, of which those up to `at` were done already."""
        disk, ops, done = recorded
        for op in ops[done:at]:
            disk.do(*op)
        return disk.cut_to(os.path.join(self.folder, out), self.rng)

    def cuts(self):
        left = self.args.cuts
        for keep in (1, 3):
            name = "cut%d" % keep
            recorded = self.record(name, keep, [])
            if not recorded:
                return
            shutil.rmtree(os.path.join(self.folder, name))
            count = left // 2 if keep == 1 else left - left // 2
            firsts = (2 * count + 2) // 3  # every second one is cut again
            done = 0
            for i, at in enumerate(sorted(self.rng.randrange(len(recorded[1]) + 1)
                                          for _ in range(firsts))):
                out = "%s-%d" % (name, i)
                how = self.cut((*recorded, done), at, out)
                done = at
                what = "cut %s %d at %d (%s, seed %d)" % (name, i, at, how, self.args.seed)
                if i % 2 and count > firsts + i // 2:
                    again = self.record(out, keep, ["--resume"])
                    if not again:
                        print("lost:", what, self.lost[-1], file=sys.stderr)
                        continue
                    # Sooner rather than later: while the table is taken back.
                    second = int(len(again[1]) * self.rng.random() ** 3)
                    shutil.rmtree(os.path.join(self.folder, out))
                    out += "-again"
                    how = self.cut((*again, 0), second, out)
                    what += ", again at %d (%s)" % (second, how)
                    self.undone += 1
                self.check(what, out, keep)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("stint")
    parser.add_argument("library", help="write_log.c, built")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--cuts", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--deaf", action="store_true",
                        help="a disk that does not heed syncs of journals: some must be lost")
    args = parser.parse_args()
    args.stint, args.library = os.path.abspath(args.stint), os.path.abspath(args.library)
    folder = os.path.realpath(tempfile.mkdtemp(prefix="stint-crash-"))
    try:
        crash = Crash(args, folder)
        if len(crash.want) != 64:
            sys.exit("the undisturbed run failed: " + crash.want)
        crash.kills()
        crash.cuts()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print("%d kills and %d power cuts (%d of them of a run that resumed): %d lost; %d went on "
          "from a checkpoint" % (args.kills, args.cuts, crash.undone, len(crash.lost),
                                 crash.checkpoints))
    sys.exit(bool(crash.lost) != args.deaf)


main()
