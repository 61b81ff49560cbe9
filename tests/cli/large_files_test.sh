# Small files that once cost minutes: readers take time in proportion to their input, and
# planning about in proportion to the nodes. Each command may take ten seconds of CPU time,
# which is a multiple of what it takes and less than what it took.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
ulimit -t 10

python3 - <<'PY'
import io
import os
import struct
import tarfile
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


image = (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">II", 8, 8) + bytes([8, 0, 0, 0, 0]))
         + chunk(b"IDAT", zlib.compress(bytes(72))) + chunk(b"IEND", b""))
for split in ("train", "test"):
    for name in "ab":
        os.makedirs(f"img/{split}/{name}")
        for i in range(4):
            with open(f"img/{split}/{name}/{i}.png", "wb") as f:
                f.write(image)
# Headers alone: a tar of 100,000 class folders, of which two have an image.
os.mkdir("folders")
head = tarfile.TarInfo("train/c000000")
head.type = tarfile.DIRTYPE
with open("folders/train.tar", "wb") as f:
    for i in range(100000):
        head.name = f"train/c{i:06d}"
        f.write(head.tobuf(tarfile.USTAR_FORMAT))
    for i in range(2):
        file = tarfile.TarInfo(f"train/c{i:06d}/1.png")
        file.size = len(image)
        f.write(file.tobuf(tarfile.USTAR_FORMAT) + image + bytes(-len(image) % 512))
    f.write(bytes(1024))
run = "[data]\npath = img\n[train]\nbatch = 4\nshards = 1\nepochs = 1\n"
open("r.ini", "w").write("[model]\nname = mlp\n" + run)
open("deep.ini", "w").write("[model]\nname = mlp\ndepth = 100\n" + run)
open("keys.ini", "w").write("[model]\n" + "".join(f"depht{i} = 1\n" for i in range(60000)))
open("sections.ini", "w").write("".join(f"[modle{i}]\nx = 1\n" for i in range(50000)))
open("headings.ini", "w").write("[model]\n" * 120000 + "name = mlp\n" + run)
PY

run 4 data info folders
says err "class 'c000002' has no images"
run 2 plan keys.ini
says err "depht1"
says err "more)"
run 2 plan sections.ini
says err "unknown section [modle"
run 0 plan headings.ini
run 0 plan deep.ini
says out "The least this recipe runs in"

# A recipe in a model is as long as one on disk may be, and damage in that of a
# checkpoint is the file's fault.
run 0 train r.ini -o run
python3 - <<'PY'
import json
import os


def change(path, out, text):
    data = open(path, "rb").read()
    n = int.from_bytes(data[:8], "little")
    head = json.loads(data[8:8 + n])
    head["__metadata__"]["recipe"] = text(head["__metadata__"]["recipe"])
    words = json.dumps(head).encode()
    words += b" " * (-len(words) % 8)
    open(out, "wb").write(len(words).to_bytes(8, "little") + words + data[8 + n:])


change("run/model.safetensors", "long.safetensors", lambda r: r + "[model]\n" * 2000000)
change("run/model.safetensors", "keys.safetensors",
       lambda r: r + "[model]\n" + "".join(f"k{i}=1\n" for i in range(100000)))
state = "run/checkpoints/" + os.listdir("run/checkpoints")[0]
change(state, state, lambda r: r.replace("seed_order", "seed_odrer"))
PY
run 4 eval long.safetensors --data img
says err "a recipe of 15.3 MiB; it has at most 1.0 MiB"
run 4 eval keys.safetensors --data img
says err "unknown key 'k0'"
run 4 train r.ini -o run --resume
says err "a damaged recipe"
finish
