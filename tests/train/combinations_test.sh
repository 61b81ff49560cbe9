# Pairs of features that are refused are so by their sentences, and the first runs of the
# covering set of combinations_full_test.sh end well.
COMBINATIONS=1 IMAGES=160 . "$(dirname "$0")/combinations_full_test.sh"
