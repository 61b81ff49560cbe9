# Tokenisers of Hugging Face's `tokenizers`, every kind, against it: HF_PYTHON=python where
# it is installed.
. "$(dirname "$0")/cli_lib.sh"
python=${HF_PYTHON:-python3}
"$python" -c "import tokenizers, numpy" 2>/dev/null ||
    { echo "skipped: $python has no tokenizers"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 "$python" "$(dirname "$0")/hf_tokenizers.py" "$work" "$STINT" \
    "$STINT_SOURCE" || fail "see above"
finish
