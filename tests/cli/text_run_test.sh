# Text from a model: the same for a seed on any threads, whole characters, JSON, prompts
# from files and stdin, mistakes, signals, and a budget that is kept.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache

words "the cät sat on a mat and saw some red hats" 3000 >text.txt
cat >gpt.ini <<'INI'
[model]
name = gpt
depth = 1
width = 32
heads = 2
context = 32
[data]
path = text.txt
tokenizer = char
[train]
steps = 40
batch = 16
[optimizer]
name = adamw
lr = 3e-3
INI
run 0 train gpt.ini --out run -q

# past the context, three times over; the prompt comes first
run 0 run run --prompt "the cät" --tokens 100 --seed 3 -j 1
cp out first
says out "the cät"
says err "tokens/s"
[ "$(python3 -c 'print(len(open("first", encoding="utf-8").read().rstrip("\n")) > 80)')" = True ] ||
    fail "too little text"
run 0 run run --prompt "the cät" --tokens 100 --seed 3 -j 3
cmp -s out first || fail "threads show in the text"
run 0 run run/model.safetensors --prompt "the cät" --tokens 100 --seed 4
cmp -s out first && fail "another seed, the same text"
run 0 run run --prompt "the cät" --tokens 30 --seed 3 --json
json 'j["tokens"] == 30 == len(j["ids"]) and j["prompt_tokens"] == 7 and j["seed"] == 3'
json 'j["stopped"] == "tokens" and j["tokens_per_s"] > 0'
json "('the cät' + j['text']) == open('first', encoding='utf-8').read()[:37]"
json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
printf 'the cät' >prompt.txt
run 0 run run --prompt-file prompt.txt --tokens 100 --seed 3
cmp -s out first || fail "a prompt from a file draws another text"
"$STINT" run run --prompt-file - --tokens 100 --seed 3 <prompt.txt >out 2>err
cmp -s out first || fail "a prompt from stdin draws another text"
run 0 run run --prompt "the" --temperature 0 --tokens 20 --seed 1
cp out greedy
run 0 run run --prompt "the" --top-k 1 --tokens 20 --seed 2
cmp -s out greedy || fail "one of one is not the likeliest"

# mistakes
run 4 run run --prompt "the dög"
says err "'ö' (U+00F6) at byte 5"
run 4 run run --prompt-file /dev/null
says err "the prompt is empty"
run 2 run run --prompt ""
run 2 run run
says err "a --prompt to go on from"
run 2 run run text.txt
says err "a text model; give it a --prompt"
run 4 run run --prompt "the cät sat on a mat and saw some red hats"
says err "42 tokens, but the model sees at most 32; leave out 10"
run 2 run run --prompt a --prompt-ids 1
run 2 run run --prompt-ids 1,99
says err "0 to"
run 2 run run --prompt a --temperature -0.1
run 2 run run --prompt a --temperature nan
run 2 run run --prompt a --top-p 0
run 2 run run --prompt a --top-p 1.5
run 2 run run --prompt a --top-k 0
run 2 run run --prompt a --tokens 0
run 2 run run text.txt --prompt a
run 4 run text.txt --prompt a
run 5 run nothing.safetensors --prompt a

# a budget is refused with the number that will do, and that number does
run 3 run run --prompt the --memory 3M --json
json 'j["status"] == 3 if "status" in j else True'
need=$(grep -o 'give it [0-9.]* MiB' err | grep -o '[0-9.]*' | head -1)
need=${need%.0}
grep -q __asan_init "$STINT" && need=$((need + 64)) # its own memory is not planned
run 0 run run --prompt the --memory "${need}M" --json
json "j['peak_rss_bytes'] <= $need * 1048576"

# SIGINT: what was drawn stays, the exit code says why
"$STINT" run run --prompt the --tokens 5000000 >out 2>err &
pid=$!
for _ in $(seq 100); do [ -s out ] && break; sleep 0.1; done
sleep 0.2
kill -INT "$pid"
wait "$pid"
[ $? -eq 130 ] || fail "SIGINT: wanted 130"
says err "stopped by a signal after"
python3 -c 'open("out", encoding="utf-8").read()' || fail "a torn character"
[ "$(tail -c 1 out | wc -l)" -eq 1 ] || fail "no newline at the end"

# models without a tokeniser take and give identities
run 0 export hf run --out hf
says err "tokenizer.json"
run 0 run hf --prompt "the cät" --tokens 100 --seed 3
cmp -s out first || fail "an exported model writes other text"
rm hf/tokenizer.json
run 0 run hf --prompt-ids 1,2,3 --tokens 4 --seed 5
grep -qE '^[0-9]+ [0-9]+ [0-9]+ [0-9]+$' out || fail "no four identities: $(cat out)"
cp out ids
run 4 run hf --prompt the
says err "--prompt-ids"
cp hf/model.safetensors hf.kept
cd hf && run 2 import hf . # whose answer is model.safetensors unless said otherwise
says err "its own answer"
cd .. && cmp -s hf/model.safetensors hf.kept || fail "import hf wrote over the model it read"
cp run/model.safetensors run.kept
for folder in run hf; do
    run 2 export hf $folder --out $folder
    says err "written over"
done
mkdir -p other && cp run/model.safetensors other
run 2 export hf hf --out other
says err "other/model.safetensors is no model of this layout"
cmp -s run/model.safetensors run.kept && cmp -s other/model.safetensors run.kept &&
    cmp -s hf/model.safetensors hf.kept || fail "export hf wrote over a model"
run 0 export hf run --out hf # once more
rm hf/tokenizer.json
run 0 import hf hf --out again.safetensors --json
json 'j["tokenizer"] is False and j["family"] == "gpt"'
run 0 run again.safetensors --prompt-ids 1,2,3 --tokens 4 --seed 5
cmp -s out ids || fail "an imported model draws other tokens"
run 0 info again.safetensors
says out "no tokeniser"
run 4 eval again.safetensors --data text.txt
says err "holds no tokeniser"
run 2 export hf run
run 4 export hf text.txt --out x
finish
