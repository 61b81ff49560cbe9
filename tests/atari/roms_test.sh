#!/bin/bash
# The images of recipes/roms are what dasm makes of their sources. Skipped (77) without it.
set -u
exec "${STINT_SOURCE:?set by ctest}/scripts/make_roms.sh" --check
