/* owner.h: ensure that only one process writes into a folder. There are two guards: flock, and an
 * owner file, which names the process that owns the folder.
 *
 *     sgt_claimant who = {.folder = "out", .notice = &notice, .stop = stop};
 *     rc = sgt_owner_take(&owner, "out/.work", "owner", "lock", &who, &err);
 *     if (rc == 1) ...;                           // another process owns the folder
 *     ...                                         // write files; from time to time, check:
 *     if (sgt_owner_check(owner, &err) < 0) ...;  // the folder has been taken over
 *     sgt_owner_leave(&owner);
 *
 * flock decides at once, but some file systems refuse it. On others (Lustre's localflock, some
 * NFS), it excludes only processes on the same machine, or none. The owner file works on all file
 * systems. It is created only if it does not exist, and it names the process and the machine that
 * created it. The owner updates the file's modification time every 10 seconds.
 *
 * A process that finds an owner file checks whether the owner is alive. If both run on the same
 * machine, with the same boot id and pid namespace, it looks the owner up and replaces a dead owner
 * at once. Otherwise it watches the file for a minute, and replaces the owner if the modification
 * time has not changed. Clocks of different machines are never compared. */
#ifndef SGT_BASE_OWNER_H
#define SGT_BASE_OWNER_H

#include "loader/base/error.h"

/* A process that wants to own a folder, and how it reports and ends a wait. */
typedef struct sgt_claimant {
    const char *folder; /* its path, as the user knows it */
    /* receives at most one notice that locks are unsupported, and at most one that this process
     * waits */
    const sgt_notice *notice;
    const sgt_stop *stop; /* ends a wait with SGT_ESTOPPED */
    /* told: nonzero if the notice that locks are unsupported was sent; watched: nonzero if the
     * notice that this process waits was sent */
    int told, watched;
    double waited; /* total time in seconds spent waiting to see whether owner files change */
} sgt_claimant;

typedef struct sgt_owner sgt_owner;

/* Make this process the owner of `folder`. Lock the file `locked` in it, create the owner file
 * `name`, and start a thread that updates the owner file until sgt_owner_leave. Return 0, 1 if
 * another process owns the folder, or a negative SGT_E*.
 *
 * `locked` is created if it is missing; "." locks the folder itself; NULL locks nothing. If the
 * file system does not support locks, send a notice and rely only on the owner file. */
int sgt_owner_take(sgt_owner **out, const char *folder, const char *name, const char *locked,
                   sgt_claimant *who, sgt_error *err);

/* Return SGT_EUNSUPPORTED if this owner has lost the folder: the owner file is missing or names
 * another process. (Another process may replace an owner that has not updated its file for a
 * minute.) Reads the file at most once a second. Any thread may call this. Returns 0 if o is
 * NULL. */
int sgt_owner_check(sgt_owner *o, sgt_error *err);

/* Remove the owner file if it still names this owner, release the lock, free *owner and set it to
 * NULL. Does nothing if *owner is NULL. quick_exit also removes the owner file, but _exit does
 * not. */
void sgt_owner_leave(sgt_owner **owner);

/* Check whether the process that the owner file at `path` names is alive. Return:
 * - 1 if it is alive
 * - 0 if there is no owner file, or if the owner was dead and its file was removed
 * - a negative SGT_E* on an error
 *
 * An owner that cannot be looked up, for example because it runs on a different machine, is alive
 * if it updates its file. This call watches the file for up to a minute. If `who` is NULL, it does
 * not wait, counts such an owner as alive, and leaves the files of dead owners. */
int sgt_owner_lives(const char *path, sgt_claimant *who, sgt_error *err);

#endif
