# stint solve, stint data matrix, stint bench sptrsv: against NumPy's dense answers; one
# hash whatever the budget; bad files; the example of docs/solve.md. The bits of all
# strategies and the answers of all methods: solve_bits_full_test.sh.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
python=/usr/bin/python3 # Debian's, which has python3-numpy
data="$STINT_SOURCE/tests/cli/solve_data.py"
$python "$data" make || { fail "no NumPy"; finish; }
answers=0
checked() { # MATRIX TOLERANCE [WORD...] of x.npy: all are looked at together
    answers=$((answers + 1))
    mv x.npy x$answers.npy
    echo "$1 x$answers.npy $2 ${*:3}" >>answers
}

# ---- triangles ----
for matrix in general spd_array; do
    for form in "lower" "upper" "lower transpose" "upper transpose" "lower unit"; do
        flags="--triangle $(echo "$form" | sed 's/ transpose/ --transpose/; s/ unit/ --unit-diagonal/')"
        run 0 solve $matrix.mtx $flags --rhs b.npy --out x.npy -q
        checked $matrix 1e-9 $form
        run 0 solve $matrix.mtx $flags --rhs b11.npy --out x.npy -q
        checked $matrix 1e-9 $form
    done
done
for matrix in array whole; do
    run 0 solve $matrix.mtx --triangle lower --rhs b.npy --out x.npy -q
    checked $matrix 1e-9 lower
done
run 0 solve pattern.mtx --rhs b.npy --out x.npy --json
json 'j["kind"] == "lower" and j["method"] == "trsv" and j["converged"]'
checked pattern 1e-6
run 0 solve general.mtx --triangle lower --precision float --rhs b11f.npy --out x.npy
checked general 1e-4 lower

# ---- Krylov's methods ----
run 0 solve spd.mtx --json
json 'j["method"] == "cg" and j["precond"] == "ic0" and j["error"] < 1e-6'
run 0 solve general.mtx --json --order rcm --restart 5
json 'j["method"] == "gmres" and j["precond"] == "ilu0" and j["error"] < 1e-6'
run 0 solve spd.mtx --order rcm --rhs b11.npy --out x.npy --tol 1e-11
checked spd 1e-9
$python "$data" check answers || fail "answers"

# ---- files made, read and described ----
run 0 data matrix poisson2d:30 --out p.mtx
run 0 data matrix poisson2d:30 --out again.mtx -j 3 --json
json 'j["n"] == 900 and j["nonzeros"] == 900 + 4 * 30 * 29'
cmp -s p.mtx again.mtx || fail "-j changes a matrix"
run 0 data info p.mtx --json
json 'j["levels"] == 59 and j["bandwidth"] == 30 and j["kind"] == "symmetric"'
for kind in poisson3d:8 weighted2d:20 weighted3d:7 rmat:8 geometric:500 arrow:50; do
    run 0 data matrix $kind --out m.mtx
    run 0 solve m.mtx --json --tol 1e-10
    json 'j["method"] == "cg" and j["converged"] and j["error"] < 1e-6'
done
for kind in random:300 chain:300 band:300; do
    run 0 data matrix $kind --out m.mtx --seed 5
    run 0 solve m.mtx --json
    json 'j["kind"] == "lower" and j["backward_error"] < 4 * 2.3e-16 * 10'
done

# ---- memory ----
hash() { grep -o '"x_sha256": *"[^"]*' out; }
run 0 data matrix poisson2d:60 --out p.mtx
run 0 solve p.mtx --triangle lower --strategy natural -j 1 --json
wanted=$(hash)
for way in "level -j 1" "pool -j 8" "superstep -j 2" "supernode -j 1"; do
    run 0 solve p.mtx --triangle lower --strategy $way --json --solves 5
    [ "$(hash)" = "$wanted" ] || fail "$way: another answer"
done
run 0 data matrix random:30000 --out r.mtx
run 0 solve r.mtx --plan --json
json 'j["fits"] and j["smallest_bytes"] <= j["peak_bytes"] == sum(p["bytes"] for p in j["parts"])'
least=$($python -c 'import json; print(json.load(open("out"))["smallest_bytes"])')
least=$((least + 262144)) # what the process takes differs by a grain or two
run 0 solve r.mtx --json --solves 3
wanted=$(hash)
run 0 solve r.mtx --json --solves 3 --memory "$least"
[ "$(hash)" = "$wanted" ] || fail "--memory: another answer"
if ! nm "$STINT" | grep -q __asan_init && ! nm "$STINT" | grep -q __tsan_init; then
    json "j['peak_rss_bytes'] <= j['planned_peak_bytes'] <= $least"
fi
# The first solve on a host measures it: that is in the plan, too.
XDG_CACHE_HOME=$work/fresh run 0 solve p.mtx --json
if ! nm "$STINT" | grep -q __asan_init && ! nm "$STINT" | grep -q __tsan_init; then
    json "64 << 20 < j['peak_rss_bytes'] <= j['planned_peak_bytes']"
fi
run 3 solve r.mtx --memory $((least - 1048576))
says err "memory"
run 3 solve r.mtx --memory $((least - 1048576)) --plan
run 3 solve r.mtx --memory 1M
run 0 solve r.mtx --triangle lower --transpose --memory "$least" --json
json 'j["strategy"] == "push"'

# ---- a page ----
run 0 data matrix poisson2d:30 --out p.mtx
for way in "p.mtx -j 2 --strategy pool" "p.mtx --triangle upper" "general.mtx --order rcm" \
    "spd.mtx --precond none --rhs b11.npy"; do
    run 0 solve $way --report page.html
    python3 "$STINT_SOURCE/tests/page/well_formed.py" page.html || fail "page: $way"
    for words in "As the file has it" "Rows of a level" "backward error"; do
        grep -q "$words" page.html || fail "$way: no '$words' on the page"
    done
done
run 0 solve p.mtx --strategy pool -j 2 --report page.html
grep -q "Tasks over time" page.html && grep -q "iteration" page.html || fail "page: no tasks"
run 2 solve p.mtx --report p.mtx

# ---- what is refused ----
bad() { # STATUS WORDS: the file is bad.mtx
    local status=$1 words=$2
    shift 2
    rm -f x.npy
    run "$status" solve bad.mtx --out x.npy "$@"
    says err "$words"
    [ -e x.npy ] && fail "an answer of a bad file"
}
header='%%MatrixMarket matrix coordinate real general'
: >bad.mtx; bad 4 "bad.mtx:1: it is empty"
echo "1 1 1" >bad.mtx; bad 4 "bad.mtx:1: '1 1 1'"
echo "%%MatrixMarket matrix coordinate real funny" >bad.mtx; bad 4 "'funny'"
echo "%%MatrixMarket matrix coordinate complex general" >bad.mtx; bad 8 "complex"
printf '%s\n2 2 2\n1 1 1\n' "$header" >bad.mtx; bad 4 "bad.mtx:2"
printf '%s\n2 2 2\n1 1 1\n%%%%%%%%%%%%%%\n' "$header" >bad.mtx; bad 4 "after 1 entries"
printf '%s\n2 2 1\n1 1 1\n2 2 1\n' "$header" >bad.mtx; bad 4 "bad.mtx:4: entry 2"
printf '%s\n2 2 2\n1 1 1\n3 2 1\n' "$header" >bad.mtx; bad 4 "bad.mtx:4: row 3; 1 to 2"
printf '%s\n2 2 2\n1 1 1\n2 0 1\n' "$header" >bad.mtx; bad 4 "bad.mtx:4: column 0; 1 to 2"
printf '%s\n2 2 2\n1 1 1\n2 2 nan\n' "$header" >bad.mtx; bad 4 "bad.mtx:4: value 'nan'"
printf '%s\n2 2 2\n1 1 1\n2 2 1 7\n' "$header" >bad.mtx; bad 4 "bad.mtx:4: '7'"
printf '%s\n2 2 3\n1 1 1\n2 2 1\n2 2 3\n' "$header" >bad.mtx; bad 4 "row 2 has two entries"
run 0 solve bad.mtx --duplicates sum --json
json 'j["error"] == 0'
printf '%s\n2 2 2\n1 1 1\n2 2 0\n' "$header" >bad.mtx; bad 4 "diagonal entry of row 2 is 0"
printf '%s\n2 2 2\n1 1 1\n2 1 1\n' "$header" >bad.mtx; bad 4 "row 2 has no diagonal"
printf '%s\n2 3 2\n1 1 1\n2 2 1\n' "$header" >bad.mtx; bad 4 "2 x 3"
printf '%s\n2 2 99999999999\n' "$header" >bad.mtx; bad 8 "99999999999 entries"
# More rows than the memory of a machine: refused before they are touched.
if [ "$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" -lt 30000000 ]; then
    printf '%s\n2147483646 2147483646 1\n1 1 1\n' "$header" >bad.mtx
    bad 3 "this process can have"
    run 3 data info bad.mtx
fi
printf '%s\n3 3 4\n1 1 1\n2 2 1\n3 3 1\n1 2 1\n' "${header/general/symmetric}" >bad.mtx
bad 4 "bad.mtx:6: row 1, column 2 of a symmetric matrix"
run 4 solve general.mtx --method trsv
says err "both sides"
run 4 solve general.mtx --method cg
says err "not symmetric"
run 4 solve spd.mtx --rhs short.npy
says err "5 rows"
run 4 solve spd.mtx --rhs nan.npy
says err "row 4 holds nan"
run 5 solve none.mtx
run 2 solve spd.mtx --out spd.mtx
run 2 solve spd.mtx --out x.txt
run 2 solve spd.mtx --precision half
run 2 solve spd.mtx --triangle lower --precond ilu0
run 8 solve spd.mtx --precision float
# What over- or underflows has no answer.
for value in 1e300 1e-200; do
    printf '%s\n2 2 4\n1 1 %s\n2 2 %s\n1 2 1e-250\n2 1 2e-250\n' "$header" $value $value >bad.mtx
    for flags in "--method gmres" "--method bicgstab" "--method gmres --precond none"; do
        bad 1 "scale the system" $flags
    done
done
printf '%s\n2 2 3\n1 1 1e-200\n2 1 1e200\n2 2 1e-200\n' "$header" >bad.mtx
printf '%%%%MatrixMarket matrix array real general\n2 1\n1\n1\n' >ones.mtx
bad 1 "beyond the largest double" --rhs ones.mtx
# Stopped: between solves, or between iterations.
for flags in "--triangle lower" "--method cg --precond none" "--method gmres" "--method bicgstab"; do
    "$STINT" solve p.mtx $flags --solves 1000000 --out x.npy -q >out 2>err &
    solver=$!
    for i in $(seq 200); do # until it listens to SIGTERM, bit 14
        grep -q '^SigCgt:.*[4-7c-f]...$' /proc/$solver/status && break
        sleep 0.05
    done
    sleep 0.1
    kill -TERM $solver
    wait $solver
    status=$?
    [ $status = 143 ] || fail "$flags: status $status"
    says err "stopped"
    [ -e x.npy ] && fail "an answer of a stopped solve"
done
rm -f x.npy
run 1 solve spd.mtx --tol 1e-12 --max-iter 2 --precond none --out x.npy --json
json 'not j["converged"] and j["residual"] > 1e-12 and j["iterations"] == 2'
[ -e x.npy ] && fail "an answer that did not converge"
run 1 solve indefinite.mtx --method cg --precond none --out x.npy
says err "not positive definite"
[ -e x.npy ] && fail "an answer of an indefinite matrix"
run 2 data matrix poisson9d:4
run 2 data matrix poisson3d:100000
run 2 data matrix chain:0

# ---- the bench ----
run 0 bench sptrsv chain:500 p.mtx rmat:8 --json -j 2
json '[r["matrix"] for r in j["rows"]] == ["chain:500", "p.mtx", "rmat:8"]'
json 'all(r["chosen_s"] > 0 and r["pool_s"] > 0 and r["levels"] > 1 for r in j["rows"])'

# ---- the page ----
sed -n '/solve example/,/<!-- end/s/^    stint //p' "$STINT_SOURCE/docs/solve.md" >commands
[ "$(wc -l <commands)" -gt 5 ] || fail "few commands found in solve.md"
while read -r line; do
    eval "set -- $line"
    run 0 "$@"
done <commands
finish
