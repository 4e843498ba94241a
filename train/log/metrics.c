/* metrics.c: writes lines of log.jsonl, and finds the memory of the process and the machine. */
#include "train/log/metrics.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "loader/base/memory.h"

enum { MFU_DIGITS = 4 };

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

size_t sgt_metrics_list(const sgt_metrics *m, sgt_metric list[SGT_METRICS])
{
    size_t n = 0;
#define METRIC(...) list[n++] = (sgt_metric){__VA_ARGS__}
    METRIC("loss", m->loss, 9);
    if (m->evaluated) METRIC("val_loss", m->val_loss, 9);
    if (m->evaluated && m->val_bits_per_byte > 0)
        METRIC("val_bits_per_byte", m->val_bits_per_byte, 9);
    METRIC("lr", m->lr, 9);
    METRIC("grad_norm", m->grad_norm, 9);
    METRIC("loss_scale", m->loss_scale, 9);
    METRIC("skipped", (double)m->skipped, 0);
    if (m->skipping) METRIC("spikes", (double)m->spikes, 0);
    METRIC("tokens", (double)m->tokens, 0);
    METRIC("epoch", m->epoch, 9);
    METRIC("tokens_per_s", m->tokens_per_s, 6);
    METRIC("ms_per_step", m->ms_per_step, 6);
    METRIC("data_wait_ms", m->data_wait_ms, 4);
    if (m->mfu > 0) METRIC("mfu", m->mfu, MFU_DIGITS);
    if (m->mfu_datasheet > 0) METRIC("mfu_datasheet", m->mfu_datasheet, MFU_DIGITS);
    METRIC("peak_bytes", (double)m->peak_bytes, 0);
#undef METRIC
    return n;
}

/* Append the advice, which is plain text without control characters. */
static void put_advice(text *t, const char *advice)
{
    put(t, ",\"advice\":\"");
    for (; *advice; advice++) put(t, *advice == '"' || *advice == '\\' ? "\\%c" : "%c", *advice);
    put(t, "\"");
}

char *sgt_metrics_json(char *buf, size_t n, const sgt_metrics *m)
{
    text t = {buf, n, 0};
    sgt_metric list[SGT_METRICS];
    size_t count = sgt_metrics_list(m, list);
    put(&t, "{\"step\":%" PRIu64, m->step);
    for (size_t i = 0; i < count; i++) {
        put(&t, ",\"%s\":", list[i].name);
        if (!isfinite(list[i].value)) put(&t, "null");
        else if (list[i].digits) put(&t, "%.*g", list[i].digits, list[i].value);
        else put(&t, "%.0f", list[i].value);
    }
    if (m->advice) put_advice(&t, m->advice);
    put(&t, "}");
    return buf;
}

double sgt_bits_per_byte(const sgt_text_loss *s)
{
    return s->bytes > 0 ? s->nats / log(2) / s->bytes : 0;
}

double sgt_flops_per_token(const sgt_model *m, uint64_t seq)
{
    double L = m->layers, C = m->channels, weights = 12 * L * C * C + (double)m->vocab * C;
    return 6 * weights + 12 * L * C * (double)seq;
}

double sgt_mfu(double rate, double *peak, int exact)
{
    char digits[32];
    if (!(*peak > 0) || !(rate > 0) || !isfinite(rate)) return 0; /* the clock may have jumped */
    if (rate > *peak && exact) *peak = rate;
    snprintf(digits, sizeof digits, "%.*g", MFU_DIGITS, rate < *peak ? rate / *peak : 1);
    return strtod(digits, NULL);
}

double sgt_pf_days(uint64_t parameters, double tokens)
{
    return 6 * (double)parameters * tokens / (1e15 * 86400);
}

uint64_t sgt_memory_peak(void)
{
    struct rusage u;
    return getrusage(RUSAGE_SELF, &u) == 0 ? (uint64_t)u.ru_maxrss * 1024 : 0;
}

uint64_t sgt_memory_resident(void)
{
    char line[128] = "", *at; /* a line of numbers: virtual pages, resident pages, ... */
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && !fgets(line, sizeof line, f)) line[0] = 0;
    if (f) fclose(f);
    strtoull(line, &at, 10);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* Return the number in the first line of `path` that starts with `key` ("" for any line), times
 * `unit`; UINT64_MAX if there is none. */
static uint64_t read_number(const char *path, const char *key, uint64_t unit)
{
    char line[256];
    uint64_t found = UINT64_MAX;
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) != 0) continue;
        char *number = line + strlen(key), *end;
        unsigned long long v = strtoull(number, &end, 10);
        /* "max" is not a number, and means that there is no limit */
        if (end > number) found = v * unit;
        break;
    }
    if (f) fclose(f);
    return found;
}

static uint64_t smaller(uint64_t a, uint64_t b) { return a < b ? a : b; }

uint64_t sgt_memory_total(void)
{
    return smaller(read_number("/proc/meminfo", "MemTotal:", 1024),
                   read_number("/sys/fs/cgroup/memory.max", "", 1));
}

uint64_t sgt_memory_available(void)
{
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    return m.available;
}
