# stint solve on several ranks: x of one process, messages as counted beforehand, a rank
# that is lost. solve_ranks_full_test.sh runs it with every form in every way.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
python=/usr/bin/python3 # Debian's, which has python3-numpy
$python "$STINT_SOURCE/tests/cli/solve_data.py" make || { fail "no NumPy"; finish; }
hash() { grep -o '"x_sha256": *"[^"]*' out; }
turn=0
every() { [ "${STINT_EVERY_FORM:-}" ]; }

# ranks STATUS COUNT ARGS: rank 0's words are in out and err.
ranks() {
    local status=$1 count=$2 r others=
    shift 2
    turn=$((turn + 1))
    for r in $(seq 1 $((count - 1))); do
        "$STINT" solve --net-root "@solve$$.$turn" --net-ranks "$count" --net-rank "$r" \
            "$@" >out.$r 2>err.$r </dev/null &
        others="$others $!"
    done
    run "$status" solve --net-root "@solve$$.$turn" --net-ranks "$count" --net-rank 0 "$@"
    for r in $others; do
        wait "$r"
        [ $? -eq "$status" ] || fail "another rank of $count, $*: not status $status"
    done
}

# ---- triangles: one hash ----
run 0 data matrix poisson2d:40 --out p.mtx
for form in "--triangle lower" "--triangle upper" "--triangle lower --transpose" \
    "--triangle upper --transpose --unit-diagonal" "--triangle lower --precision float"; do
    for rhs in "" "--rhs b11.npy"; do
        matrix=p
        [ "$rhs" ] && matrix=general
        run 0 solve $matrix.mtx $form $rhs --json
        wanted=$(hash)
        for way in "3 -j 2 --solves 3" "4 -j 1 --net-sockets --tasks 3 --solves 2" \
            "2 -j 1" "2 -j 1 --net-sockets"; do
            case "$way$rhs" in 2* | 3*3 | 4*npy) every || continue ;; esac
            ranks 0 $way $matrix.mtx $form $rhs --json
            [ "$(hash)" = "$wanted" ] || fail "$way, $matrix $form $rhs: another answer"
            json 'j["messages"] == j["planned_messages"] and j["bytes_sent"] == j["planned_bytes"]'
            case $way in
            *sockets*) [ $matrix = general ] || json 'j["messages"] > 0 and j["bytes_sent"] > 0' ;;
            *) json 'j["messages"] == 0 and j["ranks"] > 1' ;;
            esac
        done
    done
done
# rows cut at lines of a grid: few messages
run 0 data matrix poisson2d:300 --out grid.mtx
for form in "--triangle lower" "--triangle upper --transpose"; do
    run 0 solve grid.mtx $form --json
    wanted=$(hash)
    ranks 0 2 grid.mtx $form --json -j 1
    [ "$(hash)" = "$wanted" ] || fail "a grid on 2 ranks, $form: another answer"
    ranks 0 2 grid.mtx $form --json -j 1 --net-sockets
    [ "$(hash)" = "$wanted" ] || fail "a grid through sockets, $form: another answer"
    json 'j["messages"] == j["planned_messages"] and j["messages"] <= 2 * j["tasks"]'
done
STINT_SLEEPS=3 ranks 0 3 p.mtx --triangle lower -j 2 --out x.npy
STINT_SLEEPS=5 ranks 0 2 p.mtx --triangle lower -j 2 --net-sockets --out y.npy
cmp -s x.npy y.npy || fail "sleeping threads: another answer"
run 0 solve p.mtx --triangle lower --out z.npy
cmp -s x.npy z.npy || fail "--out of ranks: another answer"

# ---- Krylov's methods ----
for way in "spd" "spd --rhs b11.npy" "spd --precond gs" "spd --precond none" "general" \
    "general --method bicgstab --precond jacobi" "general --method bicgstab"; do
    set -- $way
    matrix=$1
    shift
    run 0 solve $matrix.mtx "$@" --json
    wanted=$(hash)
    if every; then
        ranks 0 2 $matrix.mtx "$@" --json -j 1
        [ "$(hash)" = "$wanted" ] || fail "$way on 2 ranks: another answer"
    fi
    case $way in *jacobi | *none) every || continue ;; esac
    threads=1
    every || [ "$way" = spd ] && threads=2
    ranks 0 3 $matrix.mtx "$@" --json -j $threads
    [ "$(hash)" = "$wanted" ] || fail "$way on 3 ranks: another answer"
done
# factors, their rows and their transposes also by messages
for way in "spd --precond gs" "spd" "spd --rhs b11.npy" "spd --method gmres --precond ilu0" "general"; do
    set -- $way
    matrix=$1
    shift
    run 0 solve $matrix.mtx "$@" --json
    wanted=$(hash)
    for count in 3 2; do
        case "$count $way" in 2* | *b11* | *gs) every || continue ;; esac
        ranks 0 $count $matrix.mtx "$@" --json --net-sockets -j 1
        [ "$(hash)" = "$wanted" ] || fail "$way through sockets: another answer"
    done
done
# rows renumbered: x, b and the residual of one process
same() { grep -oE '"(x_sha256|iterations|residual|backward_error|error)": *[^,}]*' out; }
run 0 data matrix geometric:700 --out road.mtx
for way in "road" "road --precond gs" "general --rhs b11.npy" "general --method bicgstab"; do
    case $way in *bicgstab) every || continue ;; esac
    set -- $way
    matrix=$1
    shift
    run 0 solve $matrix.mtx "$@" --order rcm --json
    wanted=$(same)
    run 0 solve $matrix.mtx "$@" --json
    [ "$(same)" != "$wanted" ] || fail "$way: --order rcm changes nothing"
    if every || [ "$way" = "road --precond gs" ]; then
        ranks 0 3 $matrix.mtx "$@" --order rcm --json -j 1
        [ "$(same)" = "$wanted" ] || fail "$way, --order rcm on 3 ranks: another answer"
        every || continue
    fi
    ranks 0 2 $matrix.mtx "$@" --order rcm --json -j 2 --net-sockets
    [ "$(same)" = "$wanted" ] || fail "$way, --order rcm through sockets: another answer"
done
ranks 3 2 road.mtx --order rcm --memory 8M -j 1

# ---- the page: what one process draws of the matrix, and the tasks of every rank ----
for way in "road --order rcm" "p --triangle upper" "general"; do
    case $way in general) every || continue ;; esac
    set -- $way
    matrix=$1
    shift
    run 0 solve $matrix.mtx "$@" --report one.html
    ranks 0 3 $matrix.mtx "$@" -j 1 --report many.html
    for page in one many; do # up to the tasks, without times
        sed -e '/>Tasks</,$d' -e '/analysis and factors/d' -e '/a solve</d' $page.html >$page.part
    done
    grep -q "Levels" one.part || fail "$way: a page without levels"
    cmp -s one.part many.part || fail "$way: ranks draw another matrix"
    for r in 0 1 2; do
        grep -q ">rank $r<" many.html || fail "$way: rank $r is not on the page"
    done
done
ranks 0 2 spd.mtx -j 1 --net-sockets --report many.html
ranks 0 2 spd.mtx -j 1 --precond jacobi --report many.html
! grep -q ">Tasks<" many.html || fail "tasks without a triangle"
ranks 1 2 spd.mtx --max-iter 2 -j 1 --out none.npy
says err "2 iterations"
[ ! -e none.npy ] || fail "an answer that did not converge is written"

# ---- refused by all ranks ----
ranks 8 2 spd.mtx --strategy level --triangle lower -j 1
ranks 4 2 short.npy -j 1
ranks 4 2 general.mtx --triangle lower --rhs short.npy -j 1
ranks 3 2 spd.mtx --memory 8M -j 1
says err "memory"
printf '%%%%MatrixMarket matrix coordinate real general\n3 3 3\n1 1 1\n3 3 1\n2 1 1\n' >bad.mtx
ranks 4 2 bad.mtx --triangle lower -j 1
says err "row 2 has no diagonal"
printf '%%%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n2 2 1\n2 2 3\n' >bad.mtx
ranks 4 2 bad.mtx -j 1
says err "row 2 has two entries"
ranks 0 2 bad.mtx -j 1 --duplicates sum
ranks 0 2 p.mtx --triangle lower --plan --json --net-sockets -j 1
json 'j["messages"] > 0 and j["bytes_sent"] > 8 * j["messages"] and j["ranks"] == 2'

# ---- a rank that is lost ----
for how in "" --net-sockets; do
    name=@lost$$$how
    for r in 1 2; do
        "$STINT" solve p.mtx --triangle lower --solves 1000000 -j 1 --net-root "$name" \
            --net-ranks 3 --net-rank $r $how >out.$r 2>err.$r </dev/null &
        eval "job$r=$!"
    done
    "$STINT" solve p.mtx --triangle lower --solves 1000000 -j 1 --net-root "$name" \
        --net-ranks 3 --net-rank 0 $how >out 2>err </dev/null &
    job0=$!
    sleep 0.5
    kill -9 "$job2"
    wait "$job0"
    [ $? -eq 6 ] || fail "rank 0 does not end with 6"
    says err "rank 2"
    wait "$job1"
    [ $? -eq 6 ] || fail "rank 1 does not end with 6"
    wait "$job2"
done

finish
