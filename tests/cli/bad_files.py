"""Files that are wrong in one way each: bad_files.py FOLDER MODEL, where MODEL is a good
model.safetensors. Makes image folders, tars, IDX and CIFAR sets and models in FOLDER."""
import io
import json
import os
import random
import shutil
import struct
import sys
import tarfile
import zlib

folder, model = sys.argv[1], os.path.abspath(sys.argv[2])
os.makedirs(folder, exist_ok=True)
os.chdir(folder)
rng = random.Random(1)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width=12, height=12, claim=None):
    rows = b"".join(b"\0" + rng.randbytes(width) for _ in range(height))
    size = struct.pack(">II", *(claim or (width, height)))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", size + bytes([8, 0, 0, 0, 0]))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def write(path, data):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(path, "wb") as f:
        f.write(data)


def images(name, classes=("cat", "dog"), test=("cat", "dog")):
    for split, names in (("train", classes), ("test", test)):
        for c in names:
            for i in range(8):
                write(f"{name}/{split}/{c}/{i}.png", png())


for name in ("good", "cut", "nothing", "text", "gif", "size", "huge"):
    images(name)
write("cut/train/cat/3.png", png()[:150])
write("nothing/train/cat/3.png", b"")
write("text/train/cat/3.png", b"These are only words, not an image at all.")
write("gif/train/cat/3.png", b"GIF89a" + bytes(100))
write("size/train/cat/3.png", png(13, 12))
write("huge/train/cat/3.png", png(claim=(100000, 100000)))
images("noimage", ("cat",), ("cat",))
os.makedirs("noimage/train/dog")
images("more", test=("bird", "cat", "dog"))
images("fewer", ("bird", "cat", "dog"))
images("one", ("cat",), ("cat",))

# ---- tar
buffer = io.BytesIO()
with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
    tar.add("good/train", "train")
whole = buffer.getvalue()
header = next(at for at in range(0, len(whole), 512) if b".png" in whole[at:at + 100])


def with_size(field):
    t = bytearray(whole)
    t[header + 124:header + 136] = field
    t[header + 148:header + 156] = b" " * 8
    t[header + 148:header + 156] = b"%06o\0 " % sum(t[header:header + 512])
    return bytes(t)


write("tar_cut/train.tar", whole[:len(whole) // 3])
write("tar_noise/train.tar", rng.randbytes(20480))
write("tar_empty/train.tar", b"")
write("tar_zip/train.tar", zlib.compress(whole))
write("tar_large/train.tar", with_size(b"\x80" + bytes(3) + b"\x7f" + b"\xff" * 7))
write("tar_negative/train.tar", with_size(b"\xff" * 12))

# ---- IDX
def idx(name, dims=(64, 12, 12), magic=0x803, labels=64, bytes_of=64 * 144):
    write(f"{name}/train-images-idx3-ubyte",
          struct.pack(">I", magic) + struct.pack(">3I", *dims) + bytes(bytes_of))
    write(f"{name}/train-labels-idx1-ubyte",
          struct.pack(">II", 0x801, labels) + bytes(i % 2 for i in range(labels)))


idx("idx_cut", bytes_of=5000)
idx("idx_kind", magic=0x903)
idx("idx_large", dims=(2**32 - 1, 2**31, 2**31))
idx("idx_labels", labels=63)

# ---- CIFAR: the second file holds a label that has no name
for i in (1, 2, 4, 5):
    write(f"cifar/data_batch_{i}.bin",
          b"".join(bytes([77 if (i, k) == (2, 5) else k]) + bytes(3072) for k in range(10)))
write("cifar/test_batch.bin", b"".join(bytes([k]) + bytes(3072) for k in range(10)))
write("cifar/batches.meta.txt", "".join(f"name{k}\n" for k in range(10)).encode())
shutil.copytree("cifar", "cifar_missing")
write("cifar_missing/data_batch_2.bin", b"".join(bytes([k]) + bytes(3072) for k in range(10)))

# ---- safetensors
with open(model, "rb") as f:
    good = f.read()
length = struct.unpack("<Q", good[:8])[0]
table, data = json.loads(good[8:8 + length]), good[8 + length:]
tensors = [k for k in table if k != "__metadata__"]


def tensors_file(name, change):
    t = json.loads(json.dumps(table))
    change(t)
    text = json.dumps(t).encode()
    write(f"{name}.safetensors", struct.pack("<Q", len(text)) + text + data)


write("m_cut.safetensors", good[:-100])
write("m_short.safetensors", good[:3])
write("m_header.safetensors", struct.pack("<Q", 2**63) + good[8:])
write("m_noise.safetensors", rng.randbytes(5000))
write("m_deep.safetensors", struct.pack("<Q", 50000) + b'{"a":' * 10000)
flipped = bytearray(good)
flipped[-50] ^= 0x40
write("m_flip.safetensors", bytes(flipped))
tensors_file("m_shape", lambda t: t[tensors[0]].update(shape=[2**62, 2**62]))
tensors_file("m_overlap", lambda t: t[tensors[1]].update(data_offsets=t[tensors[0]]["data_offsets"]))
tensors_file("m_missing", lambda t: t.update(other=t.pop(tensors[0])))
tensors_file("m_recipe", lambda t: t["__metadata__"].update(recipe="junk"))
tensors_file("m_foreign", lambda t: t.pop("__metadata__"))


def with_texts(name, **texts):
    tensors_file(name, lambda t: t["__metadata__"].update(texts))


with_texts("m_mean", mean="1e40")
with_texts("m_deviation", deviation="1e-45")
with_texts("m_image", image=table["__metadata__"]["image"].replace(" ", ".5 ", 1))


# Elements of a tensor; no hash, as if they had been changed on purpose.
def with_weights(name, tensor, first, values):
    begin = table[tensor]["data_offsets"][0] + 4 * first
    end = begin + 4 * len(values)
    t = json.loads(json.dumps(table))
    t["__metadata__"].pop("weights_sha256")
    text = json.dumps(t).encode()
    changed = data[:begin] + struct.pack(f"<{len(values)}f", *values) + data[end:]
    write(f"{name}.safetensors", struct.pack("<Q", len(text)) + text + changed)


with_weights("m_nan", tensors[0], 2, [float("nan")])
with_weights("m_infinite", tensors[0], 2, [float("-inf")])
classes, width = [table[k]["shape"] for k in tensors if len(table[k]["shape"]) == 2][-1]
last = [k for k in tensors if table[k]["shape"] == [classes, width]][-1]
with_weights("m_large", last, 0, [3e38, -3e38] * (classes * width // 2))
