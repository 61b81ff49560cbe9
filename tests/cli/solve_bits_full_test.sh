# stint solve: every method and preconditioner against NumPy's dense answers; one hash
# whatever the strategy, threads and instruction set.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
python=/usr/bin/python3 # Debian's, which has python3-numpy
data="$STINT_SOURCE/tests/cli/solve_data.py"
$python "$data" make || { fail "no NumPy"; finish; }

# ---- Krylov's methods ----
for matrix in spd general spd_general; do
    for method in cg gmres bicgstab; do
        for precond in none jacobi gs ic0 ilu0; do
            case $matrix-$method-$precond in
            general-cg-* | general-*-ic0 | *-cg-ilu0) continue ;;
            esac
            for rhs in b.npy b11.mtx; do
                [ $matrix$rhs = spd_generalb.npy ] && continue
                [ $matrix$rhs = spdb11.mtx ] && [ $precond != ic0 ] && continue
                run 0 solve $matrix.mtx --method $method --precond $precond --rhs $rhs \
                    --out x.npy --tol 1e-11 --json
                json 'j["converged"] and j["residual"] <= 1e-11 and 0 < j["iterations"] < 60'
                echo "$matrix x.npy 1e-9" | $python "$data" check /dev/stdin ||
                    fail "$matrix $method $precond $rhs"
            done
        done
    done
done
# ---- one hash ----
run 0 data matrix poisson2d:60 --out p.mtx
hash() { $python -c 'import json,sys; print(json.load(sys.stdin)["x_sha256"])' <out; }
run 0 solve p.mtx --triangle lower --strategy natural -j 1 --json
wanted=$(hash)
for strategy in auto natural level pool superstep supernode; do
    for j in 1 2 3 8; do
        for isa in ref avx2 avx512; do
            [ $j != 3 ] && [ $isa != avx512 ] && continue
            STINT_ISA=$isa "$STINT" solve p.mtx --triangle lower --strategy $strategy \
                -j $j --json --solves 5 >out 2>err
            case $? in
            0) [ "$(hash)" = "$wanted" ] || fail "$strategy -j $j $isa: another answer" ;;
            8) ;; # not on this CPU
            *) fail "$strategy -j $j $isa: $(cat err)" ;;
            esac
        done
    done
done
STINT_SLEEPS=3 run 0 solve p.mtx --triangle lower --strategy pool -j 3 --json --solves 3
[ "$(hash)" = "$wanted" ] || fail "sleeping threads: another answer"
run 0 solve p.mtx -j 1 --json
wanted=$(hash)
for way in "-j 3" "-j 8 --strategy pool" "--strategy supernode" "--strategy superstep -j 2"; do
    run 0 solve p.mtx $way --json
    [ "$(hash)" = "$wanted" ] || fail "cg, $way: another answer"
done

finish
