# stint svm train --precision float: the same decision values as the dense solve in NumPy,
# residuals that hold in double, one model for any budget, threads, instruction set, ranks.
. "$(dirname "$0")/cli_lib.sh"
. "$(dirname "$0")/svm_lib.sh"
cd "$work" || exit 1
python=/usr/bin/python3 # Debian's, which has python3-numpy
oracles svm_data.py || { fail "no NumPy"; finish; }

for kernel in polynomial rbf laplacian; do
    for data in two three reg; do
        for how in oao oaa; do
            type=ls_svc
            [ $data = reg ] && type=ls_svr
            run 0 svm train --json --precision float -s $type -t $kernel -a $how -g 0.1 -r 1 \
                -d 2 -c 3 -e 1e-10 $data.libsvm m.model
            json 'j["precision"] == "float" and j["residual"] <= 1e-10'
            run 0 svm predict test.libsvm m.model answers --values values.npy
            ask check $data $kernel $how ||
                fail "$data $kernel $how is not the dense solution"
        done
    done
done
run 0 svm train --json --precision float -t linear two.libsvm m.model
json 'j["precision"] == "double"'

# ---- one model ----
train() { run 0 svm train --json --precision float -e 1e-8 "$@" large.libsvm l.model; }
train
want=$(sha)
train -j 1
[ "$(sha)" = "$want" ] || fail "threads change the model"
train -j 3 -l implicit
[ "$(sha)" = "$want" ] || fail "implicit tiles change the model"
for isa in ref avx2; do
    STINT_ISA=$isa train
    [ "$(sha)" = "$want" ] || fail "STINT_ISA=$isa changes the model"
done
run 0 svm plan --json --precision float large.libsvm
smallest=$(value smallest_bytes)
tiles() { $python -c '
import json
print(sum(p["bytes"] for p in json.load(open("out"))["parts"] if p["name"] == "tiles"))'; }
halved=$(tiles)
run 0 svm plan --json large.libsvm
[ $((2 * halved)) -eq "$(tiles)" ] || fail "tiles in float take $halved bytes"
for extra in 0 1000000; do
    train --memory $((smallest + extra))
    [ "$(sha)" = "$want" ] || fail "a budget of $extra more changes the model"
    grep -qE '__(asan|msan|tsan)_init' "$STINT" || # which hold memory of their own
        json "j['peak_rss_bytes'] <= $((smallest + extra))"
done
"$STINT" svm train -q --precision float -e 1e-8 --net-root @svmf$$ --net-ranks 2 --net-rank 1 \
    large.libsvm none.model >rank.out 2>rank.err &
train --net-root @svmf$$ --net-ranks 2
wait $! || fail "rank 1 fails: $(cat rank.err)"
[ "$(sha)" = "$want" ] || fail "two ranks change the model"

# ---- what it cannot do ----
run 1 svm train --precision float -t polynomial -g 3 -d 4 -r 1 -c 1e9 -e 1e-9 --rank 0 two.libsvm \
    none.model
says err "--precision double may do"
[ ! -e none.model ] || fail "a failed training leaves a model"
run 2 svm train -s c_svc --precision float two.libsvm none.model
says err "--precision is for ls_svc"
run 2 svm train --precision half two.libsvm none.model
finish
