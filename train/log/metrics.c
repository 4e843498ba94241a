/* metrics.c: writes the lines of log.jsonl, and event files for TensorBoard, with a Protocol
 * Buffers encoder that supports only the fields of these files. It also contains the functions that
 * ask the system for sizes of memory. */
#include "train/log/metrics.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/file.h"
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
    if (m->evaluated && m->val_noise > 0) METRIC("val_noise", m->val_noise, 4);
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

/* Append the member "advice" to a line of log.jsonl. `advice` must not contain control
 * characters. */
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
    /* /proc/self/statm is one line of numbers: virtual pages, resident pages, and others */
    char line[128] = "", *at;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && !fgets(line, sizeof line, f)) line[0] = 0;
    if (f) fclose(f);
    strtoull(line, &at, 10);
    return strtoull(at, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE);
}

uint64_t sgt_memory_total(void)
{
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    return m.total;
}

uint64_t sgt_memory_available(void)
{
    sgt_memory m;
    sgt_memory_look(&m, NULL);
    return m.available;
}

/* ---- event files ---- */

#define PREFIX "events.out.tfevents."
/* maximum size of an event in bytes; the event with a step's metrics has about 400 bytes */
#define MAX_EVENT 4096

/* Return the CRC-32C (Castagnoli) of n bytes. Bits are processed one at a time, from the lowest bit
 * of each byte on. For the 400 bytes of a step's event, this takes about 3 us. */
static uint32_t crc32c(const void *p, size_t n)
{
    const unsigned char *at = p;
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < n; i++) {
        crc ^= at[i];
        for (int b = 0; b < 8; b++) crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

uint32_t sgt_crc32c_masked(const void *p, size_t n)
{
    uint32_t crc = crc32c(p, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

struct sgt_events {
    int fd;
    char path[SGT_PATH];
};

/* ---- Protocol Buffers ---- */

/* Protocol Buffers encoding (protobuf.dev/programming-guides/encoding): a field consists of a
 * varint, which contains the field's number and type, and of the field's value. The field numbers
 * and names used here come from TensorFlow's event.proto and summary.proto. */

enum { VARINT = 0, FIXED64 = 1, BYTES = 2, FIXED32 = 5 }; /* types of fields */
/* fields of Event */
enum { WALL_TIME = 1, STEP = 2, FILE_VERSION = 3, SUMMARY = 5, SESSION_LOG = 7 };
enum { SUMMARY_VALUE = 1, VALUE_TAG = 1, VALUE_NUMBER = 2, LOG_STATUS = 1, STATUS_START = 1 };

typedef struct message {
    unsigned char *at;
    /* n: length of the complete message in bytes; room: size of the buffer in bytes. If n > room,
     * the message is incomplete, because the bytes that did not fit were counted but not stored. */
    size_t n, room;
} message;

static void put_byte(message *m, uint64_t byte)
{
    if (m->n < m->room) m->at[m->n] = (unsigned char)byte;
    m->n++;
}

static void put_little_endian(message *m, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) put_byte(m, v >> 8 * i & 255);
}

/* Append v as a varint: seven bits per byte, lowest bits first. The eighth bit of a byte is 1 if
 * another byte follows; otherwise it is 0. */
static void put_varint(message *m, uint64_t v)
{
    for (; v > 127; v >>= 7) put_byte(m, (v & 127) | 128);
    put_byte(m, v);
}

static void put_key(message *m, unsigned field, unsigned type) { put_varint(m, field << 3 | type); }

static void put_bytes(message *m, unsigned field, const void *p, size_t n)
{
    const unsigned char *bytes = p;
    put_key(m, field, BYTES);
    put_varint(m, n);
    for (size_t i = 0; i < n; i++) put_byte(m, bytes[i]);
}

static void put_step(message *m, uint64_t step)
{
    put_key(m, STEP, VARINT);
    put_varint(m, step);
}

static void put_value(message *m, const sgt_metric *metric)
{
    unsigned char bytes[64];
    message value = {bytes, 0, sizeof bytes};
    float number = (float)metric->value;
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    put_bytes(&value, VALUE_TAG, metric->name, strlen(metric->name));
    put_key(&value, VALUE_NUMBER, FIXED32);
    put_little_endian(&value, bits, 4);
    put_bytes(m, SUMMARY_VALUE, bytes, value.n); /* names have at most 17 letters */
}

/* ---- records ---- */

static void begin_event(message *m, unsigned char *bytes)
{
    struct timespec t;
    uint64_t bits;
    clock_gettime(CLOCK_REALTIME, &t);
    double now = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    memcpy(&bits, &now, sizeof bits);
    *m = (message){bytes, 0, MAX_EVENT};
    put_key(m, WALL_TIME, FIXED64);
    put_little_endian(m, bits, 8);
}

static int write_event(sgt_events *e, const message *event, sgt_error *err)
{
    unsigned char bytes[12 + MAX_EVENT + 4];
    message record = {bytes, 0, sizeof bytes};
    if (event->n > event->room)
        return sgt_fail(err, SGT_EUSAGE, "%s: an event of %zu bytes is too large", e->path,
                        event->n);
    put_little_endian(&record, event->n, 8);
    put_little_endian(&record, sgt_crc32c_masked(bytes, 8), 4);
    for (size_t i = 0; i < event->n; i++) put_byte(&record, event->at[i]);
    put_little_endian(&record, sgt_crc32c_masked(event->at, event->n), 4);
    return sgt_write_all(e->fd, bytes, record.n, e->path, err);
}

static int write_head(sgt_events *e, uint64_t step, sgt_error *err)
{
    static const char version[] = "brain.Event:2";
    static const unsigned char start[] = {LOG_STATUS << 3 | VARINT, STATUS_START};
    unsigned char bytes[MAX_EVENT];
    message m;
    begin_event(&m, bytes);
    put_bytes(&m, FILE_VERSION, version, sizeof version - 1);
    int rc = write_event(e, &m, err);
    if (rc < 0) return rc;
    begin_event(&m, bytes);
    put_step(&m, step);
    put_bytes(&m, SESSION_LOG, start, sizeof start);
    return write_event(e, &m, err);
}

/* Set *latest to the latest time, in seconds, that occurs in the name of an event file in `folder`,
 * or to 0 if there is no event file. If `remove` is set, also delete all event files. */
static int list_events(const char *folder, int remove, unsigned long long *latest, sgt_error *err)
{
    int rc = SGT_OK;
    DIR *d = opendir(folder);
    *latest = 0;
    if (!d) return sgt_fail_errno(err, "%s", folder);
    for (struct dirent *f; rc == SGT_OK && (f = readdir(d));) {
        const char *number = f->d_name + sizeof PREFIX - 1;
        char *end;
        if (strncmp(f->d_name, PREFIX, sizeof PREFIX - 1) != 0) continue;
        unsigned long long at = strtoull(number, &end, 10);
        if (end == number) continue;
        if (remove && unlinkat(dirfd(d), f->d_name, 0) < 0)
            rc = sgt_fail_errno(err, "%s/%s", folder, f->d_name);
        else if (!remove && at > *latest) *latest = at;
    }
    closedir(d);
    return rc;
}

/* Write the path of a new event file to `to`. The name of an event file contains the time in
 * seconds, and TensorBoard reads the files in the order of their names. The new name must come last
 * even if the previous file was created within the same second. Therefore its time is above
 * `latest`, the latest time in the existing names. */
static void make_path(char to[SGT_PATH], const char *folder, unsigned long long latest)
{
    char host[65] = "localhost";
    unsigned long long now = (unsigned long long)time(NULL);
    gethostname(host, sizeof host - 1);
    sgt_path(to, folder, PREFIX "%010llu.%s.%ld", now > latest ? now : latest + 1, host,
             (long)getpid());
}

int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err)
{
    unsigned long long latest;
    sgt_events *e = calloc(1, sizeof *e);
    if (!e) return sgt_fail_memory(err, folder);
    e->fd = -1;
    int rc = sgt_make_folders(folder, err);
    if (rc < 0 || (rc = list_events(folder, step == 0, &latest, err)) < 0) goto fail;
    make_path(e->path, folder, latest);
    e->fd = open(e->path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (e->fd < 0) {
        rc = sgt_fail_errno(err, "%s", e->path);
        goto fail;
    }
    if ((rc = write_head(e, step, err)) < 0) goto fail;
    *out = e;
    return SGT_OK;
fail:
    sgt_events_close(e);
    return rc;
}

void sgt_events_close(sgt_events *e)
{
    if (!e) return;
    if (e->fd >= 0) close(e->fd);
    free(e);
}

int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err)
{
    sgt_metric list[SGT_METRICS];
    unsigned char bytes[MAX_EVENT], inner[MAX_EVENT];
    message event, summary = {inner, 0, sizeof inner};
    size_t count = sgt_metrics_list(m, list);
    for (size_t i = 0; i < count; i++) put_value(&summary, &list[i]);
    if (summary.n > summary.room)
        return sgt_fail(err, SGT_EUSAGE, "%s: an event of %zu bytes is too large", e->path,
                        summary.n);
    begin_event(&event, bytes);
    put_step(&event, m->step);
    put_bytes(&event, SUMMARY, inner, summary.n);
    return write_event(e, &event, err);
}
