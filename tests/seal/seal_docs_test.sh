# The commands of docs/seal.md, run in their order in an empty folder; then the run once
# more as another user, who has the three files and no secret key.
. "$(dirname "$0")/../cli/cli_lib.sh"
mkdir "$work/place" "$work/bin" && cd "$work/place" || exit 1
ln -s "$STINT" "$work/bin/stint"
PATH=$work/bin:$PATH
{
    echo 'set -e'
    awk '/^```sh$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/seal.md"
} >script
[ "$(grep -c '^stint seal' script)" -eq 11 ] || fail "eleven commands wanted in seal.md"
# (A sanitizer's own memory does not fit the example's budget.)
grep -q '^STINT_SANITIZE:.*=$' "$STINT_BUILD/CMakeCache.txt" ||
    sed -i 's/ --memory 400M//; s/--time 1min/--time 1h/' script
bash script >"$work/out" 2>"$work/err" || fail "a command failed: $(tail -5 "$work/err")"
[ "$(grep -c '^{"return":1}$' "$work/out")" -ge 2 ] || fail "decrypted, and in the plain: 1"
[ "$(grep -cE '^\{"return":([0-9]|[12][0-9]|3[0-5])\}$' "$work/out")" -eq 3 ] || fail "no class of the letter"
if command -v yosys >/dev/null && command -v berkeley-abc >/dev/null; then
    { echo 'set -e'; awk '/^```bash$/ { on = 1; next } /^```/ { on = 0 } on' "$STINT_SOURCE/docs/seal.md"; } >tools
    bash tools >"$work/out" 2>"$work/err" || fail "other programs: a command failed: $(tail -5 "$work/err")"
    grep -q '^{"sum":\[0,1,3,6\]}$' "$work/out" || fail "the counter counts otherwise"
    grep -q 'Networks are equivalent' "$work/out" || fail "not equal by abc"
else
    echo "no yosys, or no berkeley-abc: their commands were not tried"
fi
[ "$(stat -c %a keys/secret.key)" = 600 ] || fail "secret.key is not its owner's alone"

mkdir "$work/other" && chmod 755 "$work" "$work/other"
cp richer.seal keys/eval.key in.ct "$work/other"
cp "$STINT" "$work/other/stint"
chmod 644 "$work/other"/* && chmod 755 "$work/other/stint" && chmod 777 "$work/other"
if [ "$(id -u)" -eq 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups true 2>/dev/null; then
    (cd "$work/other" && setpriv --reuid=65534 --regid=65534 --clear-groups \
        ./stint seal run richer.seal --key eval.key --in in.ct --out out.ct -q) >/dev/null ||
        fail "another user cannot run it"
    cmp -s "$work/other/out.ct" out.ct || fail "another user gets other bytes"
    setpriv --reuid=65534 --regid=65534 --clear-groups cat keys/secret.key >/dev/null 2>&1 &&
        fail "another user can read the secret key"
else
    echo "not root, or no setpriv: another user was not tried"
fi
finish
