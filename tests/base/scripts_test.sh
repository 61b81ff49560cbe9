#!/usr/bin/env bash
# What ./check and scripts/bare.sh refuse, and with which words; and that every package of
# scripts/packages.txt is of a known kind, and there once.
set -u
source=${STINT_SOURCE:-$(cd "$(dirname "$0")/../.." && pwd)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
bad=0

# expect STATUS WORDS COMMAND...
expect() {
    local out got=0 want=$1 words=$2
    shift 2
    out=$("$@" 2>&1 </dev/null) || got=$?
    if [ $got -ne "$want" ] || ! grep -qF -- "$words" <<<"$out"; then
        echo "$*: wanted status $want and '$words', got $got and: $out"
        bad=1
    fi
}

for words in everything "quick full" "full full" --help; do
    # shellcheck disable=SC2086
    expect 2 "usage: ./check [quick|full]" "$source/check" $words
done
expect 2 'cannot do "everything"' "$source/check" everything

bare=$source/scripts/bare.sh
expect 125 "no command" "$bare"
expect 125 "no command" "$bare" --keep name
expect 125 "usage: scripts/bare.sh [--keep NAME]" "$bare"
expect 125 "unknown option --fresh" "$bare" --fresh true
expect 125 "--keep needs a word" "$bare" --keep
expect 125 "'../name' is no name" "$bare" --keep ../name true
expect 125 "'.' is no name" "$bare" --remove .
expect 125 "no such package in scripts/packages.txt" "$bare" --without libnothing-dev true

# Neither root nor debootstrap, by programs in their place: this test may run as anyone.
mkdir "$work/user" "$work/root"
for name in bash dirname cat; do ln -s "$(command -v $name)" "$work/root/$name"; done
printf '#!/bin/bash\necho 1000\n' >"$work/user/id"
printf '#!/bin/bash\necho 0\n' >"$work/root/id"
chmod +x "$work/user/id" "$work/root/id"
expect 125 "only root can make a root" env PATH="$work/user:$PATH" "$bare" true
expect 125 "apt-get install debootstrap" env PATH="$work/root" "$(command -v bash)" "$bare" true

wrong=$(grep -vE '^(#|(build|test|ci|optional) [a-z0-9][a-z0-9+.-]+$)' "$source/scripts/packages.txt")
[ -z "$wrong" ] || { echo "packages.txt: no package of a known kind: $wrong"; bad=1; }
twice=$(grep -v '^#' "$source/scripts/packages.txt" | awk '{ print $2 }' | sort | uniq -d)
[ -z "$twice" ] || { echo "packages.txt: twice: $twice"; bad=1; }

# A file that is laid out otherwise, in a tree of its own. (Nothing is asked of a machine
# without clang-format 14.)
mkdir -p "$work"/tree/{bench,fuzz,include,scripts,src,tests}
cp "$source/.clang-format" "$work/tree/"
cp "$source/scripts/check_format.sh" "$work/tree/scripts/"
printf 'int a;\n' >"$work/tree/src/a.c"
format() { "$work/tree/scripts/check_format.sh"; }
if format 2>&1 | grep -q "no clang-format 14"; then
    expect 0 "nothing is checked" format
else
    format || bad=1
    printf 'int  b;\n' >"$work/tree/src/b.h"
    expect 1 "src/b.h:1:4" format
    expect 1 " -i FILE..." format
    sed -i 's/^int  b/\/* clang-format off *\/ int  b/' "$work/tree/src/b.h"
    format || bad=1
fi

# Comments: a header that explains too little, and comments without a subject, are told.
mkdir -p "$work"/words/{include/stint,src,tests}
words() { python3 "$source/scripts/check_comments.py" "$work/words"; }
python3 "$source/scripts/check_comments.py" "$source" >/dev/null || bad=1
printf '/* A header\n * of words. */\nint a;\n' >"$work/words/include/stint/a.h"
printf '#!/bin/sh\n# The sum\n# Of lines.\n' >"$work/words/tests/a.sh"
printf 'char *a = "/* Of b */";\n' >"$work/words/src/a.c"
expect 0 " 66.7 %  include/stint/a.h" words
printf 'int b;\n/* b */\nint c;\n' >"$work/words/include/stint/b.h"
expect 1 "include/stint/b.h: 33.3 % of the lines are comment, at least 50 %" words
rm "$work/words/include/stint/b.h"
printf 'int b;\n\n/*\n * Of b. */\n' >"$work/words/src/b.c"
expect 1 "src/b.c:3: a comment begins with" words
rm "$work/words/src/b.c"
printf 'x = 1\n    # Of x.\n' >"$work/words/tests/b.py"
expect 1 "tests/b.py:2: a comment begins with" words

# What contributing.md and the README promise of their size: files of at most 600 lines (but
# tests, and the table of titles), a README of at most 900 words.
long=$(cd "$source" && find src include bench fuzz scripts cmake -type f ! -name game_titles.c \
    \( -name '*.[ch]' -o -name '*.c[pu]*' -o -name '*.py' -o -name '*.sh' -o -name '*.cmake' \) \
    -exec awk 'FNR == 601 { print FILENAME }' {} +)
[ -z "$long" ] || { echo "longer than 600 lines: $long"; bad=1; }
[ "$(wc -w <"$source/README.md")" -le 900 ] || { echo "README.md has more than 900 words"; bad=1; }
[ $bad -eq 0 ] && echo ok
exit $bad
