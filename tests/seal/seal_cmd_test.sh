# stint seal: circuits and keys of the command line, and what is refused.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
cat >f.c <<'END'
#include <stdint.h>
uint8_t f(int8_t a, const uint16_t t[2], uint64_t big, int32_t out[2]) {
    out[0] = a * 3;
    out[1] = t[0] - t[1];
    return (uint8_t)(big >> 56) + (a < 0);
}
END
cat >g.c <<'END'
int g(unsigned char x) { return x & 1; }
END
run 0 seal compile f.c --entry f --out f.seal --json
json '[p["name"] for p in j["inputs"]] == ["a", "t", "big"]'
json '[(p["name"], p["bits"], p["count"], p["signed"]) for p in j["outputs"]] == [("return", 8, 1, False), ("out", 32, 2, True)]'
json 'j["bootstraps"] == sum(j["cells"].values()) and 0 < j["depth"] <= j["bootstraps"] <= j["gates"]'
echo '{"a": -5, "t": [1, 65535], "big": 18446744073709551615}' >v.json
run 0 seal sim f.seal --values v.json --json
json 'j["values"] == {"return": 0, "out": [-15, -65534]}'
run 0 seal sim f.seal --value "a=127 t=9,4 big=0" --json
json 'j["values"] == {"return": 0, "out": [381, 5]}'
run 0 seal compile f.c --entry f --public "a=2 big=0" --out p.seal --json
json '[p["name"] for p in j["inputs"]] == ["t"]'
run 0 seal sim p.seal --value t=7,9 --json
json 'j["values"] == {"return": 0, "out": [6, -2]}'

# What the values may be.
for wrong in '{"a": 128, "t": [1, 2], "big": 0}' '{"a": 1, "t": [1, -2], "big": 0}' \
    '{"a": 1, "t": [1], "big": 0}' '{"a": 1, "t": [1, 2, 3], "big": 0}' '{"a": 1, "t": 2, "big": 0}' \
    '{"a": 1, "t": [1, 2]}' '{"a": 1, "a": 1, "t": [1, 2], "big": 0}' '{"b": 1}' '[1]' \
    '{"a": 1.5, "t": [1, 2], "big": 0}' '{"a": 1, "t": [1, 2], "big": 18446744073709551616}' '{'; do
    echo "$wrong" >w.json
    run 4 seal sim f.seal --values w.json
    grep -q 'w.json\|no value for' "$work/err" || fail "no word of w.json: $wrong"
done
run 4 seal sim f.seal --value "a=1"
says err "no value for 't'"

# Circuits from and to other formats.
run 0 seal export f.seal --out f.txt
run 0 seal export f.seal --out f.blif
run 0 seal import f.blif --out back.seal
run 0 seal sim back.seal --value "a=5 t=131073 big=0" --json
json 'j["values"]["return"] == 0 and j["values"]["out"] == 15 + (1 - 2) % 2**32 * 2**32'
run 2 seal export f.seal --out f.v
run 2 seal import f.txt
says err "--out"
run 2 seal import f.txt --out f.txt
run 4 seal compile g.c --entry h --out x.seal
says err "it has: g"
[ ! -e x.seal ] || fail "a file of a compilation that failed"

# Keys.
run 0 seal sets --json
json '[s["name"] for s in j["sets"]] == ["p128", "p64"] and min(s["security_bits"] for s in j["sets"]) >= 128'
run 2 seal keygen --set-name p16 --out k
says err "p128"
[ ! -e k ] || fail "a folder for keys of an unknown set"
run 0 seal keygen --set-name p64 --out k
run 2 seal keygen --out k
says err "has keys already"
run 0 seal keygen --set-name p64 --out k2
cmp -s k/eval.key k2/eval.key && fail "two pairs of keys are the same"
[ "$(stat -c %s k/eval.key)" -le 20000000 ] || fail "eval.key is too large"
run 0 seal compile g.c --entry g --out g.seal
run 0 seal encrypt g.seal --key k/secret.key --value x=7 --out in.ct
run 0 seal encrypt g.seal --key k/secret.key --value x=7 --out in2.ct
cmp -s in.ct in2.ct && fail "two encryptions are the same"
run 2 seal encrypt g.seal --key k/secret.key --value x=7 --out k/secret.key
run 0 seal compile g.c --entry g --effort 0 --out g0.seal
cat >h.c <<'END'
int h(unsigned char x, unsigned char y) { return x + y == 77 ? x - y : x ^ y; }
END
run 0 seal compile h.c --entry h --out h.seal
run 0 seal encrypt h.seal --key k/secret.key --value "x=70 y=7" --out h.ct
run 0 seal run h.seal --key k/eval.key --in h.ct --out h1.ct -j 1 --json
json 'j["bootstraps"] > 20 and j["ranks"] == 1 and 0 < j["busy"] <= 1.01'
json 'j["planned_peak_bytes"] <= 256 * 2**20'
sanitized || json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
run 0 seal run h.seal --key k/eval.key --in h.ct --out h2.ct -j 2 --order levels --json
cmp -s h1.ct h2.ct || fail "other threads and order, other bytes"
# What a plan announces, a run does.
ran=$(python3 -c 'import json; print(json.load(open("out"))["planned_peak_bytes"])')
run 0 seal plan h.seal --set-name p64 -j 2 --order levels --json
sanitized || json "abs(j['peak_bytes'] - $ran) < 2**19"
run 0 seal decrypt h.seal --key k/secret.key --in h2.ct --json
json 'j["values"] == {"return": 63}'

# Pages: of a circuit with the lines of its program, and of a run.
cat >page.c <<'END'
unsigned f(unsigned x, unsigned y) {
    unsigned z = x + y;
    return z & 7;
}
END
run 0 seal compile page.c --entry f --out page.seal --report page.html
grep -q 'unsigned z = x + y;' page.html || fail "no line of the program in its page"
run 2 seal compile page.c --entry f --out page.seal --report page.c
run 0 seal encrypt page.seal --key k/secret.key --value "x=3 y=6" --out page.ct
run 0 seal run page.seal --key k/eval.key --in page.ct --out page.out --report run.html
grep -q 'Threads that had work' run.html || fail "no utilisation in the page of a run"
grep -q 'line 2' run.html || fail "no lines in the page of a run"
run 2 seal run page.seal --key k/eval.key --in page.ct --out page.out --report page.ct

# (Keys of both sets, which take a sanitizer most of a minute.)
if ! sanitized; then
    run 0 bench seal -j 1 --seconds 0.01 --json
    json '[s["set"] for s in j["sets"]] == ["p128", "p64"] and all(s["bootstraps_per_s_a_core"] > 0 and s["single_s"] > 0 for s in j["sets"])'
fi

# What does not belong together.
run 4 seal run h.seal --key k/secret.key --in h.ct --out x.ct
says err "is a secret key, an evaluation key is wanted; it was not used"
run 4 seal run h.seal --key k2/eval.key --in h.ct --out x.ct
says err "another pair of keys"
run 4 seal run g.seal --key k/eval.key --in h.ct --out x.ct
says err "another circuit"
run 4 seal run h.seal --key k/eval.key --in h1.ct --out x.ct
says err "encrypted outputs"
run 4 seal decrypt h.seal --key k2/secret.key --in h1.ct
run 4 seal decrypt h.seal --key k/eval.key --in h1.ct
run 2 seal run h.seal --key k/eval.key --in h.ct --out h.ct
run 2 seal run h.seal --in h.ct --out x.ct
head -c 100000 k/eval.key >cut.key
run 4 seal run h.seal --key cut.key --in h.ct --out x.ct
says err "cut"
run 3 seal run h.seal --key k/eval.key --in h.ct --out x.ct --memory 20M
says err "needs"
[ ! -e x.ct ] || fail "a result of a run that was refused"
run 5 seal run h.seal --key k/eval.key --in h.ct --out nowhere/x.ct
grep -q bootstraps "$work/err" && fail "a run whose result cannot be written began"
run 4 seal compile f.c --entry f --public "a=999 big=0" --out p.seal
says err "--public: a value of 'a'"

run 0 seal plan h.seal --set-name p64 --fail 2^-50 --json
json 'j["fits"] and j["fail_log2"] < -60 and j["key_bytes"] <= 20000000 and j["seconds"] > 0'
run 3 seal plan h.seal --set-name p64 --fail 2^-100
says err "p128"
run 3 seal plan h.seal --memory 20M --json
run 2 seal plan h.seal --fail 0.5
run 0 seal check --key k/secret.key --gates 8 --json
json 'j["failures"] == 0 and all(0 < c["sd"] < 2 * c["sd_predicted"] for c in j["cells"].values())'

# Stopped in its middle, a run leaves nothing.
cat >long.c <<'END'
unsigned f(unsigned x, unsigned y) { for (int i = 0; i < 40; i++) x = x * y ^ x >> 7; return x; }
END
run 0 seal compile long.c --entry f --out long.seal
run 0 seal encrypt long.seal --key k/secret.key --value "x=1 y=3" --out long.ct
"$STINT" seal run long.seal --key k/eval.key --in long.ct --out long.out 2>err &
sleep 3
kill -INT $!
wait $!
[ $? -eq 130 ] || fail "not 130 after SIGINT: $(cat err)"
ls long.out* >/dev/null 2>&1 && fail "something was left of a run that was stopped"
finish
