"""What Pillow makes of a picture, for data_fit_test.c: pixels [h, w, 3] on standard input,
[size, size, 3] on standard output. Ends with 77 where Pillow is not installed.
usage: pillow_fit.py crop|cut H W SIZE [TOP LEFT HEIGHT WIDTH]"""

import sys

try:
    from PIL import Image
except ImportError:
    sys.exit(77)

how, (h, w, size) = sys.argv[1], map(int, sys.argv[2:5])
image = Image.frombytes("RGB", (w, h), sys.stdin.buffer.read())
if how == "crop":
    short = min(h, w)
    new_w, new_h = ((2 * side * size + short) // (2 * short) for side in (w, h))
    image = image.resize((new_w, new_h), Image.BOX)
    left, top = (new_w - size) // 2, (new_h - size) // 2
    image = image.crop((left, top, left + size, top + size))
else:
    top, left, height, width = map(int, sys.argv[5:9])
    image = image.crop((left, top, left + width, top + height))
    image = image.resize((size, size), Image.BOX)
sys.stdout.buffer.write(image.tobytes())
