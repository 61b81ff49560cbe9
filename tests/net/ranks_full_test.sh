# A run on several processes has the weights of one process, to the bit, for any number
# of them and of threads, with batch-norm, augmentation and dropout; and resumed by
# another number.
. "$(dirname "$0")/ranks_lib.sh"

# same MODEL N THREADS [ARGUMENT...]
same() {
    local model=$1 n=$2 threads=$3 got
    shift 3
    rm -rf run
    if [ "$n" -eq 1 ]; then
        "$STINT" train net.ini --set model.name="$model" --set model.dropout=0.3 --out run -j "$threads" --quiet --json "$@" \
            >out.0 </dev/null || fail "one process"
    else
        begin "$n" net.ini --set model.name="$model" --set model.dropout=0.3 --out run -j "$threads" --json "$@"
        all_end 0
    fi
    got=$(sha out.0)
    [ -n "${first:=$got}" ]
    printf '%-8s %d ranks x %d threads  %s\n' "$model" "$n" "$threads" "$got"
    [ "$got" = "$first" ] || fail "$model, $n ranks, $threads threads: other weights"
}

for model in resnet8 lenet5; do # batch-norm; dropout
    first=
    for n in 1 2 3 4 8; do
        for threads in 1 2; do same $model $n $threads; done
    done
done

# Activations packed with errors.
first=
for n in 1 2 3 5 8; do
    for threads in 1 2; do
        same resnet8 $n $threads --set error.pack=all --set error.every=3 --error 1e-4
    done
done

# What the JSON says of it, and that only rank 0 says anything.
begin 3 net.ini --out said --json --set run.hash_every=4
all_end 0
cp out.0 out
json "j['ranks'] == 3 and j['net_bytes'] > 12 * j['parameters'] * 4"
[ ! -s out.1 ] && [ ! -s err.1 ] && [ ! -s out.2 ] && [ ! -s err.2 ] ||
    fail "other ranks than 0 say something"
want=$(sha out.0)

# Resumed by other numbers: 2, then 3, then 1.
"$STINT" train net.ini --out whole --quiet --json --set run.checkpoint_every=1 >out.0 || fail "whole"
want=$(sha out.0)
begin 2 net.ini --out parts --set run.checkpoint_every=1
until_file 'parts/checkpoints/*2.safetensors'
kill -INT "${pids[1]}"
wait "${pids[0]}" "${pids[1]}"
begin 3 net.ini --out parts --resume --json
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "resumed by 3 ranks: other weights"

# A budget met by rewriting, on two ranks: within it, and the same weights.
"$STINT" plan net.ini --json --memory 4G --error 0 >out || fail "plan"
tight=$(python3 -c 'import json; print(json.load(open("out"))["smallest_bytes"] + (2 << 20))')
begin 2 net.ini --out tight --json --error 0 --memory "$tight" --set run.checkpoint_every=1
all_end 0
[ "$(sha out.0)" = "$want" ] || fail "tight memory: other weights"
cp out.0 out
json "j['peak_rss_bytes'] <= $tight"

finish
