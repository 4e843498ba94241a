# Like tokenize-together.sh, with five times as many disturbed calls (make torture: more).
# In make check-all only: it starts a thousand processes.
TOGETHER_PLACES=$((10 * 17 / ${FAULTS_EVERY:-17}))
. "$ROOT/tests/cli/tokenize-together.sh"
