# A limit on the size of files is an error that is told, and leaves no part behind.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
python3 - <<'PY'
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (99999,), }".ljust(117) + "\n"
open("v.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", 118) + head.encode() + struct.pack("<99999f", *range(99999)))
PY
(ulimit -f 20; "$STINT" topk v.npy -k 99999 --out i.npy >out 2>err)
[ $? -eq 5 ] || fail "topk above the limit: wrong status"
says err "ulimit -f"
[ ! -e i.npy ] && [ ! -e i.npy.part ] || fail "topk above the limit left a file"
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data
printf '[model]\nname = lenet5\n[data]\npath = data\n[train]\nepochs = 1\nbatch = 32\n' >r.ini
(ulimit -f 20; "$STINT" train r.ini --out a >out 2>err)
[ $? -eq 5 ] || fail "train above the limit: wrong status"
says err "ulimit -f"
[ -z "$(find a -name '*.part')" ] || fail "train above the limit left a part"
finish
