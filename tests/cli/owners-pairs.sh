# Like owners.sh, with 50 pairs of writers for each kind of flock.
# In make check-all only: it starts a thousand programs.
PAIRS=50
. "$ROOT/tests/cli/owners.sh"
