/* events.c: event files for TensorBoard: records by hand, what is in them by protobuf-c. */
#include "events.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"

#define PREFIX "events.out.tfevents."
#define MAX_EVENT 4096 /* bytes of one: a step's has about 400 */

/* Bit by bit, low ones first: a step's 400 bytes take about 3 us. */
uint32_t sgt_crc32c(const void *p, size_t n)
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
    uint32_t crc = sgt_crc32c(p, n);
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

#ifdef SGT_PROTOBUF_C
#include "events.pb-c.h"

struct sgt_events {
    int fd;
    char *path;
};

int sgt_events_built(void) { return 1; }

static void little_endian(unsigned char *to, uint64_t v, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = (unsigned char)(v >> 8 * i);
}

static int write_event(sgt_events *e, Sgt__Event *event, sgt_error *err)
{
    unsigned char record[12 + MAX_EVENT + 4];
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    event->has_wall_time = 1;
    event->wall_time = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    size_t n = sgt__event__get_packed_size(event);
    if (n > MAX_EVENT) return sgt_fail(err, SGT_EUSAGE, "%s: an event of %zu bytes", e->path, n);
    sgt__event__pack(event, record + 12);
    little_endian(record, n, 8);
    little_endian(record + 8, sgt_crc32c_masked(record, 8), 4);
    little_endian(record + 12 + n, sgt_crc32c_masked(record + 12, n), 4);
    return sgt_write_all(e->fd, record, 12 + n + 4, e->path, err);
}

static int write_head(sgt_events *e, uint64_t step, sgt_error *err)
{
    Sgt__Event version = SGT__EVENT__INIT, begin = SGT__EVENT__INIT;
    Sgt__SessionLog start = SGT__SESSION_LOG__INIT;
    char name[] = "brain.Event:2";
    version.file_version = name;
    start.has_status = 1;
    start.status = SGT__SESSION_LOG__STATUS__START;
    begin.has_step = 1;
    begin.step = (int64_t)step;
    begin.session_log = &start;
    int rc = write_event(e, &version, err);
    return rc < 0 ? rc : write_event(e, &begin, err);
}

/* The latest second that a file there has in its name, 0 without any; with `remove` they go. */
static int survey(const char *folder, int remove, unsigned long long *latest, sgt_error *err)
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
        if (remove && unlinkat(dirfd(d), f->d_name, 0) < 0) rc = sgt_fail_errno(err, "%s/%s", folder, f->d_name);
        else if (!remove && at > *latest) *latest = at;
    }
    closedir(d);
    return rc;
}

/* TensorBoard reads a folder's files in the order of their names: two starts within a second stay in theirs. */
static char *new_path(const char *folder, unsigned long long latest)
{
    char host[65] = "localhost", name[160];
    unsigned long long now = (unsigned long long)time(NULL);
    gethostname(host, sizeof host - 1);
    snprintf(name, sizeof name, PREFIX "%010llu.%s.%ld", now > latest ? now : latest + 1, host, (long)getpid());
    return sgt_join(folder, name);
}

int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err)
{
    unsigned long long latest;
    sgt_events *e = calloc(1, sizeof *e);
    if (!e) return sgt_fail(err, SGT_ENOMEM, "%s: out of memory", folder);
    e->fd = -1;
    int rc = sgt_make_folders(folder, err);
    if (rc < 0 || (rc = survey(folder, step == 0, &latest, err)) < 0) goto fail;
    if (!(e->path = new_path(folder, latest))) {
        rc = sgt_fail(err, SGT_ENOMEM, "%s: out of memory", folder);
        goto fail;
    }
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
    free(e->path);
    free(e);
}

int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err)
{
    sgt_metric list[SGT_METRICS];
    char names[SGT_METRICS][32]; /* protobuf-c's strings are not const */
    Sgt__Summary__Value values[SGT_METRICS], *places[SGT_METRICS];
    Sgt__Summary summary = SGT__SUMMARY__INIT;
    Sgt__Event event = SGT__EVENT__INIT;
    summary.n_value = sgt_metrics_list(m, list);
    summary.value = places;
    for (size_t i = 0; i < summary.n_value; i++) {
        sgt__summary__value__init(&values[i]);
        snprintf(names[i], sizeof names[i], "%s", list[i].name);
        values[i].tag = names[i];
        values[i].has_simple_value = 1;
        values[i].simple_value = (float)list[i].value;
        places[i] = &values[i];
    }
    event.has_step = 1;
    event.step = (int64_t)m->step;
    event.summary = &summary;
    return write_event(e, &event, err);
}

#else

int sgt_events_built(void) { return 0; }

int sgt_events_open(sgt_events **out, const char *folder, uint64_t step, sgt_error *err)
{
    (void)out;
    (void)step;
    return sgt_fail(err, SGT_EUNSUPPORTED, "%s: built without protobuf-c, which TensorBoard's events need", folder);
}

void sgt_events_close(sgt_events *e) { (void)e; }

int sgt_events_add(sgt_events *e, const sgt_metrics *m, sgt_error *err)
{
    (void)e;
    (void)m;
    return sgt_fail(err, SGT_EUNSUPPORTED, "built without protobuf-c, which TensorBoard's events need");
}
#endif
