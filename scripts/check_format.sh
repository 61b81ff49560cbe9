#!/usr/bin/env bash
# Is every C and C++ file laid out as .clang-format says? Versions of clang-format differ in
# what they do with the same settings, so only one is asked: 14, which is Debian 12's.
set -euo pipefail
cd "$(dirname "$0")/.."

for format in clang-format-14 clang-format ''; do
    case $("$format" --version 2>/dev/null) in *" version 14."*) break ;; esac
done
if [ -z "$format" ]; then
    echo "check_format: no clang-format 14 here, so nothing is checked" >&2
    exit 0
fi
mapfile -d '' files < <(find bench fuzz include src tests -type f \
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.cu' -o -name '*.cuh' \) -print0 | sort -z)
if ! printf '%s\0' "${files[@]}" |
    xargs -0 -n 40 -P "$(nproc)" "$format" --dry-run -Werror --ferror-limit=1; then
    echo "Not laid out as .clang-format says; mend it with: $format -i FILE..." >&2
    exit 1
fi
