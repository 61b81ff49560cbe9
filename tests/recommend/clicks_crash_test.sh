#!/bin/bash
# Trainings that are killed, and disks whose power was cut, go on to the bits of an
# undisturbed run. A disk that does not heed the syncs of journals must lose some: else the
# cuts would prove nothing. bench/embed_crash.sh does hundreds.
set -euo pipefail
library=$STINT_BUILD/tests/libwrite_log.so
[ -e "$library" ] || { echo "$library is not built"; exit 77; }
if grep -q __asan_init "$STINT"; then
    echo "a sanitizer wants to be the first library"
    exit 77
fi
unset STINT_BUILD
crash() { /usr/bin/python3 "$STINT_SOURCE/tests/recommend/crash.py" "$STINT" "$library" "$@"; }
crash --kills 4 --cuts 14
crash --kills 0 --cuts 16 --deaf 2>/dev/null
