# Ranks that die, stall, are stopped or are about to do something else: all others leave
# soon, with words that name the rank, and nothing is lost.
. "$(dirname "$0")/ranks_lib.sh"
# Evaluated at the end alone, so that what befalls them does in a step.
steps=(net.ini --set run.checkpoint_every=5 --set train.eval_every=0 --net-timeout 2s)
long=("${steps[@]}" --set train.steps=100000)

"$STINT" train net.ini --out whole --quiet --json --set train.steps=40 >out.0 || fail "whole"
want=$(sha out.0)
resumes() { # FOLDER [ARGUMENT...]: to the same weights as the run in one go
    [ -n "$(ls "$1/checkpoints")" ] || fail "$1: no checkpoint"
    local step
    step=$(ls "$1/checkpoints" | tail -1 | tr -dc 0-9)
    [ "$((10#$step))" -lt 40 ] || return 0 # this machine was fast
    begin 2 net.ini --out "$1" --resume --json --set train.steps=40 "${@:2}"
    all_end 0
    [ "$(sha out.0)" = "$want" ] || fail "$1: resumed to other weights"
}
short=("${steps[@]}" --set train.steps=40)

# Killed while a checkpoint is written, which is much for wide layers: rank 0, whose older
# ones stay; or the other one, while rank 0 goes on writing.
wide=(--set model.name=mlp --set model.width=500 --set run.checkpoint_every=1
    --set train.eval_every=1)
stopped() { grep -q '^State:.T' "/proc/${pids[0]}/status"; }
halt_writer() { # FOLDER: rank 0 stands still, half-way through a checkpoint
    while kill -0 "${pids[0]}" 2>/dev/null; do
        compgen -G "$1/checkpoints/*.part*" >/dev/null || continue
        kill -STOP "${pids[0]}"
        until stopped; do :; done
        compgen -G "$1/checkpoints/*.part*" >/dev/null && return
        kill -CONT "${pids[0]}"
    done
    fail "$1: no checkpoint was met half-written"
}
"$STINT" train "${short[@]}" "${wide[@]}" --out wide --quiet --json >out.0 || fail "wide"
narrow=$want want=$(sha out.0)
for victim in 0 1; do
    begin 2 "${short[@]}" "${wide[@]}" --net-timeout 30s --out writing$victim
    until_file "writing$victim/checkpoints/*[2-9].safetensors"
    halt_writer writing$victim
    kill -KILL "${pids[victim]}"
    wait "${pids[victim]}" 2>/dev/null
    [ $victim = 0 ] || kill -CONT "${pids[0]}"
    ends $((1 - victim)) 6
    speaks $((1 - victim)) "rank $victim ("
    speaks $((1 - victim)) "is gone"
    resumes writing$victim "${wide[@]}"
done
want=$narrow

# Killed: the one and the other.
begin 3 "${short[@]}" --out killed
until_file 'killed/checkpoints/*5.safetensors'
if kill -KILL "${pids[1]}" 2>/dev/null; then
    wait "${pids[1]}" 2>/dev/null
    ends 0 6
    ends 2 6
    speaks 0 "rank 1 ("
    speaks 0 "is gone"
    speaks 0 "of step"
    speaks 0 "--resume goes on from it"
    speaks 2 "rank 1 ("
fi
resumes killed

begin 3 "${long[@]}" --out orphaned
until_file 'orphaned/checkpoints/*5.safetensors'
kill -KILL "${pids[0]}"
wait "${pids[0]}" 2>/dev/null
ends 1 6
ends 2 6
speaks 1 "rank 0 ("

# Stopped for good: silent for --net-timeout.
begin 3 "${long[@]}" --out stalled
until_file 'stalled/checkpoints/*5.safetensors'
kill -STOP "${pids[2]}"
ends 0 6
ends 1 6
cat err.0 err.1 >err
says err "rank 2 ("
says err "has been silent for"
kill -KILL "${pids[2]}"
wait "${pids[2]}" 2>/dev/null

# Stopped for less: nothing happens.
begin 2 "${short[@]}" --out paused --net-timeout 8s --json
until_file 'paused/checkpoints'
kill -STOP "${pids[1]}" && sleep 1 && kill -CONT "${pids[1]}"
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "paused: other weights"

# All of them stopped for longer than the timeout, as a job that is suspended: likewise.
begin 2 "${short[@]}" --out asleep --json
until_file 'asleep/checkpoints'
kill -STOP "${pids[@]}" && sleep 3 && kill -CONT "${pids[@]}"
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "asleep: other weights"

# A signal to any rank stops all, with a checkpoint.
begin 2 "${long[@]}" --out asked
until_file 'asked/checkpoints/*5.safetensors'
kill -TERM "${pids[1]}"
all_end 143
speaks 0 "the checkpoint is saved"
[ ! -s err.1 ] || fail "rank 1 says it, too"

# A disk that is full at rank 0: all learn it.
begin 2 "${long[@]}" --out full --set run.tensorboard=/dev/full
all_end 5
[ ! -s err.1 ] || fail "rank 1 repeats it: $(cat err.1)"

# Never all there.
root=127.0.0.1:$(port)
"$STINT" train net.ini --out never --quiet --net-root "$root" --net-ranks 3 --net-rank 0 \
    --net-timeout 500ms 2>err && fail "it began alone"
says err "2 of 3 ranks did not come to $root within 500 ms (rank 1, 2)"
"$STINT" train net.ini --out never --quiet --net-root "$root" --net-ranks 3 --net-rank 1 \
    --net-timeout 500ms 2>err && fail "it began without rank 0"
says err "rank 0 cannot be reached by rank 1 at $root within 500 ms"
[ ! -e never ] || fail "a folder was made"

finish
