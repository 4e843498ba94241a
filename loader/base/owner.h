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
 * NFS) a lock keeps out processes of the same machine only, or none. The owner's file holds then:
 * it is made only if it does not exist, and says which process of which machine made it. Its owner
 * touches it every 10 seconds. A process that finds such a file looks for the owner if that is of
 * the same machine, boot and pid namespace, and replaces a dead one at once. Otherwise it watches
 * the file for a minute, and replaces an owner that did not touch it. Clocks of two machines are
 * never compared. */
#ifndef SGT_BASE_OWNER_H
#define SGT_BASE_OWNER_H

#include "loader/base/error.h"

/* The process that wants a folder. */
typedef struct sgt_claimant {
    const char *folder;       /* its path, as the user knows it */
    const sgt_notice *notice; /* is told once about a missing flock, and once about waits */
    const sgt_stop *stop;     /* ends a wait with SGT_ESTOPPED */
    int told, watched;        /* not 0: the notice about flock, or about waits, was given */
    double waited;            /* seconds for which owners' files were watched */
} sgt_claimant;

typedef struct sgt_owner sgt_owner;

/* Lock the file `locked` of a folder, made if it is missing (".": the folder; NULL: nothing), and
 * become the owner that its file `name` names. A thread touches that until sgt_owner_leave. Return
 * 0; 1 if another process has the lock or is the owner; or a negative SGT_E*. If the file system
 * refuses locks, give a notice: only the owner's file is a guard then. */
int sgt_owner_take(sgt_owner **out, const char *folder, const char *name, const char *locked,
                   sgt_claimant *who, sgt_error *err);

/* Return SGT_EUNSUPPORTED if another process has replaced this owner, as it may if it did not see
 * the file touched for a minute; it then owns the folder. Look at the file at most once a second.
 * Any thread may call this. NULL: return 0. */
int sgt_owner_check(sgt_owner *o, sgt_error *err);

/* Remove the file, unless another owner has it, release the lock, free *owner and set it to NULL.
 * NULL is fine. quick_exit removes the file too, but _exit leaves it. */
void sgt_owner_leave(sgt_owner **owner);

/* Look whether the owner that the file at `path` names is alive. Return 1 if it is; 0 if there is
 * no file, or if it was removed because its owner is dead; or a negative SGT_E*. who NULL: do not
 * watch the file for a minute, but return 1; and do not remove it. */
int sgt_owner_lives(const char *path, sgt_claimant *who, sgt_error *err);

#endif
