# Under mpirun, where there is one.
. "$(dirname "$0")/ranks_lib.sh"
command -v mpirun >/dev/null && [ -e "$STINT_BUILD/libstint_mpi.so" ] || exit 77
export ASAN_OPTIONS=detect_leaks=0 # Open MPI keeps what it allocates
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMP_NUM_THREADS=1
mpi() { # N ARGUMENT...
    local n=$1
    shift
    timeout 60 mpirun --oversubscribe -n "$n" "$STINT" "$@" </dev/null
}
mpi 1 train net.ini --out probe --quiet >out 2>err || {
    sed 's/^/mpirun does not run here: /' err >&2
    exit 77
}

"$STINT" train net.ini --out one --quiet --json >out || fail "one"
want=$(sha out)
# (A sanitizer's own memory is not planned.)
grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt" && exact=1 || exact=
# Never less than what is taken, be it by MPI at the start or by the run; nor much more.
planned_well() {
    [ ! "$exact" ] ||
        json "j['peak_rss_bytes'] <= j['planned_peak_bytes'] <= 1.15 * j['peak_rss_bytes']"
}
ldd "$STINT" | grep -q libmpi && fail "the program is linked with MPI"
for n in 2 3; do
    mpi $n train net.ini --out "of$n" --quiet --json >out 2>err || fail "$n: $(cat err)"
    json "j['ranks'] == $n"
    [ "$(sha out)" = "$want" ] || fail "$n ranks under mpirun: other weights"
    planned_well
    mpi $n train net.ini --out "wide$n" --set model.width=32 --steps 2 --quiet --json >out 2>err ||
        fail "wide, $n: $(cat err)"
    planned_well
done

mpi 9 train net.ini --out nine --quiet >out 2>err && fail "more ranks than shards"
says err "cannot be shared out to 9 processes; start at most 8"
[ "$(grep -c 'cannot be shared out' err)" -eq 1 ] || fail "more than one rank says it"

# Top-k of a file in parts: the answer of one process.
/usr/bin/python3 - <<'PY'
import struct
values = [(i * 7919 + 13) % 1009 - 500 for i in range(5003)]
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (5003,), }"
head += " " * (63 - (10 + len(head)) % 64) + "\n"
with open("x.npy", "wb") as f:
    f.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode())
    f.write(struct.pack("<5003f", *values))
PY
"$STINT" topk x.npy -k 40 --key abs --out best.npy --values best_values.npy || fail "topk"
mpi 3 topk x.npy -k 40 --key abs --out of3.npy --values of3_values.npy >out 2>err ||
    fail "topk on 3 ranks: $(cat err)"
cmp best.npy of3.npy && cmp best_values.npy of3_values.npy || fail "other winners on 3 ranks"
mpi 2 topk x.npy -k 2 --rows >out 2>err && fail "rows on several ranks"
[ "$(grep -c 'only one row can be shared out' err)" -eq 1 ] || fail "rows: $(cat err)"

# A rank that is killed: mpirun ends the others, but not before the checkpoint is saved.
# (Killed by number: the second process of this run, among the children of its mpirun.)
mpi 2 train net.ini --out dead --quiet --set train.steps=100000 >out 2>err &
job=$!
until_file 'dead/checkpoints/*5.safetensors'
for process in /proc/[0-9]*; do
    tr '\0' '\n' 2>/dev/null <"$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=1" &&
        tr '\0' ' ' <"$process/cmdline" | grep -qF "$STINT train net.ini --out dead" &&
        [ "$(readlink "$process/cwd")" = "$work" ] && kill -KILL "${process#/proc/}"
done
wait $job && fail "mpirun does not see it"
says err "rank 1 ("
says err "--resume goes on from it"

finish
