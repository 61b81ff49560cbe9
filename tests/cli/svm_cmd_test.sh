# stint svm and stint data table: against a dense solve in NumPy and LIBSVM's programs,
# over budgets, threads and instruction sets; refusals; the example of docs/svm.md.
. "$(dirname "$0")/cli_lib.sh"
. "$(dirname "$0")/svm_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3 # Debian's, which has python3-numpy
oracles svm_data.py || { fail "no NumPy"; finish; }

# ---- decision values and alphas against the dense system ----
for kernel in linear polynomial rbf laplacian; do
    for data in two three reg; do
        for how in oao oaa; do
            # (Of two classes and of values there is one machine either way.)
            full || [ $how = oao ] || [ $data = three ] || continue
            type=ls_svc
            [ $data = reg ] && type=ls_svr
            run 0 svm train -q -s $type -t $kernel -a $how -g 0.1 -r 1 -d 2 -c 3 -e 1e-10 \
                $data.libsvm m.model
            run 0 svm predict test.libsvm m.model answers --values values.npy
            ask check $data $kernel $how ||
                fail "$data $kernel $how is not the dense solution"
        done
    done
done
run 0 svm train -q -g 0.1 -c 3 -e 1e-10 --weights 1=4,-1=0.5 two.libsvm m.model
run 0 svm predict test.libsvm m.model answers --values values.npy
ask check two rbf weighted ||
    fail "class weights are not the dense solution"

run 0 svm train -q -g 0.1 -c 3 -e 1e-10 --weights weights reg.libsvm m.model -s ls_svr
run 0 svm predict test.libsvm m.model answers --values values.npy
ask check reg rbf points ||
    fail "point weights are not the dense solution"
run 0 svm train -q -t chi_squared -g 0.1 -c 3 -e 1e-10 positive.libsvm m.model
run 0 svm predict positive_test.libsvm m.model answers --values values.npy
ask check positive chi_squared oao ||
    fail "chi_squared is not the dense solution"
run 0 svm train -q -t precomputed -c 3 -e 1e-10 values.libsvm m.model
run 0 svm predict values_test.libsvm m.model answers --values values.npy
ask check two linear oao ||
    fail "precomputed is not the dense solution"
grep -q '^[^ ]* 0:17 $' m.model || fail "a precomputed model holds more than numbers"

# ---- the preconditioner: the same machine in fewer iterations ----
iterations() { value iterations; }
run 0 svm train --json -c 1e4 -g 0.1 --rank 0 two.libsvm m.model
plain=$(iterations)
run 0 svm train --json -c 1e4 -g 0.1 two.libsvm m.model
[ $((5 * $(iterations))) -le "$plain" ] ||
    fail "$(iterations) iterations, without a preconditioner $plain"
run 0 svm train --json -c 1e4 -g 0.1 --rank 300 two.libsvm m.model
json 'j["iterations"] <= 5 and j["residual"] <= 1e-5'

# ---- the page ----
$python -c '
import random
random.seed(1)
for i in range(300):
    x, y = random.uniform(-3, 3), random.uniform(-3, 3)
    print("in" if x * x + y * y < 4 else "out", "1:%r 2:%r" % (x, y))' >plane.libsvm
run 0 svm train -q -g 1 -c 10 --report page.html plane.libsvm m.model
for words in "Regions" "Residual over" "Training rows by class" "Decision values" "<svg"; do
    grep -q "$words" page.html || fail "the page has no '$words'"
done
grep -q "<script\|http" page.html && fail "the page is not of one file"
run 0 svm train -q -s c_svc --report page.html three.libsvm m.model
grep -q "Residual over" page.html && fail "a page of residuals that there are none of"
run 2 svm train --report m.model two.libsvm m.model
run 5 svm train --report none/page.html two.libsvm m.model

# ---- models both ways ----
if command -v svm-train >/dev/null; then
    svm-train -q -t 4 values.libsvm theirs.model
    svm-predict values_test.libsvm theirs.model theirs >/dev/null
    run 0 svm predict values_test.libsvm theirs.model ours
    cmp -s ours theirs || fail "a precomputed model of svm-train: other answers"
    svm-predict values_test.libsvm m.model theirs >/dev/null
    for kernel in 0 1 2 3; do
        svm-train -q -t $kernel -g 0.02 three.libsvm theirs.model
        svm-predict test.libsvm theirs.model theirs >/dev/null
        run 0 svm predict test.libsvm theirs.model ours
        cmp -s ours theirs || fail "a model of svm-train, kernel $kernel: other answers"
        [ $kernel = 3 ] && continue
        run 0 svm train -q -t $kernel -g 0.02 three.libsvm own.model
        svm-predict test.libsvm own.model theirs >/dev/null
        run 0 svm predict test.libsvm own.model ours
        cmp -s ours theirs || fail "svm-predict answers otherwise, kernel $kernel"
    done
    for type in 1 2 3 4; do
        svm-train -q -s $type -n 0.2 two.libsvm theirs.model
        svm-predict test.libsvm theirs.model theirs >theirs.said
        run 0 svm predict test.libsvm theirs.model ours
        ask near ours theirs ||
            fail "a model of svm-train -s $type: other answers"
    done
    for data in two three reg; do
        svm-scale -l -0.5 -u 2 -s their.range $data.libsvm >theirs 2>/dev/null
        run 0 svm scale -l -0.5 -u 2 -s own.range $data.libsvm
        cmp -s out theirs && cmp -s own.range their.range ||
            fail "svm scale $data: other bytes than svm-scale"
        svm-scale -r their.range test.libsvm >theirs 2>/dev/null
        run 0 svm scale -r own.range test.libsvm
        cmp -s out theirs || fail "svm scale -r $data: other bytes than svm-scale"
    done
    svm-predict reg.libsvm m.model theirs >/dev/null || fail "svm-predict refuses a model"
fi

# ---- the same model for any budget, threads, instruction set ----
run 0 svm train --json -e 1e-8 large.libsvm l.model
want=$(sha)
json 'j["residual"] <= 1e-8 and j["stored_share"] == 1 and j["support_vectors"] == 1100'
# A sanitizer's own memory is in no plan.
grep -qE '__(asan|msan|tsan)_init' "$STINT" ||
    json '0 < j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
for how in "-j 1" "-j 3" "-l implicit" "-j 3 -l implicit"; do
    # shellcheck disable=SC2086
    run 0 svm train --json -e 1e-8 $how large.libsvm l.model
    [ "$(sha)" = "$want" ] || fail "$how changes the model"
done
for isa in ref avx2; do
    STINT_ISA=$isa run 0 svm train --json -e 1e-8 large.libsvm l.model
    [ "$(sha)" = "$want" ] || fail "STINT_ISA=$isa changes the model"
done
run 0 svm plan --json large.libsvm
smallest=$(value smallest_bytes)
# ---- the time that is expected: more without tiles, with folds, of a longer way ----
# Rates are measured, beside whatever else the machine does: one of three pairs is enough.
more() { # TIMES OPTION...
    local times=$1 less try
    shift
    for try in 1 2 3; do
        run 0 svm plan --json large.libsvm
        less=$(value expected_s)
        run 0 svm plan --json "$@" large.libsvm
        python3 -c 'import sys; a, b, c = map(float, sys.argv[1:]); sys.exit(a <= b * c)' \
            "$(value expected_s)" "$times" "$less" && return
    done
    fail "$*: expected $(value expected_s) s, not more than $times times $less s"
}
json '0 < j["expected_s"] < 60'
more 1 -l implicit -e 1e-9
more 2 -v 10 -l implicit
more 1 -s c_svc -v 10
run 0 svm plan large.libsvm
says out "expected, reading and writing included"
run 0 svm plan --json -i 1 large.libsvm # not to be solved
json 'j["expected_s"] is None'
run 3 svm plan --json --memory 1M large.libsvm
for extra in 0 1000000 2500000; do
    run 0 svm train --json -e 1e-8 --memory $((smallest + extra)) large.libsvm l.model
    [ "$(sha)" = "$want" ] || fail "a budget of $extra more changes the model"
    # Sanitizers hold memory of their own.
    nm "$STINT" 2>/dev/null | grep -q __asan_init ||
        json "j['peak_rss_bytes'] <= $((smallest + extra))"
done
run 3 svm train --memory $((smallest - 2000000)) large.libsvm none.model
says err "--memory"
run 3 svm train --memory 1M large.libsvm none.model
[ ! -e none.model ] || fail "a refused training leaves a model"

# ---- probabilities, too: folds make their rows alike, whatever is kept ----
for type in ls_svc c_svc; do
    run 0 svm train --json -s $type -b 1 -g 0.1 three.libsvm p.model
    want_folds=$(sha)
    run 0 svm plan --json -s $type -b 1 -g 0.1 three.libsvm
    for how in "-m 0.1" "--memory $(value smallest_bytes)"; do
        # shellcheck disable=SC2086
        run 0 svm train --json -s $type -b 1 -g 0.1 $how three.libsvm p.model
        [ "$(sha)" = "$want_folds" ] || fail "-s $type -b 1 $how changes the model"
    done
done
run 0 svm train --json -b 1 -g 0.1 three.libsvm p.model
want_folds=$(sha)
run 0 svm train --json -b 1 -g 0.1 -l implicit three.libsvm p.model
[ "$(sha)" = "$want_folds" ] || fail "-b 1 -l implicit changes the model"

# ---- the same model for several processes ----
for ranks in 2 3; do
    for data in "large.libsvm" "three.libsvm" "-a oaa three.libsvm" "-l implicit large.libsvm"; do
        case "$ranks $data" in "3 three.libsvm" | "2 -a"*) full || continue ;; esac
        # shellcheck disable=SC2086
        run 0 svm train --json -e 1e-8 $data alone.model
        want_ranks=$(sha)
        rm -f ranks.model
        pids=
        for rank in $(seq 1 $((ranks - 1))); do
            # shellcheck disable=SC2086
            "$STINT" svm train -q -e 1e-8 --net-root @svm$$ --net-ranks $ranks --net-rank "$rank" \
                $data none.model >rank.out 2>rank.err &
            pids="$pids $!"
        done
        # shellcheck disable=SC2086
        run 0 svm train --json -e 1e-8 --net-root @svm$$ --net-ranks $ranks $data ranks.model
        for pid in $pids; do wait "$pid" || fail "a rank fails: $(cat rank.err)"; done
        [ "$(sha)" = "$want_ranks" ] || fail "$ranks ranks change the model of $data"
        [ ! -e none.model ] || fail "rank 1 writes a model"
    done
done

# ---- folds within a budget: those of -v, of -b 1, of a grid ----
for how in "train -v 3" "train -b 1" "train -s c_svc -b 1 -v 2" "train -s epsilon_svr -v 2" \
    "grid -v 3 --log2c 1,1,1 --log2g -4,-4,1"; do
    options=${how#* }
    case $how in grid*) options="-v 3 -c 2" ;; esac
    # shellcheck disable=SC2086
    run 0 svm plan --json $options large.libsvm
    json 'sum(p["bytes"] for p in j["parts"] if p["name"] == "folds") > 1100 * 64'
    folds=$(value smallest_bytes)
    # A sanitizer's own memory is in no plan, and grows from fold to fold.
    grep -qE '__(asan|msan|tsan)_init' "$STINT" && continue
    $python - "$folds" "$STINT" svm ${how%% *} -q ${how#* } --memory "$folds" large.libsvm \
        >out 2>err <<'END' || fail "svm $how in $folds bytes: $(cat out err)"
import resource, subprocess, sys
limit, command = int(sys.argv[1]), sys.argv[2:]
if "train" in command and "-v" not in command:
    command.append("folds.model")
done = subprocess.run(command)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
if done.returncode or peak > limit:
    sys.exit("status %d, peak %d" % (done.returncode, peak))
END
done

# ---- predictions within a budget: fewer threads, the same answers ----
run 0 svm predict -j 3 --json large.libsvm l.model want --values want.npy
peak=$(value planned_peak_bytes)
for less in 0 1000000 1800000; do
    run 0 svm predict -j 3 --json --memory $((peak - less)) large.libsvm l.model got \
        --values got.npy
    cmp -s want got && cmp -s want.npy got.npy || fail "a budget changes answers"
    nm "$STINT" 2>/dev/null | grep -q __asan_init ||
        json "j['peak_rss_bytes'] <= $((peak - less))"
done
run 3 svm predict --memory $((peak - 2400000)) large.libsvm l.model got
says err "--memory"
run 3 svm predict --memory 2M large.libsvm l.model none
[ ! -e none ] || fail "a refused prediction leaves answers"

# ---- sparse rows stay sparse: 2,000 x 100,000 would be 1.6 GB ----
run 0 svm train --json -g 0.01 wide.libsvm w.model
nm "$STINT" 2>/dev/null | grep -q __asan_init || json 'j["peak_rss_bytes"] < 150e6'

# Features by hashed indices up to 2^31: those present count, and nothing else.
$python -c '
import random
random.seed(5)
rows = [(i % 2, sorted({7 if i % 2 else 2000000000, *random.sample(range(1, 2**31 - 2), 9)}))
        for i in range(200)]
place = {c: i + 1 for i, c in enumerate(sorted({c for _, columns in rows for c in columns}))}
with open("hashed.libsvm", "w") as hashed, open("packed.libsvm", "w") as packed:
    for y, columns in rows:
        value = [random.random() for _ in columns]
        hashed.write("%d %s\n" % (y, " ".join("%d:%r" % p for p in zip(columns, value))))
        packed.write("%d %s\n" % (y, " ".join("%d:%r" % (place[c], v)
                                              for c, v in zip(columns, value))))'
for how in "-t linear" "-g 0.5" "-t laplacian -g 0.5" "-s c_svc -g 0.5" "-v 3 -g 0.5"; do
    for data in hashed packed; do
        case $how in
        -v*) # shellcheck disable=SC2086
            run 0 svm train $how $data.libsvm && cp out $data.values ;;
        *)  # shellcheck disable=SC2086
            run 0 svm train --json $how $data.libsvm $data.model
            nm "$STINT" 2>/dev/null | grep -q __asan_init || json 'j["peak_rss_bytes"] < 60e6'
            run 0 svm predict $data.libsvm $data.model answers --values $data.values ;;
        esac
    done
    cmp -s hashed.values packed.values || fail "$how: hashed indices change values"
done

# ---- refusals ----
bad() { # STATUS WORDS TEXT
    printf "$3" >bad.libsvm
    run "$1" svm train bad.libsvm none.model
    says err "$2"
}
bad 4 "bad.libsvm:2" '1 1:1\n1 2:1 2:3\n'
bad 4 "bad.libsvm:2" '1 1:1\n2 1:nan\n'
bad 4 "bad.libsvm:1" 'nan 1:1\n2 1:1\n'
bad 4 "bad.libsvm:2: no label" '1 1:1\n1:1\n'
bad 4 "bad.libsvm:1" '1 x:1\n'
bad 4 "one class" '1 1:1\n1 1:2\n'
bad 4 "no labels" '1:1\n1:2\n'
bad 4 "holds no rows" ''
bad 4 "no row has a feature" '1\n2\n'
run 0 data info bad.libsvm
says out "2 rows of 0 features"
bad 4 "bad.libsvm:2" '1 1:1\n2 2147483647:1\n'
bad_weights() { # WORDS TEXT
    printf "$2" >bad.weights
    run 4 svm train --weights bad.weights words.libsvm none.model
    says err "$1"
}
printf 'a 1:1\nb 1:2\n' >words.libsvm
bad_weights "bad.weights: 1 weights" '1\n'
bad_weights "bad.weights:3" '1\n2\n3\n'
bad_weights "bad.weights:2: '0'" '1\n0\n'
bad_weights "bad.weights:2" '1\nnan\n'
bad_weights "bad.weights:1" '1 2\n1\n'
grep -q 'words.libsvm' err && fail "weights complain of the data: $(cat err)"
run 2 svm train --weights bad.weights words.libsvm bad.weights
says err "written over"
run 2 svm train --weights bad.weights --report bad.weights words.libsvm none.model
says err "written over"
run 5 svm train --weights none.weights words.libsvm none.model
run 4 svm train -t chi_squared two.libsvm none.model
says err "two.libsvm:13: "
says err "is negative"
run 4 svm train -t precomputed two.libsvm none.model
says err "two.libsvm:1: no index 0; a precomputed kernel"
printf '@relation r\n@attribute a numeric\n@attribute class {x,y}\n@data\n1,x\n-2,y\n' >neg.arff
run 4 svm train -t chi_squared neg.arff none.model
says err "neg.arff: row 2: 1:-2 is negative"
for option in "-g 0" "-c 0" "-e 0" "-d -1" "-s ls" "-t 9" "--weights x=1" "--weights 1=0" "--rank -1" \
    "--rank x" "-t 5"; do
    # shellcheck disable=SC2086
    run 2 svm train $option two.libsvm none.model
done
run 2 svm train -c 0 -e -1 -n 2 -d -1 -g x two.libsvm none.model # all at once
for words in "-c 0" "-e -1" "-n 2" "-d -1" "-g x"; do says err "$words"; done

# ---- a device, which this build or machine may not have ----
STINT_CUDA_PLUGIN=/nowhere/none.so run 8 svm train --device cuda two.libsvm none.model
says err "/nowhere/none.so cannot be used"
says err "--device cpu"
STINT_CUDA_PLUGIN=$STINT run 8 svm plan --device cuda two.libsvm
run 2 svm train -s 0 -l explicit --device cuda two.libsvm none.model
says err "not for -s c_svc"
says err "against -l explicit"
run 2 svm train -t laplacian --device cuda two.libsvm none.model
says err "not of -t laplacian"
[ ! -e none.model ] || fail "a device that is not there leaves a model"

run 0 svm plan --net-ranks 2 two.libsvm
run 1 svm train -e 1e-12 -i 2 two.libsvm none.model
says err "after 2 iterations"
run 1 svm train -t sigmoid -g 5 two.libsvm none.model
says err "not positive definite"
[ ! -e none.model ] || fail "a failed training leaves a model"
run 0 svm train -q two.libsvm m.model
printf '1 1:1\n1 1:1 99:2\n' >more.libsvm
run 4 svm predict more.libsvm m.model answers
says err "more.libsvm:2: index 99"
head -20 m.model >cut.model
run 4 svm predict test.libsvm cut.model answers
for less in 1 2 3 4; do # of the last row, which may still be numbers
    head -c -$less m.model >cut.model
    run 4 svm predict test.libsvm cut.model answers
    says err "cut.model"
done
run 2 svm train -v 2 --report folds.html two.libsvm
says err "makes none"
run 2 svm grid --report folds.html two.libsvm
says err "makes none"
[ ! -e folds.html ] || fail "folds leave a page"
sed 's/^total_sv .*/total_sv 7/' m.model >other.model
run 4 svm predict test.libsvm other.model answers
says err "other.model:"
run 2 svm predict test.libsvm m.model test.libsvm
run 2 svm predict test.libsvm m.model answers --values answers
says err "both answers"
run 2 svm scale -l 1 -u 1 two.libsvm
printf 'x\n0 1\n2 1\n' >bad.range
run 4 svm scale -r bad.range two.libsvm
says err "bad.range:3"
printf 'y\n0 1\n1 0\nx\n0 1\n' >bad.range
run 4 svm scale -r bad.range two.libsvm
says err "bad.range:3"
printf 'y\n0 1\n0 1\n' >bad.range
run 4 svm scale -r bad.range two.libsvm
says err "a line 'x'"
printf 'y\n0 1\n0 1\nx\n0 1\n' >bad.range
run 0 svm scale -r bad.range two.libsvm

# ---- tables there and back ----
run 0 data table words.arff --out words.libsvm
run 0 data table words.libsvm --out again.arff
run 0 data table again.arff --out again.libsvm
cmp -s words.libsvm again.libsvm || fail "words.arff changes on its way"
grep -q '^big 1:0.1 2:-3$' words.libsvm || fail "words.libsvm: $(cat words.libsvm)"
printf '@relation r\n@attribute a string\n@data\n' >bad.arff
run 4 data check bad.arff
says err "bad.arff:2"
printf '0:1 2:3\n' >zero.libsvm
run 0 data info zero.libsvm
says err "count from 0"

# ---- the example of the page ----
mkdir example
sed -n '/svm example/,/<!-- end/s/^    stint //p' "$STINT_SOURCE/docs/svm.md" >commands
[ "$(wc -l <commands)" -eq 13 ] || fail "docs/svm.md has another number of commands"
cd example || exit 1
while read -r line; do
    # shellcheck disable=SC2086
    run 0 $line
    case $line in "svm predict"*) says out "Accuracy = " ;; esac
done <../commands
finish
