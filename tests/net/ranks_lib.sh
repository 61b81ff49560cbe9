# Sourced by the scripts here: runs of several processes on this host.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 12 160 24 || fail "no data"
cat >net.ini <<'INI'
[data]
path = data
size = 12
crop_pad = 2
flip = true
[model]
name = resnet8
[train]
steps = 12
batch = 32
shards = 8
seed = 7
[optimizer]
name = sgd
lr = 0.01
weight_decay = 5e-4
[schedule]
name = one-cycle
[run]
checkpoint_every = 5
INI

sha() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["weights_sha256"])' "$1"; }

# A port that nobody listens on, below those that the system gives to connections: one of
# them could be another's by the time that it is wanted.
port() {
    python3 -c 'import random, socket
while True:
    try:
        s = socket.socket(); s.bind(("127.0.0.1", random.randrange(10000, 32768)))
        break
    except OSError:
        s.close()
print(s.getsockname()[1])'
}

meetings=0
# begin N ARGUMENT...: N ranks in the background; pids, and out.R and err.R
begin() {
    local n=$1 root r
    shift
    root=@$(basename "$work")-$((++meetings))
    pids=()
    for ((r = n - 1; r >= 0; r--)); do
        "$STINT" train "$@" --quiet --net-root "$root" --net-ranks "$n" --net-rank "$r" \
            >out.$r 2>err.$r </dev/null &
        pids[r]=$!
    done
}

# ends RANK STATUS
ends() {
    local got=0
    wait "${pids[$1]}" || got=$?
    [ "$got" -eq "$2" ] || {
        fail "rank $1: status $got, wanted $2"
        head -5 "err.$1" >&2
    }
}

speaks() { # RANK WORDS: on stderr
    grep -qF -- "$2" "err.$1" || fail "rank $1 does not say '$2': $(cat "err.$1")"
}

all_end() { # STATUS: of all ranks
    local r
    for r in "${!pids[@]}"; do ends "$r" "$1"; done
}

until_name() { # NAME: until somebody waits there, 20 s at most
    for _ in $(seq 400); do
        grep -qF "stint-at-${1#@}" /proc/net/unix && return
        sleep 0.05
    done
    fail "nobody waits at $1"
}

until_file() { # PATTERN: until such a file is there, 20 s at most
    for _ in $(seq 400); do
        compgen -G "$1" >/dev/null && return
        sleep 0.05
    done
    fail "no $1 in time"
}
