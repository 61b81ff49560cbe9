# The commands of docs/getting-started.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" && cd "$work/place" || exit 1
ln -s "$STINT_SOURCE/recipes" recipes

# What is learned from letters depends on the fonts, and a machine may have any. The packages'
# are taken where dpkg knows them, so that the accuracy below is that of a newcomer's machine.
mkdir "$work/bin" "$work/fonts"
if command -v dpkg >/dev/null; then
    for package in $(awk '/^build fonts-/ { print $2 }' "$STINT_SOURCE/scripts/packages.txt"); do
        dpkg -L "$package" 2>/dev/null
    done | grep -E '^/usr/share/fonts/.*\.(ttf|otf|ttc|otc|pfb|t1)$' | while read -r font; do
        mkdir -p "$work/fonts/${font%/*}" && ln -sf "$font" "$work/fonts/${font%/*}/"
    done
fi
cat >"$work/bin/stint" <<EOF
#!/bin/sh
case "\$1 \$2" in
"data glyphs") [ -z "\$(ls "$work/fonts")" ] || set -- "\$@" --fonts "$work/fonts" ;;
esac
exec "$STINT" "\$@"
EOF
chmod +x "$work/bin/stint"
PATH=$work/bin:$PATH

awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' \
    "$STINT_SOURCE/docs/getting-started.md" >commands
[ "$(wc -l <commands)" -gt 20 ] || fail "few commands found in getting-started.md"
{ echo 'set -e'; cat commands; } >script
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "images of 32 x 32"
says err "what fits"
grep -q '</svg>' plan.svg || fail "no plan.svg"
for run in letters stopped short glyphs-resnet8 abc; do
    for file in model.safetensors log.jsonl recipe.ini report.html; do
        [ -s "runs/$run/$file" ] || fail "runs/$run/$file is missing"
    done
done
python3 - <<'PY' || fail "what came out"
import json
end = [json.loads(line) for line in open("runs/letters/log.jsonl")][-1]
assert end["test_accuracy"] >= 0.95, end["test_accuracy"]
assert end["peak_rss_bytes"] <= 60 << 20, end["peak_rss_bytes"]
assert json.load(open("short.json"))["steps"] == 20
sevens = json.load(open("sevens.json"))["predictions"]
assert len(sevens) == 10 and sum(p["classes"][0]["class"] == "7" for p in sevens) >= 7
PY
finish
