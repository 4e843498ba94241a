/* meet.c: which files and row groups each rank reads; and a file for each rank, with a line for each
 * point that the rank has come to. */
#include "tokenize/parts/meet.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <time.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "tokenize/input/parquet.h"
#include "tokenize/out/out.h"

/* Ranks on several machines that have no common folder would wait for ever: fail if a rank's file
 * has not appeared after so many seconds. A shared file system may take a minute to show it. */
#define APPEAR_SECONDS 300
#define LINES 512 /* more than the bytes of a rank's lines */

struct sgt_meeting {
    char work[SGT_PATH], path[SGT_PATH]; /* path: of this rank's file */
    uint32_t ranks;
    int fd; /* of this rank's file, locked */
    const sgt_stop *stop;
};

static const char *const names[] = {"counts", "found", "plan", "done"};

/* Write the path of a rank's file, and return it. */
static char *rank_path(char path[SGT_PATH], const char *work, uint32_t rank)
{
    return sgt_path(path, work, SGT_OUT_RANK "%06" PRIu32, rank);
}

int sgt_meeting_open(sgt_meeting **out, const char *work, const sgt_ranks *r, const sgt_stop *stop,
                     sgt_error *err)
{
    sgt_meeting *m = calloc(1, sizeof *m);
    if (!m) return sgt_fail_memory(err, work);
    m->ranks = r->size;
    m->stop = stop;
    snprintf(m->work, sizeof m->work, "%s", work);
    m->fd = sgt_file_open(rank_path(m->path, work, r->rank), O_RDWR | O_CREAT | O_APPEND, err);
    int rc = m->fd < 0 ? m->fd : SGT_OK;
    if (!rc && flock(m->fd, LOCK_EX | LOCK_NB) < 0)
        rc = errno == EWOULDBLOCK
                 ? sgt_fail(err, SGT_EIO, "%s: another sgt-tokenize is running here (wait for it)",
                            m->path)
                 : sgt_fail_errno(err, "%s: cannot lock", m->path);
    if (!rc && ftruncate(m->fd, 0) < 0) rc = sgt_fail_errno(err, "%s", m->path);
    if (rc < 0) sgt_meeting_close(m);
    else *out = m;
    return rc;
}

void sgt_meeting_close(sgt_meeting *m)
{
    if (!m) return;
    if (m->fd >= 0) close(m->fd);
    free(m);
}

/* Append this rank's line for a point, with two numbers. */
static int write_line(const sgt_meeting *m, sgt_point point, uint64_t sum, uint64_t least,
                      sgt_error *err)
{
    char line[80];
    const int n =
        snprintf(line, sizeof line, "%s %" PRIu64 " %" PRIu64 "\n", names[point], sum, least);
    int rc = sgt_write_all(m->fd, line, (size_t)n, m->path, err);
    /* other machines see the line only when it has been sent to the file server */
    if (!rc && fsync(m->fd) < 0) rc = sgt_fail_errno(err, "%s: cannot flush to disk", m->path);
    return rc;
}

/* Read the numbers of a rank at a point. Return 1 if it has come to the point; 0 if it has not; -1
 * if it has no file yet, or none that can be read. */
static int read_line(const char *path, sgt_point point, uint64_t *sum, uint64_t *least)
{
    char lines[LINES + 1];
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return -1;
    const ssize_t n = pread(fd, lines, LINES, 0);
    close(fd);
    if (n < 0) return -1;
    lines[n] = 0;
    const char *line = strstr(lines, names[point]);
    if (!line || !strchr(line, '\n')) return 0;
    char *end;
    *sum = strtoull(line + strlen(names[point]), &end, 10);
    *least = strtoull(end, NULL, 10);
    return 1;
}

/* A network file system remembers for a while that a name does not exist. Opening the folder makes
 * it look again. */
static void reopen_folder(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) close(fd);
}

/* Wait until a rank has come to a point, and read its numbers. */
static int wait_for(const sgt_meeting *m, uint32_t rank, sgt_point point, uint64_t *sum,
                    uint64_t *least, sgt_error *err)
{
    char path[SGT_PATH];
    const double until = sgt_now() + APPEAR_SECONDS;
    long pause = 1000000; /* nanoseconds: 1 ms at first, so that short work waits only shortly */
    int rc = SGT_OK;
    rank_path(path, m->work, rank);
    for (int come; !rc && (come = read_line(path, point, sum, least)) <= 0;) {
        if (sgt_stopped(m->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        else if (come < 0 && sgt_now() > until)
            rc = sgt_fail(err, SGT_EIO,
                          "%s: rank %" PRIu32
                          " has made no file there (all ranks need one shared folder)",
                          m->work, rank);
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        if (pause < 50000000) pause *= 2;
        reopen_folder(m->work);
    }
    return rc;
}

int sgt_meet_with(sgt_meeting *m, sgt_point point, uint64_t *sum, uint64_t *least, sgt_error *err)
{
    uint64_t all = 0, smallest = UINT64_MAX;
    int rc = write_line(m, point, *sum, *least, err);
    for (uint32_t i = 0; i < m->ranks && !rc; i++) {
        uint64_t a = 0, b = 0;
        rc = wait_for(m, i, point, &a, &b, err);
        all += a;
        if (b < smallest) smallest = b;
    }
    *sum = all;
    *least = smallest;
    return rc;
}

int sgt_meeting_announce(sgt_meeting *m, sgt_point point, sgt_error *err)
{
    return write_line(m, point, 0, 0, err);
}

int sgt_meet(sgt_meeting *m, sgt_point point, sgt_error *err)
{
    uint64_t sum = 0, least = 0;
    return m ? sgt_meet_with(m, point, &sum, &least, err) : SGT_OK;
}

/* ---- dividing the inputs ---- */

#define FILE_COST 4096 /* bytes of text that take about as long as opening a file */

/* Shares are computed in long double, which holds 64 bits. */
typedef struct division {
    uint32_t ranks, rank; /* rank: the last one whose beginning is known */
    long double all;      /* cost of all files */
    long double before;   /* cost of the files before this one */
    sgt_cut *cuts;
} division;

/* Return the rank in whose share `at` is; the end is in the last one's. */
static uint32_t whose(const division *d, long double at)
{
    const uint32_t rank = (uint32_t)(at * d->ranks / d->all);
    return rank < d->ranks ? rank : d->ranks - 1;
}

/* Give what begins at the cut, and has its middle at `middle`, to the rank in whose share that
 * is. */
static void give(division *d, long double middle, sgt_cut at)
{
    const uint32_t to = whose(d, middle);
    while (d->rank < to && d->rank + 1 < d->ranks) d->cuts[++d->rank] = at;
}

static int cut_file(division *d, const sgt_corpus *c, size_t i, const char *field,
                    const sgt_stop *stop, sgt_error *err)
{
    const sgt_corpus_file *f = &c->files[i];
    const sgt_parquet_request r = {.file = f, .field = field, .stop = stop};
    const long double cost = (long double)f->size + FILE_COST;
    sgt_parquet *p;
    int rc = sgt_parquet_open(&p, &r, err);
    if (rc < 0) return rc;
    const size_t count = sgt_parquet_groups(p);
    uint64_t row, all, bytes, next;
    sgt_parquet_group_begin(p, count, &row, &all);
    for (size_t g = 0; g < count; g++) {
        sgt_parquet_group_begin(p, g + 1, &row, &next);
        sgt_parquet_group_begin(p, g, &row, &bytes);
        const long double part = all ? cost / (long double)all : 0;
        const sgt_cut at = {i, row, (uint64_t)((long double)bytes * part)};
        give(d, d->before + part * ((long double)bytes + (long double)next) / 2, at);
    }
    sgt_parquet_close(p);
    return SGT_OK;
}

int sgt_divide(const sgt_corpus *c, const char *field, uint32_t ranks, sgt_cut *cuts,
               const sgt_stop *stop, sgt_error *err)
{
    division d = {.ranks = ranks,
                  .all = (long double)c->bytes + (long double)c->count * FILE_COST,
                  .cuts = cuts};
    int rc = SGT_OK;
    cuts[0] = (sgt_cut){0};
    for (size_t i = 0; i < c->count && !rc; i++) {
        const long double cost = (long double)c->files[i].size + FILE_COST;
        if (c->files[i].rows && whose(&d, d.before) != whose(&d, d.before + cost))
            rc = cut_file(&d, c, i, field ? field : "text", stop, err);
        else give(&d, d.before + cost / 2, (sgt_cut){.file = i});
        d.before += cost;
    }
    while (d.rank < ranks) cuts[++d.rank] = (sgt_cut){.file = c->count};
    return rc;
}

int sgt_divide_cuts(const sgt_cut *cuts, uint32_t ranks)
{
    int any = 0;
    for (uint32_t i = 0; i <= ranks; i++) any |= cuts[i].row > 0;
    return any;
}

int sgt_divide_take(sgt_corpus *mine, const sgt_corpus *c, const sgt_cut *cuts, uint32_t rank,
                    sgt_error *err)
{
    const sgt_cut from = cuts[rank], to = cuts[rank + 1];
    *mine = *c;
    mine->count = to.file + (to.row > 0) - from.file;
    mine->files = malloc(mine->count * sizeof *mine->files);
    if (!mine->files) return sgt_fail_memory(err, "the files of a rank");
    memcpy(mine->files, c->files + from.file, mine->count * sizeof *mine->files);
    sgt_corpus_file *first = mine->files, *last = &mine->files[mine->count - 1];
    first->from_row = from.row;
    if (to.row) {
        last->end_row = to.row;
        last->share = to.bytes;
    }
    if (from.row) first->share = (first->share ? first->share : first->size) - from.bytes;
    mine->bytes = mine->line_files = 0;
    for (size_t i = 0; i < mine->count; i++) {
        mine->bytes += sgt_corpus_share(&mine->files[i]);
        mine->line_files += mine->files[i].lines || mine->files[i].rows;
    }
    return SGT_OK;
}
