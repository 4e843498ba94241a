/* owner.h: ensure that only one process at a time writes into a folder. Two mechanisms do this: a
 * lock (flock), and an owner file, which names the process that owns the folder.
 *
 *     sgt_claimant who = {.folder = "out", .notice = &notice, .stop = stop};
 *     rc = sgt_owner_take(&owner, "out/.work", "owner", "lock", &who, &err);
 *     if (rc == 1) ...;                           // another process owns the folder
 *     ...                                         // write files; from time to time, check:
 *     if (sgt_owner_check(owner, &err) < 0) ...;  // the folder has been taken over
 *     sgt_owner_leave(&owner);
 *
 * flock gives an answer at once, but some file systems do not support it. On others (such as Lustre
 * with localflock, and some NFS mounts), it excludes only processes on the same machine, or none.
 * The owner file works on all file systems. It is created only if it does not exist, and it names
 * the process that created it and the machine. The owner updates the modification time of the file
 * every 10 seconds.
 *
 * A process that finds an owner file checks whether the owner is alive. If both run on the same
 * machine, with the same boot id and pid namespace, the process looks up the owner in /proc and
 * replaces a dead owner at once. Otherwise it watches the file for a minute, and replaces the owner
 * if the modification time has not changed. Clocks of different machines are never compared. */
#ifndef SGT_BASE_OWNER_H
#define SGT_BASE_OWNER_H

#include "loader/base/error.h"

/* A process that wants to own a folder: how it reports that it waits, and how its wait is ended. */
typedef struct sgt_claimant {
    const char *folder; /* path of the folder as the user knows it, for messages */
    /* receives at most one notice that the file system does not support locks, and at most one that
     * this process is waiting */
    const sgt_notice *notice;
    const sgt_stop *stop; /* a request through this ends a wait, with the error SGT_ESTOPPED */
    /* told: nonzero once the notice about locks has been sent; watched: nonzero once the notice
     * about waiting has been sent */
    int told, watched;
    /* total time in seconds that this process has waited to see whether owner files change */
    double waited;
} sgt_claimant;

typedef struct sgt_owner sgt_owner;

/* Make this process the owner of `folder`: lock the file `locked` in it, create the owner file
 * `name`, and start a thread that updates the owner file until sgt_owner_leave. Return 0 on
 * success, 1 if another process owns the folder, or a negative SGT_E*.
 *
 * The file `locked` is created if it is missing. "." locks the folder itself; NULL locks nothing.
 * If the file system does not support locks, send a notice and rely only on the owner file. */
int sgt_owner_take(sgt_owner **out, const char *folder, const char *name, const char *locked,
                   sgt_claimant *who, sgt_error *err);

/* Return SGT_EUNSUPPORTED if this owner has lost the folder, that is, if the owner file is missing
 * or names a different process. (Another process may replace an owner that has not updated its file
 * for a minute.) Otherwise return 0, also if o is NULL. The file is read at most once a second. Any
 * thread may call this function. */
int sgt_owner_check(sgt_owner *o, sgt_error *err);

/* Remove the owner file if it still names this owner, release the lock, free *owner, and set *owner
 * to NULL. Does nothing if *owner is NULL. A process that ends without this call removes the owner
 * file if it calls quick_exit, but not if it calls _exit. */
void sgt_owner_leave(sgt_owner **owner);

/* Find out whether the process that the owner file at `path` names is alive. Return:
 * - 1 if it is alive
 * - 0 if there is no owner file, or if the owner was dead and its file was removed
 * - a negative SGT_E* on an error
 *
 * An owner that cannot be looked up, for example because it runs on a different machine, counts as
 * alive if it updates its file. To see this, the call watches the file for up to a minute. If `who`
 * is NULL, the call does not wait, counts such an owner as alive, and does not remove the file of a
 * dead owner. */
int sgt_owner_lives(const char *path, sgt_claimant *who, sgt_error *err);

#endif
