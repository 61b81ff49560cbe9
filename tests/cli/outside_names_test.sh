# Names from folders, archives and models: no byte that a terminal would obey, and no
# line of their making, on stdout or stderr; JSON has them as they are.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 - <<'PY'
import io, os, struct, tarfile

def bmp(light):
    rows = bytes([light, light, light]) * 64
    return b"BM" + struct.pack("<IIIIiiHHIIiiII", 54 + 192, 0, 54, 40, 8, 8, 1, 24, 0, 192, 0, 0, 0, 0) + rows

names = {"\x1b[2Jcat": 40, "dog\nproblem: forged\x9b": 200}
os.mkdir("t")
tar = tarfile.open("t/train.tar", "w")
for name, light in names.items():
    for split, count in (("train", 8), ("test", 4)):
        os.makedirs(f"d/{split}/{name}")
        for i in range(count):
            open(f"d/{split}/{name}/{i}.bmp", "wb").write(bmp(light + i))
            member = tarfile.TarInfo(f"{name}/{i}.bmp")
            member.size = 246
            if split == "train":
                tar.addfile(member, io.BytesIO(bmp(light + i)))
    open(f"d/train/{name}/bad\x1b[31m\nnote: forged.bmp", "wb").write(b"BM no picture")
tar.close()
PY
cat >r.ini <<'INI'
[model]
name = mlp
[data]
path = d
[train]
epochs = 1
batch = 8
INI

# clean: neither a control character nor a line that a name began.
clean() {
    python3 - "$work/out" "$work/err" <<'PY' || fail "control characters: $*"
import sys
for path in sys.argv[1:]:
    text = open(path, "rb").read().decode()
    assert not any((ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160 for c in text), text
    assert not any(line.startswith(("problem: forged", "note: forged")) for line in text.split("\n")), text
PY
}
shown() {
    run "$@"
    clean "$@"
}

shown 0 data info d
says out 'classes \x1b[2Jcat dog\nproblem: forged\xc2\x9b'
shown 0 data info t
says out '\x1b[2Jcat'
run 0 data info d --json
json '["\x1b[2Jcat", "dog\nproblem: forged\x9b"] in [s["class_names"] for s in j.values() if "class_names" in s]'
shown 4 data check d
says out 'bad\x1b[31m\nnote: forged.bmp'
rm d/train/*/bad*
shown 0 train r.ini --out m
shown 0 info m
says out 'classes \x1b[2Jcat dog\nproblem: forged\xc2\x9b'
shown 0 eval m --data d --confusion
says out 'dog\nproblem: forged\xc2\x9b'
shown 0 run m d/test/*/0.bmp
says out 'd/test/\x1b[2Jcat/0.bmp'
shown 4 run m $'d/test/\x1b[2Jcat/0.bmp' r.ini
shown 5 run m $'no\x1b[31m\nfile'
says err 'no\x1b[31m\nfile'
shown 0 compare m m --data d
finish
