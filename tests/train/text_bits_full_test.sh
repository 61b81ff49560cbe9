# Training on text ends in one SHA of weights, on every instruction set, for any number of
# threads and lanes, in the least memory, in one go or stopped and resumed.
. "$(dirname "$0")/../cli/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache

# Words in an order that can be learnt.
awk 'BEGIN { s = 1; n = split("the cat sat on a mat and saw some red hats", w, " ")
    for (i = 0; i < 4000; i++) { s = (s * 16807) % 2147483647
        printf "%s%s", w[1 + (i + s % 3) % n], s % 13 == 0 ? "\n" : " " } }' >text.txt

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

for net in gpt llama; do
    unset first
    rm -rf run
    same "one thread" $net -j 1
    same "two threads" $net -j 2 --force
    same "three threads in one lane" $net -j 3 --force --set run.lanes=1
    STINT_ISA=ref same "ref" $net --force
    STINT_ISA=avx2 same "avx2" $net --force
    # The least memory that it runs in, for which activations are made again.
    run 0 plan $net.ini --json -j 3
    smallest=$(python3 -c 'import json; print(json.load(open("out"))["smallest_bytes"])')
    same "tight memory" $net -j 3 --force --memory $((smallest + 524288))
    json "j['peak_rss_bytes'] <= $smallest + 524288"
    rm -r run
    run 0 train $net.ini --out run --quiet --steps 7
    same "resumed" $net --resume
done

finish
