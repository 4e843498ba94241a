/* owner.h: keep two processes from writing in one folder. There are two guards: flock, and a file
 * that names its owner.
 *
 *     sgt_claimant who = {.folder = "out", .notice = &notice, .stop = stop};
 *     rc = sgt_owner_take(&owner, "out/.work", "owner", "lock", &who, &err);
 *     if (rc == 1) ...;                                  // another process has the folder
 *     ... sgt_owner_check(owner, &err), then write ...   // now and then
 *     sgt_owner_leave(&owner);
 *
 * flock decides at once. But some file systems refuse it, and on some (Lustre's localflock, some
 * NFS) a lock keeps out processes of the same machine only, or none. The owner's file still works
 * there: it is created only if it does not exist, and it names the process and the machine that
 * created it. Its owner touches it every 10 seconds. A process that finds such a file checks
 * whether the owner lives, if the owner has the same machine, boot and pid namespace, and replaces
 * a dead owner at once. Otherwise it watches the file for a minute, and replaces an owner that has
 * not touched it. Clocks of two machines are never compared. */
#ifndef SGT_BASE_OWNER_H
#define SGT_BASE_OWNER_H

#include "loader/base/error.h"

/* The process that wants a folder. */
typedef struct sgt_claimant {
    const char *folder; /* its path, as the user knows it */
    /* receives at most one notice about unsupported locks, and one about waiting */
    const sgt_notice *notice;
    const sgt_stop *stop; /* ends a wait with SGT_ESTOPPED */
    int told, watched;    /* not 0: the notice about flock, or about waits, was given */
    double waited;        /* seconds spent watching owners' files */
} sgt_claimant;

typedef struct sgt_owner sgt_owner;

/* Lock the file `locked` of a folder, created if it is missing (".": lock the folder; NULL: lock
 * nothing), and create the owner's file `name` for this process. A thread touches that file until
 * sgt_owner_leave. Return 0; 1 if another process has the lock or is the owner; or a negative
 * SGT_E*. If the file system does not support locks, give a notice: then only the owner's file
 * keeps other processes out. */
int sgt_owner_take(sgt_owner **out, const char *folder, const char *name, const char *locked,
                   sgt_claimant *who, sgt_error *err);

/* Return SGT_EUNSUPPORTED if another process has replaced this owner, which it may do if it did not
 * see the file touched for a minute. The other process then owns the folder. Reads the file at most
 * once a second. Any thread may call this. Returns 0 for NULL. */
int sgt_owner_check(sgt_owner *o, sgt_error *err);

/* Remove the owner's file unless it names another owner, release the lock, free *owner and set it
 * to NULL. NULL is fine. quick_exit removes the file too, but _exit leaves it. */
void sgt_owner_leave(sgt_owner **owner);

/* Check whether the owner named by the file at `path` is alive. Return 1 if it is; 0 if there is no
 * file, or if the file was removed because its owner is dead; or a negative SGT_E*. If `who` is
 * NULL, return 1 instead of watching the file for a minute, and do not remove the file of a dead
 * owner. */
int sgt_owner_lives(const char *path, sgt_claimant *who, sgt_error *err);

#endif
