/* spin.c: see spin.h. */
#include "tools/cli/spin.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPINS "1000" /* about 20 us, equal to SGT_TEAM_SPINS */

void sgt_spin_little(char **argv)
{
    const char *spins = getenv("GOMP_SPINCOUNT");
    char self[PATH_MAX] = "";
    if (spins && strcmp(spins, SPINS) == 0) {
        /* libgomp has read it; child processes must see what the user has set */
        unsetenv("GOMP_SPINCOUNT");
        return;
    }
    if (spins || getenv("OMP_WAIT_POLICY") || setenv("GOMP_SPINCOUNT", SPINS, 1) < 0) return;
    /* by the program's own path, so that ps and pkill still show its name */
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) execv(self, argv);
    unsetenv("GOMP_SPINCOUNT"); /* /proc is missing: restore the environment */
}
