/* meet.c: a file for each rank, with a line for each point that the rank has come to. */
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
#include "tokenize/out/out.h"

/* Ranks on several machines that have no common folder would wait for ever: fail if a rank's file
 * has not appeared after so many seconds. A shared file system may take a minute to show it. */
#define APPEAR_SECONDS 300
#define LINES 512 /* more than the bytes of a rank's lines */

struct sgt_meeting {
    char *work, *path; /* path: of this rank's file */
    uint32_t rank, ranks;
    int fd; /* of this rank's file, locked */
    const sgt_stop *stop;
};

static const char *const names[] = {"counts", "records", "found", "marks", "plan", "done"};

static char *rank_path(const char *work, uint32_t rank)
{
    char name[32];
    snprintf(name, sizeof name, SGT_OUT_RANK "%06" PRIu32, rank);
    return sgt_join(work, name);
}

int sgt_meeting_open(sgt_meeting **out, const char *work, const sgt_ranks *r, const sgt_stop *stop,
                     sgt_error *err)
{
    sgt_meeting *m = calloc(1, sizeof *m);
    if (!m) return sgt_fail_memory(err, work);
    *m = (sgt_meeting){.rank = r->rank, .ranks = r->size, .fd = -1, .stop = stop};
    m->work = strdup(work);
    m->path = rank_path(work, r->rank);
    int rc = m->work && m->path ? SGT_OK : sgt_fail_memory(err, work);
    if (!rc) m->fd = open(m->path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (!rc && m->fd < 0) rc = sgt_fail_errno(err, "%s", m->path);
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
    free(m->work);
    free(m->path);
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
static void look_again(const char *folder)
{
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) close(fd);
}

/* Wait until a rank has come to a point, and read its numbers. */
static int wait_for(const sgt_meeting *m, uint32_t rank, sgt_point point, uint64_t *sum,
                    uint64_t *least, sgt_error *err)
{
    char *path = rank_path(m->work, rank);
    const double until = sgt_now() + APPEAR_SECONDS;
    long pause = 1000000; /* nanoseconds: 1 ms at first, so that short work waits only shortly */
    int rc = path ? SGT_OK : sgt_fail_memory(err, m->work);
    for (int come; !rc && (come = read_line(path, point, sum, least)) <= 0;) {
        if (sgt_stopped(m->stop)) rc = sgt_fail(err, SGT_ESTOPPED, "stopped");
        else if (come < 0 && sgt_now() > until)
            rc = sgt_fail(err, SGT_EIO,
                          "%s: rank %" PRIu32
                          " has made no file there (all ranks need one shared folder)",
                          m->work, rank);
        nanosleep(&(struct timespec){.tv_nsec = pause}, NULL);
        if (pause < 50000000) pause *= 2;
        look_again(m->work);
    }
    free(path);
    return rc;
}

/* Announce a point with two numbers, wait for all ranks, and combine their numbers. */
static int meet(sgt_meeting *m, sgt_point point, uint64_t *sum, uint64_t *least, sgt_error *err)
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
    return m ? meet(m, point, &sum, &least, err) : SGT_OK;
}

int sgt_meet_counts(sgt_meeting *m, uint64_t *sum, uint64_t *least, sgt_error *err)
{
    return meet(m, SGT_MEET_COUNTS, sum, least, err);
}
