/* owner.c: flock, and files that name the owner of a folder. */
#include "loader/base/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "loader/base/clock.h"
#include "loader/base/file.h"
#include "loader/base/thread.h"

#define TOUCH_MS 10000 /* between two touches of an owner's file */
#define TURN_MS 100    /* between two looks at the file of an owner that may be dead */
#define TURNS 600      /* looks without a change after which it counts as dead: a minute */
#define SILENT_TURNS 10
#define UNKNOWN UINT64_MAX

/* What an owner's file says: "MARK PROCESS START MACHINE\n", in columns of fixed widths. */
typedef struct record {
    char text[192]; /* filled up with zeros */
    struct timespec touched;
} record;
#define MACHINE 48 /* where it begins; nothing is there if the machine is unknown */

struct sgt_owner {
    char path[SGT_PATH];
    record mine, other; /* other: what the last file said that sgt_owner_lives has read */
    pthread_t thread;
    pthread_mutex_t mutex; /* of the fields below */
    pthread_cond_t ends;
    int ended;     /* 1: the thread must end */
    int lost;      /* 1: the file is gone, or names another owner */
    double looked; /* time of the last look at the file, as from sgt_now */
};

int sgt_lock(int *fd, const char *path, int flags, sgt_claimant *who, sgt_error *err)
{
    *fd = sgt_file_open(path, flags, err);
    if (*fd < 0 || flock(*fd, LOCK_EX | LOCK_NB) == 0) return *fd < 0 ? *fd : SGT_OK;
    if (errno == ENOSYS || errno == EOPNOTSUPP || errno == ENOLCK || errno == EINVAL) {
        if (!who->told++)
            sgt_say(who->notice,
                    "%s: cannot be locked on this file system (%s): only files that name their "
                    "owner keep two writers apart",
                    path, strerror(errno));
        return SGT_OK;
    }
    const int busy = errno == EWOULDBLOCK || errno == EINTR;
    const int rc = busy ? 1 : sgt_fail_errno(err, "%s: cannot lock", path);
    close(*fd);
    *fd = -1;
    return rc;
}

/* ---- what a file says, and what is known of its owner ---- */

/* Read a file into *r. Return 1; 0 with zeros in *r if there is no file; or a negative SGT_E*. */
static int read_record(record *r, const char *path, sgt_error *err)
{
    struct stat st = {0};
    memset(r, 0, sizeof *r); /* records are compared as bytes */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return errno == ENOENT ? 0 : sgt_fail_errno(err, "%s", path);
    const int read = fstat(fd, &st) == 0 && pread(fd, r->text, sizeof r->text - 1, 0) >= 0;
    const int rc = read ? 1 : sgt_fail_errno(err, "%s", path);
    r->touched = st.st_mtim;
    close(fd);
    return rc;
}

/* Return when a process began, in the kernel's ticks since the boot; 0 if it has ended, even if its
 * parent has not yet asked how; UNKNOWN if this process may not see that. */
static uint64_t start_of(int pid)
{
    char path[32], line[1024], state;
    const char *name_end;
    uint64_t start = UNKNOWN;
    if (kill(pid, 0) < 0 && errno == ESRCH) return 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f) && (name_end = strrchr(line, ')')) &&
        sscanf(name_end,
               ") %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
               "%" SCNu64,
               &state, &start) == 2 &&
        strchr("ZX", state))
        start = 0;
    if (f) fclose(f);
    return start;
}

/* Fill in the text of this process. Its machine is the part of it in which processes see each
 * other. */
static int describe(record *r, sgt_error *err)
{
    const uint64_t start = start_of(getpid());
    char boot[40] = "";
    uint64_t mark;
    struct stat space;
    struct utsname u;
    if (getrandom(&mark, sizeof mark, 0) != sizeof mark)
        return sgt_fail_errno(err, "a random number");
    snprintf(r->text, sizeof r->text, "%016" PRIx64 " %010d %019" PRIu64 " ", mark, getpid(),
             start);
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (f && fgets(boot, sizeof boot, f) && start != UNKNOWN &&
        stat("/proc/self/ns/pid", &space) == 0 && uname(&u) == 0)
        snprintf(r->text + MACHINE, sizeof r->text - MACHINE, "%s %.36s %ju\n", u.nodename, boot,
                 (uintmax_t)space.st_ino);
    if (f) fclose(f);
    return SGT_OK;
}

/* Return 1 if the owner that r names is alive, 0 if it has ended, even if another process has its
 * number now, or -1 if it is on another machine or hidden. */
static int is_alive(const record *r, const record *mine)
{
    int pid;
    uint64_t start;
    if (!mine->text[MACHINE] || strcmp(r->text + MACHINE, mine->text + MACHINE) ||
        sscanf(r->text, "%*s %d %" SCNu64, &pid, &start) != 2)
        return -1;
    const uint64_t now = start_of(pid);
    return now == UNKNOWN ? -1 : now == start;
}

int sgt_owner_lives(sgt_owner *o, const char *path, const sgt_claimant *who, sgt_error *err)
{
    record now;
    int rc = read_record(&o->other, path, err);
    if (rc <= 0) return rc;
    const int alive = is_alive(&o->other, &o->mine);
    if (!who || alive >= 0) return alive != 0;
    /* a file without content was left by a process that was killed as it made it */
    for (int turn = 0; turn < (o->other.text[0] ? TURNS : SILENT_TURNS); turn++) {
        if (turn == SILENT_TURNS)
            sgt_say(who->notice,
                    "%s: its owner is not visible from here, so this program waits for up to %d s "
                    "to see whether it touches this file",
                    path, TURNS * TURN_MS / 1000);
        poll(NULL, 0, TURN_MS);
        if (sgt_stopped(who->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        /* a file that cannot be read at the moment is not a change */
        rc = read_record(&now, path, NULL);
        if (rc >= 0 && memcmp(&now, &o->other, sizeof now)) return rc;
    }
    return 0;
}

/* ---- taking, keeping and leaving ---- */

/* Return whether the file names this owner; -1 if it cannot be read. */
static int is_ours(const sgt_owner *o)
{
    record now;
    return read_record(&now, o->path, NULL) < 0 ? -1 : strcmp(now.text, o->mine.text) == 0;
}

/* Make the file. Return 0; 1 if there is one; or a negative SGT_E*. */
static int create(const sgt_owner *o, sgt_error *err)
{
    const int fd = open(o->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return errno == EEXIST ? 1 : sgt_fail_errno(err, "%s: cannot create", o->path);
    const int rc = sgt_write_all(fd, o->mine.text, strlen(o->mine.text), o->path, err);
    close(fd);
    if (rc < 0) unlink(o->path);
    return rc;
}

/* Remove the file of the dead owner that o->other names. Several processes may do so at once, and one
 * of them may already have made its own file: so move the file away first, and bring it back if it is
 * another. */
static void remove_dead(const sgt_owner *o)
{
    char aside[SGT_PATH + 32];
    record now;
    snprintf(aside, sizeof aside, "%s.%.16s.tmp", o->path, o->mine.text);
    if (read_record(&now, o->path, NULL) <= 0 || strcmp(now.text, o->other.text) ||
        rename(o->path, aside) < 0)
        return;
    if (read_record(&now, aside, NULL) == 1 && strcmp(now.text, o->other.text))
        (void)rename(aside, o->path);
    else unlink(aside);
}

static int take(sgt_owner *o, const sgt_claimant *who, sgt_error *err)
{
    int rc;
    while ((rc = create(o, err)) >= 0) {
        const int ours = is_ours(o);
        /* NFS may have made the file, but lost the answer */
        if (ours == 1 || (rc == 0 && ours < 0)) return SGT_OK;
        if ((rc = sgt_owner_lives(o, o->path, who, err)) != 0) return rc;
        remove_dead(o);
    }
    return rc;
}

/* Look whether the file is still ours. The caller has locked o->mutex. */
static void look(sgt_owner *o)
{
    o->lost |= is_ours(o) == 0;
    o->looked = sgt_now();
}

static void *touch(void *ctx)
{
    sgt_owner *o = ctx;
    pthread_mutex_lock(&o->mutex);
    while (!o->ended) {
        sgt_wait(&o->ends, &o->mutex, TOUCH_MS);
        look(o);
        if (!o->lost) (void)utimensat(AT_FDCWD, o->path, NULL, 0);
    }
    pthread_mutex_unlock(&o->mutex);
    return NULL;
}

int sgt_owner_take(sgt_owner **out, const char *path, const sgt_claimant *who, sgt_error *err)
{
    sgt_owner *o = calloc(1, sizeof *o);
    if (!o) return sgt_fail_memory(err, path);
    snprintf(o->path, sizeof o->path, "%s", path);
    pthread_mutex_init(&o->mutex, NULL);
    pthread_cond_init(&o->ends, NULL);
    int rc = describe(&o->mine, err);
    if (!rc) rc = take(o, who, err);
    if (!rc && (errno = sgt_thread_start(&o->thread, touch, o))) {
        rc = sgt_fail_errno(err, "%s: cannot start a thread", path);
        unlink(path);
    }
    if (rc) free(o);
    else *out = o;
    return rc;
}

int sgt_owner_check(sgt_owner *o, sgt_error *err)
{
    if (!o) return SGT_OK;
    pthread_mutex_lock(&o->mutex);
    if (sgt_now() - o->looked >= 1) look(o);
    const int lost = o->lost;
    pthread_mutex_unlock(&o->mutex);
    if (!lost) return SGT_OK;
    return sgt_fail(
        err, SGT_EUNSUPPORTED,
        "%s: another program has taken over, or the file was removed, so this one stops", o->path);
}

void sgt_owner_leave(sgt_owner *o)
{
    if (!o) return;
    pthread_mutex_lock(&o->mutex);
    o->ended = 1;
    pthread_cond_signal(&o->ends);
    pthread_mutex_unlock(&o->mutex);
    pthread_join(o->thread, NULL);
    /* if it stayed, this process would seem to be at work until it ends */
    for (int tries = 0; tries < 3 && !o->lost && is_ours(o) != 0; tries++) unlink(o->path);
    free(o);
}
