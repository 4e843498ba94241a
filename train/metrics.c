/* metrics.c: lines of log.jsonl, and what the system says about memory. */
#include "metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct text {
    char *buf;
    size_t n, at;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(t->buf + t->at, t->n - t->at, fmt, args);
    va_end(args);
    t->at = n < 0 || (size_t)n >= t->n - t->at ? t->n - 1 : t->at + (size_t)n;
}

static void number(text *t, const char *name, int digits, double x)
{
    if (isfinite(x)) put(t, ",\"%s\":%.*g", name, digits, x);
    else put(t, ",\"%s\":null", name);
}

char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m)
{
    text t = {buf, n, 0};
    put(&t, "{\"step\":%" PRIu64, m->step);
    number(&t, "loss", 9, m->loss);
    if (m->evaluated) number(&t, "val_loss", 9, m->val_loss);
    number(&t, "lr", 9, m->lr);
    number(&t, "grad_norm", 9, m->grad_norm);
    number(&t, "loss_scale", 9, m->loss_scale);
    put(&t, ",\"skipped\":%" PRIu64, m->skipped);
    put(&t, ",\"tokens\":%" PRIu64, m->tokens);
    number(&t, "epoch", 9, m->epoch);
    number(&t, "tokens_per_s", 6, m->tokens_per_s);
    number(&t, "ms_per_step", 6, m->ms_per_step);
    number(&t, "data_wait_ms", 4, m->data_wait_ms);
    if (m->mfu > 0) number(&t, "mfu", 4, m->mfu);
    if (m->mfu_datasheet > 0) number(&t, "mfu_datasheet", 4, m->mfu_datasheet);
    put(&t, ",\"peak_bytes\":%" PRIu64 "}", m->peak_bytes);
    return buf;
}

double sgt_flops_per_token(const sgt_model *m, uint64_t seq)
{
    double L = m->layers, C = m->channels, weights = 12 * L * C * C + (double)m->vocab * C;
    return 6 * weights + 12 * L * C * (double)seq;
}

uint64_t sgt_memory_peak(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

/* A number from the line of `path` that starts with `key` ("" for the first), times `unit`; UINT64_MAX where there is
 * none. */
static uint64_t read_number(const char *path, const char *key, uint64_t unit)
{
    char line[256];
    uint64_t found = UINT64_MAX;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        unsigned long long v;
        if (sscanf(line + strlen(key), "%llu", &v) == 1) found = v * unit; /* "max" is no number: no limit */
        break;
    }
    if (f) fclose(f);
    return found;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t sgt_memory_total(void)
{
    return smaller(read_number("/proc/meminfo", "MemTotal:", 1024), read_number("/sys/fs/cgroup/memory.max", "", 1));
}

uint64_t sgt_memory_available(void)
{
    uint64_t limit = read_number("/sys/fs/cgroup/memory.max", "", 1),
             used = read_number("/sys/fs/cgroup/memory.current", "", 1);
    uint64_t cache = read_number("/sys/fs/cgroup/memory.stat", "file ", 1); /* what the kernel gives back when asked */
    if (cache != UINT64_MAX && used != UINT64_MAX) used = used > cache ? used - cache : 0;
    uint64_t here = limit == UINT64_MAX || used == UINT64_MAX ? UINT64_MAX : limit > used ? limit - used : 0;
    return smaller(read_number("/proc/meminfo", "MemAvailable:", 1024), here);
}
