/* owner.c: see owner.h. A process locks a folder and keeps a file in it, the owner file, that names
 * this process as the owner of the folder. */
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

/* milliseconds between two updates of the modification time of an owner file */
#define TOUCH_MS 10000
/* milliseconds between two checks of an owner file, by a process that waits to see whether the
 * owner is alive */
#define TURN_MS 100
/* number of checks, TURN_MS apart, after which an owner counts as dead if its owner file has not
 * changed (one minute in all) */
#define TURNS 600
#define SILENT_TURNS 10
#define UNKNOWN UINT64_MAX
#define TEXT 192
#define MARK 16 /* digits of a random number */

/* The content of an owner file, and its modification time. */
typedef struct record {
    char text[TEXT]; /* "MARK MACHINE PROCESS START" (see describe), padded with NULs */
    struct timespec touched;
} record;

struct sgt_owner {
    char path[SGT_PATH], text[TEXT];
    int lock; /* file descriptor that holds the flock; -1: no lock */
    pthread_t thread;
    pthread_mutex_t mutex; /* protects the fields below */
    pthread_cond_t ends;
    int ended; /* 1: the thread must end */
    /* 1: the owner file is missing or names a different owner; 0: it named this owner when it was
     * last read */
    int lost;
    double looked;   /* time (sgt_now) at which the owner file was last read */
    sgt_owner *next; /* next element in this process's list of owners */
};
static sgt_owner *owners;
static pthread_mutex_t owners_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- finding out who the owner is ---- */

/* Read the owner file at `path` into *r. Return 1 if it exists, 0 if it does not (*r is then all
 * zeros), or a negative SGT_E* on an error. */
static int read_record(record *r, const char *path, sgt_error *err)
{
    struct stat st = {0};
    memset(r, 0, sizeof *r); /* records are compared as bytes */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    int rc = 1;
    if (fd < 0 && errno != ELOOP)
        return errno == ENOENT || errno == ENOTDIR ? 0 : sgt_fail_errno(err, "%s", path);
    if (fd < 0 || (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode)))
        rc = sgt_fail(err, SGT_EIO,
                      "%s: must be a regular file that names the process that writes here, but is "
                      "a link, folder or device (remove it)",
                      path);
    else if (pread(fd, r->text, sizeof r->text - 1, 0) < 0) rc = sgt_fail_errno(err, "%s", path);
    r->touched = st.st_mtim;
    if (fd >= 0) close(fd);
    return rc;
}

/* Return the time at which process `pid` started, in clock ticks since boot. Return 0 if the
 * process has ended, even if it is still a zombie. Return UNKNOWN if this process is not allowed to
 * find out. */
static uint64_t start_of(int pid)
{
    char path[32], line[1024];
    const char *at = NULL;
    if (kill(pid, 0) < 0 && errno == ESRCH) return 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fgets(line, sizeof line, f)) at = strrchr(line, ')'); /* end of the process's name */
    if (f) fclose(f);
    if (at && strchr("ZX", at[2])) return 0;
    for (int i = 0; i < 20 && at; i++) at = strchr(at + 1, ' ');
    return at ? strtoull(at, NULL, 10) : UNKNOWN;
}

/* Write into `text` the content of this process's owner file: a random number (the mark), the
 * machine, the process id and the start time of the process. Return the length of the mark and the
 * machine together, or a negative SGT_E*. The machine is described by its name, its boot id and the
 * pid namespace of the process. Processes with the same description of the machine can look each
 * other up in /proc. If the boot id or the namespace is unknown, a random number makes the
 * description unique, so that no other process tries to look this one up. */
static int describe(char text[TEXT], sgt_error *err)
{
    char boot[37];
    uint64_t mark;
    struct stat space;
    struct utsname u;
    if (getrandom(&mark, sizeof mark, 0) != sizeof mark || uname(&u) < 0)
        return sgt_fail_errno(err, "cannot identify this process");
    snprintf(boot, sizeof boot, "%" PRIx64, mark);
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (stat("/proc/self/ns/pid", &space) < 0 || !f || !fgets(boot, sizeof boot, f))
        space.st_ino = 0;
    if (f) fclose(f);
    const int n = snprintf(text, TEXT, "%0*" PRIx64 " %s %s %ju ", MARK, mark, u.nodename, boot,
                           (uintmax_t)space.st_ino);
    snprintf(text + n, TEXT - (size_t)n, "%d %" PRIu64 "\n", getpid(), start_of(getpid()));
    return n;
}

/* Remove the owner file at `path` if its content is still `dead`, which names a dead owner. At any
 * moment, another process may remove that file and create its own owner file there, which must not
 * be removed. Therefore, rename the file to a temporary name first, read it, and rename it back if
 * its content is not `dead`. `mine` is the content of this process's owner file. It begins with a
 * random number that makes the temporary name unique. */
static int remove_dead(const char *path, const char *dead, const char *mine, sgt_error *err)
{
    char aside[SGT_PATH + MARK + 8];
    record now;
    snprintf(aside, sizeof aside, "%s.%.*s.tmp", path, MARK, mine);
    if (read_record(&now, path, NULL) == 0 || strcmp(now.text, dead)) return SGT_OK;
    if (rename(path, aside) < 0)
        return errno == ENOENT ? SGT_OK : sgt_fail_errno(err, "%s: cannot remove", path);
    if (read_record(&now, aside, NULL) == 1 && strcmp(now.text, dead)) (void)rename(aside, path);
    else unlink(aside);
    return SGT_OK;
}

int sgt_owner_lives(const char *path, sgt_claimant *who, sgt_error *err)
{
    char mine[TEXT];
    record first, now;
    char *end;
    int rc, n = describe(mine, err);
    if (n < 0 || (rc = read_record(&first, path, err)) <= 0) return n < 0 ? n : rc;
    const int pid = (int)strtol(first.text + n, &end, 10);
    const uint64_t start = strtoull(end, NULL, 10);
    const int seen = strncmp(first.text + MARK, mine + MARK, (size_t)n - MARK) == 0 && start > 0 &&
                     start_of(pid) != UNKNOWN;
    if (seen ? start_of(pid) == start : !who)
        /* The owner is alive, or counts as alive because it cannot be looked up and the caller does
         * not wait. A process with the owner's pid but a different start time would not be the
         * owner: the kernel would have reused the pid. */
        return 1;
    /* An empty file was created by a process that was killed before it wrote the text. Wait only
     * SILENT_TURNS checks for such a file to change. */
    for (int turn = 0; !seen && turn < (*first.text ? TURNS : SILENT_TURNS); turn++) {
        if (turn == SILENT_TURNS && !who->watched++)
            sgt_say(who->notice,
                    "%s: waiting for up to %d s to see whether the process that this file names is "
                    "still running (it cannot be looked up from here)",
                    path, TURNS * TURN_MS / 1000);
        const double before = sgt_now();
        poll(NULL, 0, TURN_MS);
        who->waited += sgt_now() - before;
        if (sgt_stopped(who->stop)) return sgt_fail(err, SGT_ESTOPPED, "interrupted");
        /* If the file cannot be read (rc < 0), assume that it has not changed, and check again
         * later. */
        rc = read_record(&now, path, NULL);
        if (rc >= 0 && memcmp(&now, &first, sizeof now)) return rc;
    }
    return who ? remove_dead(path, first.text, mine, err) : SGT_OK;
}

/* ---- being the owner ---- */

/* Lock the file `name` in `folder`, and create it if it is missing; "." locks the folder itself.
 * Return 0 if it is locked or if the file system does not support locks, 1 if another process holds
 * the lock, or a negative SGT_E*. */
static int lock(sgt_owner *o, const char *folder, const char *name, sgt_claimant *who,
                sgt_error *err)
{
    char path[SGT_PATH];
    const int flags = strcmp(name, ".") ? O_RDWR | O_CREAT : O_RDONLY | O_DIRECTORY;
    o->lock = sgt_file_open(sgt_path(path, folder, "%s", name), flags, err);
    if (o->lock < 0 || flock(o->lock, LOCK_EX | LOCK_NB) == 0) return o->lock < 0 ? o->lock : 0;
    if (errno == EWOULDBLOCK || errno == EINTR) return 1;
    if (!who->told++)
        sgt_say(who->notice,
                "%s: cannot be locked on this file system (%s): only a file that names the writer, "
                "not a lock, keeps a second writer out",
                who->folder, strerror(errno));
    return SGT_OK;
}

/* Create the owner file. Return 0 on success, 1 if the file exists already, or a negative
 * SGT_E*. */
static int create(const sgt_owner *o, sgt_error *err)
{
    const int fd = open(o->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (fd < 0) return errno == EEXIST ? 1 : sgt_fail_errno(err, "%s: cannot create", o->path);
    const int rc = sgt_write_all(fd, o->text, strlen(o->text), o->path, err);
    close(fd);
    if (rc < 0) unlink(o->path);
    return rc;
}

/* Read the owner file, and return 0 if it still names this owner, otherwise 1. The caller must hold
 * o->mutex, because this function changes o->lost and o->looked. */
static int check_owned(sgt_owner *o)
{
    record now;
    o->lost |= read_record(&now, o->path, NULL) >= 0 && strcmp(now.text, o->text) != 0;
    o->looked = sgt_now();
    return o->lost;
}

static void *touch(void *ctx)
{
    sgt_owner *o = ctx;
    pthread_mutex_lock(&o->mutex);
    while (!o->ended) {
        sgt_wait(&o->ends, &o->mutex, TOUCH_MS);
        if (!check_owned(o)) (void)utimensat(AT_FDCWD, o->path, NULL, 0);
    }
    pthread_mutex_unlock(&o->mutex);
    return NULL;
}

/* id of the process that created the owners in the list. A child process after fork inherits the
 * list, but has a different id. It can therefore tell that the owner files belong to its parent,
 * and does not remove them */
static pid_t keeper;

/* Remove all owner files of this process. Registered with at_quick_exit. */
static void remove_all(void)
{
    if (getpid() != keeper || pthread_mutex_trylock(&owners_lock)) return;
    /* Use trylock: the thread of an owner holds the owner's mutex while it reads the owner file. On
     * some file systems that read may hang, and waiting for the mutex would keep this process from
     * exiting */
    for (sgt_owner *o = owners; o; o = o->next)
        if (!pthread_mutex_trylock(&o->mutex) && !check_owned(o)) unlink(o->path);
}

/* If `kept` is 1, add o to the list of this process's owners; if `kept` is 0, remove o from the
 * list. */
static void keep(sgt_owner *o, int kept)
{
    static int asked;
    sgt_owner **at = &owners;
    pthread_mutex_lock(&owners_lock);
    if (!asked) asked = at_quick_exit(remove_all) == 0;
    keeper = getpid();
    if (kept) o->next = owners, owners = o;
    while (!kept && *at != o) at = &(*at)->next;
    if (!kept) *at = o->next;
    pthread_mutex_unlock(&owners_lock);
}

int sgt_owner_take(sgt_owner **out, const char *folder, const char *name, const char *locked,
                   sgt_claimant *who, sgt_error *err)
{
    sgt_owner *o = calloc(1, sizeof *o);
    if (!o) return sgt_fail_memory(err, folder);
    sgt_path(o->path, folder, "%s", name);
    o->lock = -1;
    pthread_mutex_init(&o->mutex, NULL);
    sgt_wait_init(&o->ends);
    int rc = locked ? lock(o, folder, locked, who, err) : SGT_OK;
    if (!rc && describe(o->text, err) < 0) rc = SGT_EIO;
    while (!rc && (rc = create(o, err)) == 1) rc = sgt_owner_lives(o->path, who, err);
    if (!rc && (errno = sgt_thread_start(&o->thread, touch, o))) {
        rc = sgt_fail_errno(err, "%s: cannot start a thread", o->path);
        unlink(o->path);
    }
    if (rc && o->lock >= 0) close(o->lock);
    if (rc) free(o);
    else keep(*out = o, 1);
    return rc;
}

int sgt_owner_check(sgt_owner *o, sgt_error *err)
{
    if (!o) return SGT_OK;
    pthread_mutex_lock(&o->mutex);
    if (sgt_now() - o->looked >= 1) check_owned(o);
    const int lost = o->lost;
    pthread_mutex_unlock(&o->mutex);
    if (!lost) return SGT_OK;
    return sgt_fail(err, SGT_EUNSUPPORTED,
                    "%s: this file was removed, or replaced by another program that writes here, "
                    "so this program stops",
                    o->path);
}

void sgt_owner_leave(sgt_owner **owner)
{
    sgt_owner *o = *owner;
    *owner = NULL;
    if (!o) return;
    keep(o, 0);
    pthread_mutex_lock(&o->mutex);
    o->ended = 1;
    pthread_cond_signal(&o->ends);
    pthread_mutex_unlock(&o->mutex);
    pthread_join(o->thread, NULL);
    /* a file that stays behind makes other processes believe that the folder is still in use, so
     * try up to three times to remove it */
    for (int tries = 0; tries < 3 && !check_owned(o); tries++) unlink(o->path);
    /* release the lock after the owner file is removed, so that the process that locks the folder
     * next finds no owner file */
    if (o->lock >= 0) close(o->lock);
    free(o);
}
