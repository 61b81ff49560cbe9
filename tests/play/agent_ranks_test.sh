# Agents that several processes train: one process's bits, no start that is not the same
# for all, and an end that all make together.
. "$(dirname "$0")/../net/ranks_lib.sh"
roms=$STINT_SOURCE/recipes/roms
cat >agent.ini <<INI
[env]
rom = $roms/rally.bin
game = none
reward = ram:0x81-ram:0x80
done = ram:0x80==21|ram:0x81==21
obs = ram
stack = 2
envs = 16
[agent]
method = ppo
epochs = 2
horizon = 8
every = 4
keep = best
[train]
steps = 12
shards = 4
[optimizer]
clip = 1
[schedule]
name = cosine
period = 5
[run]
threads = 1
INI

run 0 train agent.ini --out one --json
one=$(sha out)
for ranks in 2 3; do
    begin $ranks agent.ini --out of$ranks --json
    all_end 0
    [ "$(sha out.0)" = "$one" ] || fail "$ranks processes: other weights"
done

# Rank 1 differs: both say so, and nothing is written.
differ() { # WORDS ARGUMENT...
    local root=@$(basename "$work")-$((++meetings)) words=$1
    shift
    "$STINT" train agent.ini --out two -q --net-root "$root" --net-ranks 2 --net-rank 1 "$@" \
        >out.1 2>err.1 </dev/null &
    pids=([1]=$!)
    "$STINT" train agent.ini --out two -q --net-root "$root" --net-ranks 2 --net-rank 0 \
        >out.0 2>err.0 </dev/null &
    pids[0]=$!
    all_end 2
    speaks 0 "$words"
    [ ! -e two ] || fail "a folder was made"
}
differ "train.seed (rank 1 2, rank 0 1)" --seed 2
differ "9 steps, " --steps 9
differ "program and rules of SHA-256 " --rom "$roms/bricks.bin"
differ "--resume" --resume
begin 5 agent.ini --out two
all_end 2
speaks 0 "4 shards cannot be shared out to 5 processes; start at most 4"
begin 2 agent.ini --out two --set env.envs=auto
all_end 2
speaks 0 "auto: what several processes would find differs"
begin 2 agent.ini --out of2
all_end 2
speaks 0 "holds a run already"

# One that is asked to stop has all stop, after the same update; they go on from what rank
# 0 has, wherever the others look.
endless="--set schedule.name=constant --set schedule.period=0" # which looks at no end
begin 3 agent.ini --out stopped --steps 1000000 $endless
until_file stopped/log.jsonl
sleep 0.3
kill -INT "${pids[1]}"
all_end 130
speaks 0 "stopped after update "
update=$(sed 's/.*after update \([0-9]*\);.*/\1/' err.0 | head -1)
steps=$((update + 5))
run 0 train agent.ini --out straight --steps $steps $endless --json
straight=$(sha out)
root=@$(basename "$work")-$((++meetings))
pids=()
for rank in 2 1 0; do
    "$STINT" train agent.ini --out "$([ $rank = 0 ] && echo stopped || echo elsewhere$rank)" -q \
        --steps $steps $endless --resume --json --net-root "$root" --net-ranks 3 --net-rank $rank \
        >out.$rank 2>err.$rank </dev/null &
    pids[rank]=$!
done
all_end 0
[ "$(sha out.0)" = "$straight" ] || fail "stopped and resumed: other weights"
[ ! -e elsewhere1 ] || fail "rank 1 wrote a folder"

# One that is killed ends all; what rank 0 has is kept, and gone on with by one process.
once="$endless --set agent.epochs=1 --set agent.method=vtrace"
begin 2 agent.ini --out lost --steps 1000000 $once --set run.checkpoint_every=3
until_file "lost/checkpoints/step-*"
kill -9 "${pids[1]}"
ends 0 6
wait "${pids[1]}"
speaks 0 "is saved, --resume goes on from it"
update=$(sed 's/.*after update \([0-9]*\) is.*/\1/' err.0 | head -1)
steps=$((update + 5))
run 0 train agent.ini --out lost --steps $steps $once --resume --json
lost=$(sha out)
run 0 train agent.ini --out unbroken --steps $steps $once --json
[ "$(sha out)" = "$lost" ] || fail "after a rank was lost: other weights"
finish
