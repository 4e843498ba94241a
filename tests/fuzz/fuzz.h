/* fuzz.h: each .c file beside this one checks one property for arbitrary bytes. `make fuzz`
 * searches for bytes that break it (libFuzzer). `make check` tries the seeds, among them bytes that
 * once broke it. */
#ifndef SGT_FUZZ_H
#define SGT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/cpu.h"

/* The function that libFuzzer and replay.c call for each input. It returns 0, or ends the program
 * if the property does not hold. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "it does not hold that %s\n", what);
    abort();
}

/* Limit the CPU level to that of the environment's FUZZ_CPU, if the machine has it. Call this
 * before any other function of sgt. */
static inline void take_level(void)
{
    static int taken;
    const char *level = getenv("FUZZ_CPU");
    if (taken++ || !level) return;
    int rc = sgt_cpu_limit(level, NULL);
    must(rc == SGT_OK || rc == SGT_EUNSUPPORTED, "FUZZ_CPU is a level");
}

#endif
