# Man pages come for every subcommand and are good roff; the recipe reference in docs/ is
# what the program prints; scripts that docs name can be run as they stand there.
. "$(dirname "$0")/cli_lib.sh"

run 0 help --man-pages "$work/man"
count=$(ls "$work/man" | wc -l)
[ "$count" -ge 16 ] || fail "only $count man pages"
for page in "$work"/man/*.1; do
    grep -q '^\.SH OPTIONS\|^\.SH SUBCOMMANDS' "$page" || fail "$page has no options"
    if command -v groff >/dev/null; then
        warnings=$(groff -man -Tutf8 -ww "$page" 2>&1 >/dev/null | grep -v 'cannot select font')
        [ -z "$warnings" ] || fail "$page: $warnings"
    fi
done
run 0 help train --man
cmp -s "$work/out" "$work/man/stint-train.1" || fail "help --man and the page differ"

run 0 help --combinations-markdown
cmp -s "$work/out" "$STINT_SOURCE/docs/combinations.md" ||
    fail "docs/combinations.md is old: stint help --combinations-markdown > docs/combinations.md"
run 0 help --recipe-markdown
cmp "$work/out" "$STINT_SOURCE/docs/recipe-reference.md" ||
    fail "docs/recipe-reference.md is old: stint help --recipe-markdown > docs/recipe-reference.md"

for script in $(grep -oh '\bbench/[a-z0-9_]*\.\(py\|sh\)' \
    "$STINT_SOURCE/README.md" "$STINT_SOURCE"/docs/*.md | sort -u); do
    [ -x "$STINT_SOURCE/$script" ] && head -1 "$STINT_SOURCE/$script" | grep -q '^#!' ||
        fail "$script is no command: chmod +x, and a first line with #!"
done
finish
