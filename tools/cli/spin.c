/* spin.c: see spin.h. */
#include "tools/cli/spin.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SPINS "1000" /* as often as SGT_TEAM_SPINS: some 20 us */

void sgt_spin_little(char **argv)
{
    const char *spins = getenv("GOMP_SPINCOUNT");
    char self[PATH_MAX] = "";
    if (spins && strcmp(spins, SPINS) == 0) {
        /* libgomp has read it; what this program starts is to find what the user set */
        unsetenv("GOMP_SPINCOUNT");
        return;
    }
    if (spins || getenv("OMP_WAIT_POLICY") || setenv("GOMP_SPINCOUNT", SPINS, 1) < 0) return;
    /* by its own path, whose end is what ps and pkill know it by */
    if (readlink("/proc/self/exe", self, sizeof self - 1) > 0) execv(self, argv);
    unsetenv("GOMP_SPINCOUNT"); /* no /proc: as it was */
}
