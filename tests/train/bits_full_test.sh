# One value, whatever the machine does: the same recipe at other numbers of threads and
# lanes, on every instruction set, in a tight or a generous memory budget, in one go or
# killed and resumed, ends in the same weights.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
python3 "$STINT_SOURCE/tests/cli/cli_data.py" data 16 320 32 || fail "no data"

# recipe MODEL BATCH SHARDS OPTIMIZER SIZE [LINE-OF-MODEL...]: writes MODEL.ini
recipe() {
    {
        printf '[data]\npath = data\nsize = %s\ncrop_pad = 2\nflip = true\n' "$5"
        printf '[model]\nname = %s\n' "$1"
        [ $# -le 5 ] || printf '%s\n' "${@:6}"
        printf '[train]\nepochs = 1\nbatch = %s\nshards = %s\nseed = 7\n' "$2" "$3"
        printf '[optimizer]\nname = %s\nlr = 0.01\nweight_decay = 5e-4\n' "$4"
        printf '[schedule]\nname = one-cycle\n[run]\ncheckpoint_every = 2\n'
    } >"$1.ini"
}

sha() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["weights_sha256"])' "$1"; }

# same LABEL MODEL ARGUMENT...: trains, and compares with the first run of the model.
same() {
    local label=$1 model=$2 got
    shift 2
    rm -rf run
    run 0 train "$model.ini" --out run --json --quiet "$@"
    got=$(sha out)
    [ -n "${first:=$got}" ]
    printf '%-9s %-18s %s\n' "$model" "$label" "$got"
    [ "$got" = "$first" ] || fail "$model, $label: other weights than the first run"
}

machine_has() {
    case $1 in
    avx2) grep -qw avx2 /proc/cpuinfo && grep -qw fma /proc/cpuinfo ;;
    avx512) grep -qw avx512f /proc/cpuinfo ;;
    esac
}

isas() { # MODEL ARGUMENT...
    local isa
    for isa in ref avx2 avx512; do
        [ $isa = ref ] || machine_has $isa || continue
        export STINT_ISA=$isa
        same "STINT_ISA=$isa" "$@"
        json "j['isa'] == '$isa'"
        unset STINT_ISA
    done
}

tight() { # MODEL: the least that it runs in without loss
    run 0 plan "$1.ini" --json -j 3 --memory 4G --error 0
    smallest=$(python3 -c 'import json; print(json.load(open("out"))["smallest_bytes"])')
    same "tight memory" "$1" -j 3 --memory "$smallest" --error 0
    json "j['planned_peak_bytes'] == $smallest and j['peak_rss_bytes'] <= $smallest"
}

killed() { # MODEL ARGUMENT...: killed once a checkpoint is there, then resumed
    rm -rf run
    "$STINT" train "$1.ini" "${@:2}" --out run --quiet >out 2>err </dev/null &
    local child=$!
    while kill -0 $child 2>/dev/null && ! compgen -G 'run/checkpoints/*.safetensors' >/dev/null; do
        sleep 0.02
    done
    kill -9 $child 2>/dev/null
    wait $child 2>/dev/null
    run 0 train "$1.ini" "${@:2}" --out run --resume --json --quiet
    printf '%-9s %-18s %s\n' "$1" "killed, resumed" "$(sha out)"
    [ "$(sha out)" = "$first" ] || fail "$1: other weights when resumed"
}

# The network of recipes/cifar10-resnet20.ini: convolutions, batch-norm, shortcuts.
recipe resnet20 32 4 sgd 16 'stem = small'
first=
for j in 1 2 3; do same "-j $j" resnet20 -j $j; done
for lanes in 1 2 3; do same "lanes $lanes" resnet20 -j 3 --set run.lanes=$lanes; done
isas resnet20
same "generous memory" resnet20 --memory 4G
tight resnet20
killed resnet20

# Activations held packed: other weights than without, but always the same ones.
first=
for j in 1 3; do same "packed, -j $j" resnet20 -j $j --set error.pack=all; done
killed resnet20 --set error.pack=all

# Average pooling, tanh and Adam; three shards, no power of two.
recipe lenet5 63 3 adam 16
first=
for j in 1 2 3; do same "-j $j" lenet5 -j $j; done
for lanes in 1 2 3; do same "lanes $lanes" lenet5 -j 3 --set run.lanes=$lanes; done
isas lenet5
tight lenet5
killed lenet5

# Dropout in the middle; max pooling. The masks are drawn again when resumed.
recipe vgg11 32 2 sgd 32 'stem = small' 'width = 8' 'dropout = 0.4'
first=
for j in 1 2 3; do same "-j $j" vgg11 -j $j; done
isas vgg11
same "lanes 2" vgg11 -j 2 --set run.lanes=2
tight vgg11
killed vgg11
finish
