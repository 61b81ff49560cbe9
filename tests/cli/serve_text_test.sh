# stint serve with text models: each text is that of stint run, whatever is drawn beside it;
# streams, stops, bad requests, clients that leave, new weights, memory, overload, the end.
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1
export XDG_CACHE_HOME=$work/cache
words "the cät sat on a mat and saw some red hats" 3000 >text.txt
cat >gpt.ini <<'END'
[model]
name = gpt
depth = 2
width = 64
heads = 2
context = 128
[data]
path = text.txt
tokenizer = char
[train]
steps = 20
batch = 4
[optimizer]
name = adamw
lr = 3e-3
END
run 0 train gpt.ini --out one -q
run 0 train gpt.ini --out two --seed 5 -q

"$STINT" serve t=one --sla 5s --listen nowhere >out 2>err
if [ $? -eq 8 ] && grep -q microhttpd err; then
    echo "skipped: no libmicrohttpd"
    exit 77
fi
serve() { # ARGUMENT...: in the background, until it is ready
    rm -f address
    "$STINT" serve "$@" --listen 127.0.0.1:0 --address-file address --json >served 2>served.err </dev/null &
    server=$!
    for _ in $(seq 300); do
        [ -s address ] && return
        kill -0 $server 2>/dev/null || break
        sleep 0.05
    done
    fail "stint serve $* did not begin: $(cat served.err)"
}
end() { # WANTED-STATUS
    kill -TERM $server 2>/dev/null
    wait $server
    local got=$?
    [ $got -eq "$1" ] || fail "stint serve ended with $got: $(cat served.err)"
    cp served out
}
client() { # WHAT [MODEL...]
    local what=$1
    shift
    python3 "$STINT_SOURCE/tests/cli/serve_text_client.py" "$what" "$(cat address)" "$STINT" one $server "$@" \
        >told || fail "serve_text_client.py $what"
}
within_plan() {
    grep -qE '__(asan|tsan)_init' "$STINT" || json 'j["peak_rss_bytes"] <= j["planned_peak_bytes"]'
}

run 0 serve t=one --sla 5s --explain
json 'j["models"][0]["kind"] == "text" and j["models"][0]["batches"] == [1, 2, 4, 8, 16, 32, 64]'
json 'j["models"][0]["context"] == 128 and j["models"][0]["pages"] == 32 * 2'

# ---- with pages for all, and with those of a few texts ----
serve t=one --sla 60s
for what in texts stops bad leave; do client $what; done
end 0
json 'j["served"] > 190 and j["failed"] > 20 and j["rejected"] >= 1'
within_plan
if ! grep -qE '__(asan|tsan)_init' "$STINT"; then # which take more memory
    serve t=one --sla 60s --memory 64M --max-body 1M --max-connections 64 --cut 1
    client texts
    client large
    end 0
    json 'j["served"] == 204 and j["failed"] == 1 and j["late"] == 0'
    within_plan
fi

# ---- new weights while texts are drawn; images beside ----
run 0 data glyphs --out g --train 72 --test 36 --size 8 -q
printf '[model]\nname = mlp\nwidth = 16\n[train]\nepochs = 1\nbatch = 36\n' >a.ini
run 0 train a.ini --data g --out r -q
cp -r one live
serve t=live m=r --sla 60s
cp two/model.safetensors live/next && mv live/next live/model.safetensors
/usr/bin/python3 "$STINT_SOURCE/tests/cli/serve_client.py" crowd "$(cat address)" r/model.safetensors $server ||
    fail "images beside texts" &
images=$!
client reload two
[ "$(cat told)" = 2 ] || fail "texts of $(cat told) models, 2 were wanted"
wait $images
cp gpt.ini live/model.safetensors
kill -HUP $server
client texts two # what is no model changes nothing
[ "$(cat told)" = 1 ] || fail "texts of $(cat told) models, 1 was wanted"
end 0
json 'j["failed"] == 0'
grep -q "old weights stay" served.err || fail "a damaged file is not told: $(cat served.err)"

# ---- more than there is time for ----
run 0 serve t=one --sla 5s -j 1 --tables-out tables.json --explain
sla=$(python3 -c 'import json; print(json.load(open("tables.json"))["models"][0]["p95_s"][0][-1] * 8)')
serve t=one --sla "${sla}s" -j 1 --batch-max 4 --tables tables.json
client overload
end 0
json 'j["served"] + j["rejected"] + j["late"] == 60 and j["failed"] == 0 and j["rejected"] > 0'
serve t=one --sla 60s -j 1 --batch-max 2 --tables tables.json --admit all --policy fifs
client hurried
end 0
json 'j["served"] == 30 and j["late"] == 30 and j["rejected"] == 0'

# ---- a load of prompts ----
serve t=one m=r --sla 60s
printf 'the c\303\244t\n\nand saw\r\nsome red hats' >prompts.txt
run 0 bench serve --url "http://$(cat address)" --model t --data prompts.txt --batch 30 --requests 40 --arrivals poisson:200 --page load.html --json
json 'j["sent"] == j["served"] == j["in_time"] == 40 and j["p50_s"] > 0'
[ "$(grep -c '<svg' load.html)" -ge 2 ] || fail "a page without charts"
grep -q "95 of 100 within" load.html || fail "a page without figures"
run 2 bench serve --url "http://$(cat address)" --model t --requests 1
says err "a prompt a line"
printf 'no d\303\266g\n' >foreign.txt
run 0 bench serve --url "http://$(cat address)" --model t --data foreign.txt --requests 3 --json
json 'j["failed"] == j["sent"] == 3'
printf '\n\n' >empty.txt
run 4 bench serve --url "http://$(cat address)" --model t --data empty.txt
mkdir images
run 4 bench serve --url "http://$(cat address)" --model m --data images
/usr/bin/python3 - <<'PY'
import struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
for i in range(3):
    rows = b"".join(b"\0" + bytes((i * 40 + x * y) % 256 for x in range(8)) for y in range(8))
    open(f"images/{i}.png", "wb").write(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))
PY
run 0 bench serve --url "http://$(cat address)" --model m --data images --batch 5 --requests 30 --arrivals poisson:200 --json
json 'j["served"] == 30'
run 2 bench serve --url "http://$(cat address)" --model t --data prompts.txt --page prompts.txt
end 0
run 0 bench serve --simulate tables.json --arrivals poisson:50 --requests 500 --batch 8 --page sim.html --json
[ "$(grep -c '<svg' sim.html)" -ge 2 ] || fail "a simulation's page without charts"
grep -q "Simulated" sim.html || fail "a page that does not say that it is simulated"

# ---- the end ----
serve t=one --sla 60s
client drain
wait $server || fail "stint serve ended with $?: $(cat served.err)"
serve t=one --sla 60s --drain 100ms
client cut_off
wait $server
[ $? -eq 143 ] || fail "a drain that is cut off: $(cat served.err)"

# ---- what cannot be ----
run 3 serve t=one --sla 1us --explain
says err "no partition answers a batch of"
run 3 serve t=one --sla 5s --memory 1M --explain
run 0 serve t=one --sla 5s -j 1 --tables tables.json --explain
run 4 serve t=one t2=two --sla 5s -j 1 --tables tables.json --explain
finish
