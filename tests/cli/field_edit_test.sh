# stint field edit: a linear edit by derivatives, learnt from two fields and used on a
# third, beside its closed form; refusals.
. "$(dirname "$0")/cli_lib.sh"
oracle="$(cd "$(dirname "$0")" && pwd)/field_edit_oracle.py"
cd "$work" || exit 1
python=/usr/bin/python3
$python "$oracle" make || { fail "no NumPy"; finish; }
for i in 1 2 3; do
    run 0 import field w$i.safetensors --omega 1 --out w$i.model
done
learn() { run "$1" field edit --fields w1.model,w2.model --targets t1.png,t2.png --order 2 "${@:2}"; }
learn 0 --depth 0 --steps 2500 --out e.safetensors --json
json "j['points'] == 2 * 24 * 24 and j['features'] == 6 and j['loss'] < j['unedited'] / 50"
run 0 field edit w3.model --edit e.safetensors --size 24x24 --out edited.png
$python "$oracle" check edited.png || fail "the edit of a field that was not learnt from"
learn 0 --depth 0 --steps 2500 --out f.safetensors -j 1
cmp e.safetensors f.safetensors || fail "other bits with other threads"
learn 0 --depth 1 --width 8 --steps 20 --out g.safetensors
run 0 field edit w3.model --edit g.safetensors --size 9x7 --out small.png

run 2 field edit --fields w1.model,w2.model --targets t1.png --out no
says err "2 fields and 1 targets"
run 2 field edit --fields w1.model --targets t1.png
run 2 field edit w3.model --out no.png
run 2 field edit w3.model --edit e.safetensors --out no.jpg
run 2 field edit w3.model --edit e.safetensors --size 0x4 --out no.png
run 2 field edit w3.model --edit e.safetensors --out e.safetensors
run 2 field edit --fields w1.model --targets t1.png --order 11 --out no
run 4 field edit w3.model --edit w1.model --out no.png
says err "no edit of a field"
head -c 300 e.safetensors >cut.safetensors
run 4 field edit w3.model --edit cut.safetensors --out no.png
sed 's/features 6/features 7/' e.safetensors >other.safetensors
run 4 field edit w3.model --edit other.safetensors --out no.png
run 4 field edit --fields w1.model --targets w1.model --out no
[ ! -e no ] && [ ! -e no.png ] || fail "a refused edit left a file"
finish
