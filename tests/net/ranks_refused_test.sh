# Ranks that are not about to do the same, and other slips: refused before anything is
# written, with a message that names both sides.
. "$(dirname "$0")/ranks_lib.sh"

# two ARGUMENTS-OF-RANK-0 -- ARGUMENTS-OF-RANK-1; STATUS first
two() {
    local want=$1 root
    shift
    root=127.0.0.1:$(port)
    pids=()
    "$STINT" train net.ini --out two --quiet --net-root "$root" --net-ranks 2 --net-rank 1 \
        --net-timeout 5s $2 >out.1 2>err.1 </dev/null &
    pids[1]=$!
    "$STINT" train net.ini --out two --quiet --net-root "$root" --net-ranks 2 --net-rank 0 \
        --net-timeout 5s $1 >out.0 2>err.0 </dev/null &
    pids[0]=$!
    all_end "$want"
    [ ! -e two ] || fail "a folder was made"
}

two 2 "--lr 0.1" "--lr 0.2"
speaks 0 "rank 1 ("
speaks 0 "another recipe than rank 0 ("
speaks 0 "optimizer.lr (rank 1 0.2, rank 0 0.1)"

# What leaves the weights as they are, but has all ranks meet at some steps.
two 2 "--set train.eval_every=1" "--set train.eval_every=2"
speaks 0 "train.eval_every 1, run.checkpoint_every 5 on rank 0 ("
speaks 0 "train.eval_every 2, run.checkpoint_every 5 on rank 1 ("
two 2 "" "--set run.checkpoint_every=3"
speaks 0 "run.checkpoint_every 3 on rank 1 ("
two 2 "--set schedule.name=constant" "--set schedule.name=constant --set train.steps=9"
speaks 0 "12 steps, "
speaks 0 "9 steps, "

# Gradients of several ranks are summed before anything changes.
two 8 "--set update.at_once=true" "--set update.at_once=true"
speaks 0 "update.at_once: is for one process"

# The same recipe beside another model.
for seed in 1 2; do
    "$STINT" train net.ini --out teacher$seed --quiet --seed $seed --set train.steps=1 >out || fail "a teacher"
done
for what in reference start; do
    two 2 "--$what teacher1" "--$what teacher2"
    speaks 0 "models: "
    speaks 0 "$what "
done

python3 "$STINT_SOURCE/tests/cli/cli_data.py" other 12 96 24
two 2 "" "--data other"
speaks 0 "data: "
speaks 0 "on rank 1 ("

# As many images of the same classes, but others.
cp -r data same && python3 - <<'PY'
with open("same/train-images-idx3-ubyte", "r+b") as f:
    f.seek(16 + 12 * 12) # of the second image
    f.write(bytes(12 * 12))
PY
two 2 "" "--data same"
speaks 0 "labels and pixels"

# Another build: the file has a byte more, which is all that it takes.
cp "$STINT" other_stint && printf x >>other_stint
root=127.0.0.1:$(port)
pids=()
./other_stint net check --net-root "$root" --net-ranks 2 --net-rank 1 >out.1 2>err.1 &
pids[1]=$!
"$STINT" net check --net-root "$root" --net-ranks 2 --net-rank 0 >out.0 2>err.0 &
pids[0]=$!
all_end 2
for rank in 0 1; do
    speaks $rank "rank 1 ("
    speaks $rank "another build of Stint than rank 0 ("
    speaks $rank "$(sha256sum other_stint | head -c 16), not $(sha256sum "$STINT" | head -c 16);"
done
# One whose messages are of a version of their own.
"$STINT" net check --net-root "$root" --net-ranks 2 --net-rank 0 2>err.0 &
pids=([0]=$!)
python3 - "$root" <<'PY'
import socket, struct, sys, time
host, port = sys.argv[1].split(":")
for _ in range(200):
    try:
        s = socket.create_connection((host, int(port)))
        break
    except OSError:
        time.sleep(0.05)
s.sendall(b"stintnet" + struct.pack("<IIII", 2, 2, 1, 2) + bytes(16))
s.recv(1)
PY
all_end 2
speaks 0 "its messages are of version 2, these of "

# Another command.
root=127.0.0.1:$(port)
pids=()
"$STINT" net measure --net-root "$root" --net-ranks 2 --net-rank 1 >out.1 2>err.1 &
pids[1]=$!
"$STINT" train net.ini --out unmet --net-root "$root" --net-ranks 2 --net-rank 0 >out.0 2>err.0 &
pids[0]=$!
all_end 2
for rank in 0 1; do
    speaks $rank "another command runs there: rank 1 ("
    speaks $rank "is of \`stint net measure\`, rank 0 ("
    speaks $rank "of \`stint train\`"
done
[ ! -e unmet ] || fail "a run of no ranks left something behind"

two 2 "" "--resume"
speaks 0 "no --resume, 12 steps"

two 4 "" "--data nowhere"
speaks 0 "nowhere"

two 3 "" "--memory 4M"
speaks 0 "memory: needs"

two 2 "--batch auto --memory 1G" "--batch auto --memory 1G"
speaks 0 "give a number by --batch"

two 2 "--shards 1" "--shards 1"
speaks 0 "cannot be shared out to 2 processes; start at most 1"

# Many ranks hear of it along a tree, some later than others: none takes the others for
# lost meanwhile.
for try in 1 2; do
    begin 9 net.ini --out nine
    all_end 2
    cat err.[1-8] >err
    [ ! -s err ] || fail "other ranks than 0 speak: $(cat err)"
done

# The command line.
run 2 train net.ini --net-ranks 2
says err "--net-root HOST:PORT"
run 2 train net.ini --net-root 127.0.0.1:29999
says err "--net-ranks N --net-rank R"
run 2 train net.ini --net-root 127.0.0.1:29999 --net-ranks 2 --net-rank 2
says err "is not from 0 to 1"
run 2 train net.ini --net-root here --net-ranks 2 --net-rank 0
says err "'here' is no HOST:PORT"
run 2 train net.ini --net-root 127.0.0.1:0 --net-ranks 2 --net-rank 0
says err "is no HOST:PORT"
run 6 train net.ini --net-root 192.0.2.1:29999 --net-ranks 2 --net-rank 0
says err "cannot listen on 192.0.2.1"

# Names that this host knows.
long=$(printf 'a%.0s' {1..65})
for name in @ "@a b" "@$long" "@a/b" "@:1"; do
    run 2 train net.ini --net-root "$name" --net-ranks 2 --net-rank 0
    says err "'$name' is no @NAME of 1 to 64 letters"
done
root=@$(basename "$work")-${long:30}
"$STINT" train net.ini --out taken --quiet --net-root "$root" --net-ranks 2 --net-rank 0 \
    >out.0 2>err.0 </dev/null &
pids=([0]=$!)
until_name "$root"
run 6 train net.ini --out elsewhere --net-root "$root" --net-ranks 2 --net-rank 0
says err "cannot meet others at $root: a run of this host has taken this name"
run 6 train net.ini --out elsewhere --net-root "$root-" --net-ranks 2 --net-rank 1 \
    --net-timeout 300ms
says err "at $root- within 300 ms; is it started, and is this its host?"
[ ! -e elsewhere ] || fail "a folder was made"
"$STINT" train net.ini --out taken --quiet --net-root "$root" --net-ranks 2 --net-rank 1 \
    >out.1 2>err.1 </dev/null &
pids[1]=$!
all_end 0

# A stranger at the door does no harm.
root=$(port)
"$STINT" train net.ini --out guests --quiet --net-root "127.0.0.1:$root" --net-ranks 2 \
    --net-rank 0 >out.0 2>err.0 </dev/null &
pids=([0]=$!)
python3 - "$root" <<'PY'
import socket, sys, time
for word in (b"GET / HTTP/1.0\r\n\r\n" + b"x" * 40, b"stintnet" + b"\xff" * 32, b"x"):
    for _ in range(200):
        try:
            s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            break
        except OSError:
            time.sleep(0.05)
    s.sendall(word)
    s.close()
PY
"$STINT" train net.ini --out guests --quiet --net-root "127.0.0.1:$root" --net-ranks 2 \
    --net-rank 1 >out.1 2>err.1 </dev/null &
pids[1]=$!
all_end 0

# A rank that dies while others are waited for may be started again; one that lives may not
# be there twice.
root=127.0.0.1:$(port)
started() { # RANK
    "$STINT" train net.ini --out again --quiet --net-root "$root" --net-ranks 3 \
        --net-rank "$1" >"out.$1" 2>"err.$1" </dev/null &
    pids[$1]=$!
}
met() { # a rank has reached rank 0 (state 01 of /proc/net/tcp: established)
    for _ in $(seq 200); do
        grep -q ":$(printf %04X "${root##*:}") 01 " /proc/net/tcp && return
        sleep 0.02
    done
    fail "nobody meets rank 0"
}
pids=()
started 0
started 1
met
sleep 0.3
kill -KILL "${pids[1]}"
wait "${pids[1]}" 2>/dev/null
started 2 # the dead one does not make them complete
sleep 0.3
started 1
all_end 0

# Started by a launcher, but without the plug-in.
export OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 STINT_MPI_PLUGIN=/nowhere/libstint_mpi.so
run 8 train net.ini --out none
says err "/nowhere/libstint_mpi.so cannot be used"
says err "--net-root HOST:PORT"

finish
