# Training on text ends in one SHA of weights, on every instruction set, for any number of
# threads and lanes, in the least memory, in one go or stopped and resumed; in float32 and
# in bfloat16; the same where tensors may be held packed within an error.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache

words "the cat sat on a mat and saw some red hats" 4000 >text.txt

recipe() { # NETWORK LINE-OF-MODEL
    printf '[model]\nname = %s\ndepth = 2\nwidth = 32\nheads = 4\ncontext = 32\n%s\n' "$@"
    printf '[data]\npath = text.txt\ntokenizer = char\n'
    printf '[train]\nsteps = 12\nbatch = 16\nshards = 4\n'
    printf '[optimizer]\nname = adamw\nlr = 3e-3\nweight_decay = 0.1\nclip = 0.5\n'
    printf '[schedule]\nwarmup = 0.1\n[run]\ncheckpoint_every = 5\n[error]\ntau = 0\n'
}
recipe gpt 'dropout = 0.1' >gpt.ini
recipe llama 'kv_heads = 2' >llama.ini

sha() { python3 -c 'import json; print(json.load(open("out"))["weights_sha256"])'; }

same() { # LABEL NETWORK ARGUMENT...
    local label=$1 net=$2
    shift 2
    run 0 train $net.ini --out run --json --quiet "$@"
    [ -n "${first:=$(sha)}" ]
    [ "$(sha)" = "$first" ] || fail "$net, $label: other weights than the first run"
}

fits() { # BYTES: what the last run was allowed
    json "j['peak_rss_bytes'] <= $1"
}

for net in gpt llama; do
    for precision in f32 bf16; do
        unset first
        rm -rf run
        set -- $net --precision $precision
        same "one thread" "$@" -j 1
        same "two threads" "$@" -j 2 --force
        same "three threads in one lane" "$@" -j 3 --force --set run.lanes=1
        STINT_ISA=ref same "ref" "$@" --force
        STINT_ISA=avx2 same "avx2" "$@" --force
        # The least memory that it runs in, for which activations are made again.
        run 0 plan $net.ini --precision $precision --json -j 3
        smallest=$(python3 -c 'import json; print(json.load(open("out"))["smallest_bytes"])')
        same "tight memory" "$@" -j 3 --force --memory $((smallest + 524288))
        fits $((smallest + 524288))
        rm -r run
        run 0 train $net.ini --out run --quiet --steps 7 --precision $precision
        same "resumed" "$@" --resume
    done
    unset first
    rm -r run
    run 0 plan $net.ini --error 0.05 --json -j 1
    smallest=$(python3 -c 'import json; print(json.load(open("out"))["smallest_bytes"])')
    set -- $net --error 0.05 --memory $((smallest + 524288)) -j 1
    same "an error allowed" "$@"
    fits $((smallest + 524288))
    same "an error allowed, again" "$@" --force
    rm -r run
    run 0 train $net.ini --out run --quiet --steps 7 --error 0.05 \
        --memory $((smallest + 524288)) -j 1
    same "an error allowed, resumed" "$@" --resume
done

finish
