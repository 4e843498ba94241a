/* fuzz.h: one property a file, said of any bytes at all: `make fuzz` looks for bytes that break it
 * (libFuzzer), and `make check` tries the seeds again. */
#ifndef SGT_FUZZ_H
#define SGT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "loader/base/cpu.h"

/* libFuzzer's entry, and replay.c's. 0, or the program has ended. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static inline void must(int holds, const char *what)
{
    if (holds) return;
    fprintf(stderr, "it does not hold that %s\n", what);
    abort();
}

/* Before anything else: FUZZ_CPU names the highest level of the CPU's instructions that is tried. A
 * machine that lacks it tries its own. */
static inline void take_level(void)
{
    static int taken;
    const char *level = getenv("FUZZ_CPU");
    if (taken++ || !level) return;
    int rc = sgt_cpu_limit(level, NULL);
    must(rc == SGT_OK || rc == SGT_EUNSUPPORTED, "FUZZ_CPU is a level");
}

#endif
