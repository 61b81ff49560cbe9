# The commands of docs/finetune.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
if grep -q __asan_init "$STINT"; then
    echo "budgets of a process that carries no sanitizer: skipped" && exit 77
fi
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/finetune.md"
} >script
# In quick tests with half of the letters.
full || sed -i 's/--train 1440 --test 360/--train 720 --test 180/' script
[ "$(wc -l <script)" -gt 40 ] || fail "few commands found in finetune.md"
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "parameters trained, in"
for run in digits capitals small cats dogs dogs2; do
    [ -s "runs/$run/report.html" ] || fail "runs/$run/report.html is missing"
done
"$STINT" info runs/capitals --json >"$work/out" || fail "no model"
json 'j["classes"] == 26'
finish
