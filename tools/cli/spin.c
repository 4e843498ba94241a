/* spin.c: implements spin.h. */
#include "tools/cli/spin.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPINS "1000" /* polls before a thread sleeps: about 20 us, as in SGT_TEAM_SPINS */

void sgt_spin_little(char **argv)
{
    const char *spins = getenv("GOMP_SPINCOUNT");
    char self[PATH_MAX] = "";
    if (spins && strcmp(spins, SPINS) == 0) {
        /* libgomp has read the variable; child processes must see only what the user has set */
        unsetenv("GOMP_SPINCOUNT");
        return;
    }
    if (spins || getenv("OMP_WAIT_POLICY") || setenv("GOMP_SPINCOUNT", SPINS, 1) < 0) return;
    /* execute by the program's own path, so that ps and pkill still show its name */
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) execv(self, argv);
    /* execv failed, perhaps because /proc is missing: restore the environment */
    unsetenv("GOMP_SPINCOUNT");
}
