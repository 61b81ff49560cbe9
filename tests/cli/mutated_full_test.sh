# Mutated models, checkpoints and texts to learn from: an answer or a refusal, quickly. A
# small part of what was run once: 1,500 files and 300 texts under sanitizers.
. "$(dirname "$0")/cli_lib.sh"
python3 "$STINT_SOURCE/tests/cli/mutated.py" "$STINT" "$work" 120 40 4 >"$work/said" 2>&1 ||
    fail "$(tail -c 3000 "$work/said")"
finish
