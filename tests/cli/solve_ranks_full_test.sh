# stint solve on several ranks, every form in every way.
STINT_EVERY_FORM=1
. "$(dirname "$0")/solve_ranks_test.sh"
