# The commands of docs/network.md, run in their order in an empty folder.
. "$(dirname "$0")/../cli/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/network.md"
} >script
[ "$(wc -l <script)" -gt 25 ] || fail "few commands found in network.md"
timeout 300 bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
says out "of each of 3 processes"
says out "A step of 3 processes, of which this one has 2 of 6 shards"
says err "the checkpoint is saved"
finish
