"""Mutated models, checkpoints and texts: each is accepted (0) or refused as bad input (4),
within a second of CPU time for each megabyte, and never by a sanitizer.

    mutated.py STINT FOLDER FILES TEXTS SEED

Makes a run of its own in FOLDER; half of FILES are models, half checkpoints."""
import os
import random
import resource
import shutil
import struct
import subprocess
import sys
import zlib

STINT, FOLDER = os.path.abspath(sys.argv[1]), sys.argv[2]
FILES, TEXTS, SEED = int(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5])
SECONDS = float(os.environ.get("MUTATED_SECONDS", "1"))  # to start with, and a megabyte
os.chdir(FOLDER)
rng = random.Random(SEED)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(size):
    rows = b"".join(b"\0" + rng.randbytes(size) for _ in range(size))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">II", size, size) + bytes([8, 0, 0, 0, 0]))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def make_run():
    for split in ("train", "test"):
        for name in ("a", "b"):
            os.makedirs("img/%s/%s" % (split, name))
            for i in range(4):
                with open("img/%s/%s/%d.png" % (split, name, i), "wb") as f:
                    f.write(png(12))
    with open("r.ini", "w") as f:
        f.write("[model]\nname = smallcnn\n[data]\npath = img\n[train]\nbatch = 4\nshards = 1\nepochs = 2\n")
    subprocess.run([STINT, "train", "r.ini", "-o", "run", "-q"], check=True)


def edge():
    return rng.choice([0, 1, 127, 128, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 2**64 - 1])


def head_of(data):
    """Most of what a reader of tensors decides on is in the head, most bytes are weights."""
    return 8 + int.from_bytes(data[:8], "little")


def mutate(data, words, head=1 << 60):
    """One to four changes of the kinds that find faults in readers."""
    data = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(min(head, len(data)) if rng.random() < 0.8 else len(data)) if data else 0
        way = rng.randrange(7)
        if way == 0:
            data[at:at + 1] = bytes([rng.randrange(256)])
        elif way == 1:
            data[at:at + 8] = struct.pack("<Q", edge())
        elif way == 2:
            del data[at:at + rng.choice([1, 8, 100, 10**9])]
        elif way == 3:
            data[at:at] = rng.randbytes(rng.choice([1, 8, 300]))
        elif way == 4:
            piece = data[at:at + rng.choice([4, 40, 400])]
            data[at:at] = piece * rng.choice([1, 2, 50])
        elif way == 5:
            data[at:at + 1] = rng.choice(words)
        else:  # another number in the place of one
            while at < len(data) and not chr(data[at]).isdigit():
                at += 1
            end = at
            while end < len(data) and chr(data[end]).isdigit():
                end += 1
            data[at:end] = str(edge()).encode()
    return bytes(data)


def answer(command, size):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, timeout=600)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    words = done.stderr.decode(errors="replace")
    # A checkpoint whose recipe was changed to another that can be read is not a damaged one.
    other_recipe = done.returncode == 2 and "cannot be resumed with a recipe" in words
    if not (done.returncode in (0, 4) or other_recipe) or "Sanitizer" in words or "runtime error" in words:
        return "status %d: %s" % (done.returncode, words[:2000])
    if seconds > SECONDS * (1 + size / 1e6):
        return "%.1f s of CPU time" % seconds
    return None


def try_file(number, kind, data, commands):
    for command in commands:
        fault = answer(command, len(data))
        if fault:
            kept = "fault-%s-%d" % (kind, number)
            with open(kept, "wb") as f:
                f.write(data)
            print("%s: %s\n%s" % (kept, " ".join(command), fault))
            return 1
    return 0


JSON = [b'"', b"{", b"}", b"[", b"]", b",", b"null", b"-1", b"1e999", b"\\u0000", b"\xff", b"NaN", b"\0", b"\n[model]\n"]
TEXT = [b" ", b"\n", b"\0", b"\xe4", b"\xe4\xb8", b"\xf0\x9f\x98\x80", b"\xed\xa0\x80", b"'s", b"\xef\xbb\xbf", b"\xc2\xa0",
        b"\r\n", b"a" * 5000, b"ab" * 3000, bytes(range(256))]

make_run()
faults = 0
with open("run/model.safetensors", "rb") as f:
    model = f.read()
states = sorted(os.listdir("run/checkpoints"))
with open("run/checkpoints/" + states[-1], "rb") as f:
    state = f.read()
for number in range(FILES):
    if number % 2 == 0:
        data = mutate(model, JSON, head_of(model))
        with open("m.safetensors", "wb") as f:
            f.write(data)
        faults += try_file(number, "model", data, [[STINT, "eval", "m.safetensors", "--data", "img"],
                                                   [STINT, "info", "m.safetensors"]])
    else:
        data = mutate(state, JSON, head_of(state))
        shutil.rmtree("again", ignore_errors=True)
        shutil.copytree("run", "again")
        with open("again/checkpoints/" + states[-1], "wb") as f:
            f.write(data)
        faults += try_file(number, "checkpoint", data,
                           [[STINT, "train", "r.ini", "-o", "again", "--resume", "--epochs", "2", "-q"],
                            [STINT, "info", "again/checkpoints/" + states[-1]]])
for number in range(TEXTS):
    seed = rng.choice([b"the sea and the boat, it's 42 ", b"ACGT" * 8, "\u4e16\u754c\u3002".encode() * 5,
                       "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35".encode(), b"for (int i = 0;) {\n\t}\n", b"a"])
    data = mutate(mutate(seed * rng.choice([1, 20, 2000]), TEXT), TEXT)
    with open("t.txt", "wb") as f:
        f.write(data)
    faults += try_file(number, "text", data, [[STINT, "data", "tokens", "t.txt", "--vocabulary",
                                               str(rng.choice([256, 300, 1000]))]])
print("%d files, %d texts: %d faults" % (FILES, TEXTS, faults))
sys.exit(faults > 0)
