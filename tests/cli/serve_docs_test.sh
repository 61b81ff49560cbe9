# The commands of docs/serving.md, run in their order in an empty folder.
. "$(dirname "$0")/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
"$STINT" serve x --sla 1s --listen nowhere >out 2>err
command -v curl >/dev/null || { echo "skipped: no curl"; exit 77; }
{
    echo 'set -em'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/serving.md"
} >script
[ "$(wc -l <script)" -gt 15 ] || fail "few commands found in serving.md"
timeout 120 bash script >"$work/out" 2>"$work/err"
status=$?
grep -q "libmicrohttpd.*not installed\|no server" "$work/err" && { echo "skipped: no libmicrohttpd"; exit 77; }
[ $status -eq 0 ] || fail "a command failed: $(tail -5 "$work/err")"
says out "real: "
says out "stint_requests_total{model=\"letters\",result=\"served\"}"
finish
