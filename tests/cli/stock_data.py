"""Class folders of PNG images: stock_data.py FOLDER COLOUR SIZE...
COLOUR is grey or colour; each SIZE is WxH, and every class gets two images of each."""
import os
import struct
import sys
import zlib

folder, colour = sys.argv[1:3]
channels = 3 if colour == "colour" else 1


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, light):
    row = b"\0" + bytes((x * 3 + light * 90) % 256 for x in range(width) for _ in range(channels))
    head = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(row * height))
            + chunk(b"IEND", b""))


for split in ("train", "test"):
    for label, name in enumerate(("cat", "dog")):
        os.makedirs(f"{folder}/{split}/{name}", exist_ok=True)
        for i, size in enumerate(sys.argv[3:]):
            width, height = (int(n) for n in size.split("x"))
            for k in range(2):
                with open(f"{folder}/{split}/{name}/{i}-{k}.png", "wb") as f:
                    f.write(png(width, height, label))
