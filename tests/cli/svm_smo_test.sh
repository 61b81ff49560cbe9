# LIBSVM's machines in stint svm: conditions of optimality by NumPy, answers beside those
# of svm-train, folds, probabilities, the grid, svm-train's flags and names.
. "$(dirname "$0")/cli_lib.sh"
. "$(dirname "$0")/svm_lib.sh"
cd "$work" || exit 1
oracles svm_smo_data.py || { fail "no NumPy"; finish; }
for name in train predict scale; do ln -s "$STINT" "svm-$name"; done # found by ./svm-train alone
theirs=
command -v svm-train >/dev/null && theirs=yes

# ---- solved, by the model file alone; large: several working sets ----
number=-1
for type in c_svc nu_svc one_class epsilon_svr nu_svr; do
    number=$((number + 1))
    for size in small large; do
        table=${size}2
        case $type in *svr) table=${size}r ;; esac
        run 0 svm train --json -s $type -g 0.2 -c 2 -n 0.3 -p 0.2 -e 1e-6 $table m.model
        ask kkt $type $table m.model 2 0.3 0.2 1e-6 || fail "$type $table is not solved"
        [ $theirs ] || continue
        svm-train -s $number -g 0.2 -c 2 -n 0.3 -p 0.2 -e 1e-6 $table t.model >said
        run 0 svm train -s $type -g 0.2 -c 2 -n 0.3 -p 0.2 -e 1e-6 $table m.model
        limit=1e-6
        [ $type = nu_svc ] && limit=1e-5 # svm-train prints six decimals of a small number
        for who in said out; do # of nu_svc without its scale, which is only as sure as -e
            awk '/^C = / { c = $3 } /^obj = / { sub(",", "", $3); print c ? $3 / c / c : $3 }' \
                $who >$who.objective
        done
        ask near out.objective said.objective "$limit" ||
            fail "$type $table: objective $(cat out.objective), svm-train's $(cat said.objective)"
        run 0 svm train --json -s $type -g 0.2 -c 2 -n 0.3 -p 0.2 -e 1e-6 $table m.model
        awk -v own="$(value support_vectors)" '/^nSV = / { n = $3 + 0; d = own - n
            exit !(d * d <= 4) }' said ||
            fail "$type $table: $(value support_vectors) support vectors: $(grep ^nSV said)"
        run 0 svm predict $table m.model a --values own.npy
        run 0 svm predict $table t.model b --values their.npy
        ask near own.npy their.npy 1e-4 || fail "$type $table: other values than svm-train's"
    done
done
run 0 svm train -q -s 0 -g 0.2 -e 1e-6 sparse2 m.model
ask kkt c_svc sparse2 m.model 1 0 0 1e-6 || fail "sparse rows are not solved"

# ---- the same model for any room, threads, instruction set; shrinking ends as well ----
run 0 svm train --json -s 0 -g 0.2 -c 50 -e 1e-4 large3 m.model
want=$(sha)
for how in "-j 1" "-j 3" "-m 0.1" "-m 2 -j 2"; do
    # shellcheck disable=SC2086
    run 0 svm train --json -s 0 -g 0.2 -c 50 -e 1e-4 $how large3 m.model
    [ "$(sha)" = "$want" ] || fail "$how changes the model"
done
for isa in ref avx2; do
    STINT_ISA=$isa run 0 svm train --json -s 0 -g 0.2 -c 50 -e 1e-4 large3 m.model
    [ "$(sha)" = "$want" ] || fail "STINT_ISA=$isa changes the model"
done
run 0 svm plan --json -s 0 large3
smallest=$(value smallest_bytes)
run 0 svm train --json -s 0 -g 0.2 -c 50 -e 1e-4 --memory "$smallest" large3 m.model
[ "$(sha)" = "$want" ] || fail "the smallest budget changes the model"
grep -qE '__(asan|msan|tsan)_init' "$STINT" || json "j['peak_rss_bytes'] <= $smallest"
run 3 svm train -s 0 --memory $((smallest - 2000000)) large3 none.model
says err "--memory"
run 0 svm train --json -s 0 -h 0 -g 0.2 -c 50 -e 1e-6 large2 m.model
objective=$(value objective)
run 0 svm train --json -s 0 -h 1 -g 0.2 -c 50 -e 1e-6 large2 m.model
json "abs(j['objective'] - $objective) < 1e-6 * abs($objective)"

# ---- svm-train's flags ----
run 0 svm train -q -s 0 -w1 2 -w-1 5 small2 a.model
silent out
run 0 svm train -q -s 0 -w 1=2,-1=5 small2 b.model
cmp -s a.model b.model || fail "-w1 2 is not -w 1=2"
run 0 svm train -q -s 0 small2 c.model
cmp -s a.model c.model && fail "weights change nothing"
run 0 svm train -h
says out "--shrinking"
run 0 svm train -s 0 -h
says out "--shrinking"
awk '{ print 1 + NR % 3 }' small2 >points
run 0 svm train -q -s 0 --weights points small2 b.model
cmp -s b.model c.model && fail "weights of points change nothing"
run 0 svm train -s 0 small2 c.model
for line in "^optimization finished, #iter = [0-9]*$" "^nu = 0\.[0-9]*$" "^obj = -[0-9.]*, rho = " \
    "^nSV = [0-9]*, nBSV = [0-9]*$" "^Total nSV = [0-9]*$"; do
    grep -q "$line" out || fail "no line $line"
done
./svm-train -q small2 d.model || fail "svm-train is no name of stint"
cmp -s c.model d.model || fail "svm-train is not svm train -s c_svc"
./svm-predict -q small2 d.model a >out || fail "svm-predict is no name of stint"
silent out

# ---- folds and probabilities, beside svm-train's ----
run 0 svm train -v 4 small3
grep -q "^Cross Validation Accuracy = [0-9.]*%$" out || fail "no accuracy of folds of ls_svc"
run 0 svm train --json -s ls_svr -v4 smallr
json '0 < j["mse"] < 2 and j["scc"] > 0.7 and j["accuracy"] is None'
run 0 svm train -q -b 1 small3 l.model
run 0 svm predict -b 1 small3 l.model a
[ "$(head -1 a)" = "labels $(sed -n 's/^label //p' l.model)" ] && [ "$(wc -l <a)" = 241 ] ||
    fail "no probabilities of ls_svc"
awk 'NR > 1 { s = $2 + $3 + $4; if (s < 0.9999 || s > 1.0001) exit 1 }' a ||
    fail "probabilities are not 1 together"
run 4 svm predict -b 1 small2 c.model a
says err "no probabilities"
run 0 svm train -q -s one_class -n 0.4 -b 1 small2 o.model
[ "$(sed -n 's/^prob_density_marks //p' o.model | wc -w)" = 10 ] || fail "no ten marks"
run 0 svm predict -b 1 small2 o.model a
[ "$(head -1 a)" = "label normal outlier" ] || fail "no line of an outlier's labels"
if [ $theirs ]; then
    for type in 0 1 2 3 4; do
        table=small3
        [ $type -gt 1 ] && table=smallr
        [ $type = 2 ] && table=small2
        svm-train -q -s $type -n 0.3 -v 5 -e 1e-6 $table >a
        ./svm-train -q -s $type -n 0.3 -v 5 -e 1e-6 $table >b
        sed 's/= .*/=/' a >a.words && sed 's/= .*/=/' b >b.words
        cmp -s a.words b.words || fail "-s $type -v 5: $(cat a b)"
        sed 's/.*= //; s/%//' a >a.numbers && sed 's/.*= //; s/%//' b >b.numbers
        ask near a.numbers b.numbers 2e-5 || fail "-s $type -v 5: $(cat a b)"
        ./svm-train -q -s $type -n 0.3 $table own.model
        svm-predict $table own.model a >said.theirs
        ./svm-predict $table own.model b >said.own
        cmp -s said.theirs said.own || fail "-s $type: svm-predict says otherwise of our model"
        [ $type -gt 2 ] || cmp -s a b || fail "-s $type: svm-predict answers otherwise"
    done
    for table in small2 small3 smallr; do
        type=0
        [ $table = smallr ] && type=3
        svm-train -q -s $type -b 1 $table t.model
        ./svm-train -q -s $type -b 1 $table own.model
        for key in probA probB; do
            for who in t own; do sed -n "s/^$key //p" $who.model >$who.numbers; done
            [ -s t.numbers ] || continue
            ask near own.numbers t.numbers 1e-3 || fail "$table: another $key"
        done
        for model in t own; do
            svm-predict -b 1 $table $model.model a >said.theirs
            ./svm-predict -b 1 $table $model.model b >said.own
            cmp -s said.theirs said.own || fail "$table $model -b 1: $(cat said.theirs said.own)"
            [ $type = 3 ] || cmp -s a b || fail "$table $model -b 1: other bytes"
        done
    done
    svm-scale -y -1 2 -l 0 -s t.range smallr >a 2>/dev/null
    ./svm-scale -y -1 2 -l 0 -s own.range smallr >b
    cmp -s a b && cmp -s t.range own.range || fail "svm-scale -y: other bytes"
    svm-scale -r t.range small2 >a 2>/dev/null
    ./svm-scale -r t.range small2 >b
    cmp -s a b || fail "svm-scale -r with targets: other bytes"
fi

# ---- the grid ----
run 0 svm grid -s 0 --log2c -1,1,2 --log2g -1,-3,-2 -v 3 small3
[ "$(grep -c '^log2c=' out)" = 4 ] || fail "the grid has not four lines"
best=$(tail -1 out)
rate=$(sort -t= -k4 -n out | grep log2c | tail -1 | sed 's/.*rate=//')
[ "${best##* }" = "$rate" ] || fail "the best is '$best', the largest rate $rate"
c=$(echo "$best" | cut -d' ' -f1) g=$(echo "$best" | cut -d' ' -f2)
run 0 svm train -s 0 -v 3 -c "$c" -g "$g" small3
says out "Accuracy = $rate%"
run 0 svm grid --json --log2c 0,2,2 --log2g null -t linear -v 3 smallr -s ls_svr
json 'len(j["table"]) == 2 and j["best"]["rate"] == min(t["rate"] for t in j["table"])'
run 2 svm grid --log2c 1,0,1 small3
says err "STEP"

# ---- refusals ----
run 2 svm train -s 5 -g -1 -c 0 -e 0 -n 2 -d -1 -p -1 small2 none.model
for flag in "-s '5'" "-g -1" "-c 0" "-e 0" "-n 2" "-d -1" "-p -1"; do says err "$flag"; done
run 2 svm train -v 1 small2
run 2 svm train -s 0 -a oaa small2 none.model
run 2 svm train -s 0 -l implicit --rank 3 small2 none.model
says err "-l is for ls_svc"
says err "--rank is for ls_svc"
run 0 svm train -q -s 0 -t laplacian --report page.html small2 own.model
grep -q '<svg' page.html || fail "a page of c_svc has no charts"
run 0 svm predict small2 own.model a
run 2 svm train -b 1 -a oaa small2 none.model
run 2 svm train -s 1 -n 0.99 large2 none.model
says err "smaller class"
run 2 svm train -s 3 -w1 2 smallr none.model
run 2 svm scale -y 2 1 smallr
printf '1 1:1e300\n-1 1:-1e300\n2 1:3\n' >vast
for kernel in linear "polynomial -d 2"; do
    # shellcheck disable=SC2086
    run 1 svm train -s 0 -t $kernel vast none.model
    says err "too large for floats"
done
# Errors that all cost nothing leave no support vector.
run 0 svm train -q -s 3 -p 1e6 smallr empty.model
grep -q '^total_sv 0$' empty.model || fail "support vectors without a cost"
run 0 svm predict -q smallr empty.model a
[ "$(sort -u a | wc -l)" = 1 ] || fail "an empty machine has more than one answer"
run 1 svm train -s 0 -e 1e-9 -i 20 large2 none.model
says err "-i"
sed 's/^[^ ]* //' small2 >unlabelled
run 4 svm train -s 0 unlabelled none.model
run 0 svm train -q -s 2 unlabelled o.model
run 4 svm train -s 2 -v 5 unlabelled
[ ! -e none.model ] || fail "a refused training leaves a model"
printf 'mine\n' >kept.model
"$STINT" svm train -q -s 0 -e 1e-14 -c 1e6 -g 0.5 large3 kept.model 2>err &
pid=$!
sleep 0.3
kill -INT $pid 2>/dev/null
wait $pid
got=$?
# Who is faster than the signal has a model.
[ $got = 0 ] || { [ $got = 130 ] && [ "$(cat kept.model)" = mine ]; } ||
    fail "after SIGINT: status $got, $(head -1 kept.model)"
finish
