/* machine.c: describes the machine of a measurement in one line. */
#include <stdio.h>

#include "loader/base/cpu.h"
#include "train/log/metrics.h"
#include "tools/bench/bench.h"
#include "tools/cli/talk.h"

char *bench_machine(char *buf, size_t n)
{
    char cpu[64], memory[32];
    int cores = sgt_cpu_count();
    snprintf(buf, n, "%s, %d core%s, %s, %s of memory",
             sgt_printable(cpu, sizeof cpu, sgt_cpu_model()), cores, cores == 1 ? "" : "s",
             sgt_cpu_name(), sgt_format_bytes(memory, sizeof memory, sgt_memory_total()));
    return buf;
}

char *bench_name(char *buf, size_t n, const char *name)
{
    char all[1024];
    const char *s = sgt_printable(all, sizeof all, name);
    size_t length = 0, skip = 0;
    while (s[length]) length++;
    if (length < n) snprintf(buf, n, "%s", s);
    else {
        skip = length - (n - 4);
        while (((unsigned char)s[skip] & 0xc0) == 0x80) skip++; /* cut between characters */
        snprintf(buf, n, "...%s", s + skip);
    }
    return buf;
}
