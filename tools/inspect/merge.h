/* merge.h: what merge.c, which makes one set of several, and merge_out.c, which gives it its place,
 * have in common.
 *
 *     if ((rc = merge_claim(&m, &err)) == 0) {
 *         ... write all of the set in m.work: shards and .idx files with .tmp behind their names ...
 *         rc = merge_publish(&m, &err);
 *         merge_release(&m, rc < 0);
 *     } */
#ifndef SGT_TOOLS_INSPECT_MERGE_H
#define SGT_TOOLS_INSPECT_MERGE_H

#include "out/writer.h"
#include "tools/cli/progress.h"
#include "tools/inspect/inspect.h"

typedef struct merge {
    const inspect *o;
    const char *out;
    char *work;     /* OUT/.work */
    int lock;       /* a descriptor, -1: not held */
    int made;       /* OUT was not there before */
    int publishing; /* names in OUT are this merge's */

    inspect_set *sets;
    size_t count;
    sgt_vocab *vocab;
    uint64_t shard_tokens;
    sgt_manifest manifest; /* of OUT */

    const char *split; /* being written */
    sgt_writer *writer;
    uint64_t index; /* of the shard being written */

    sgt_progress *bar;
    uint64_t bytes, all_tokens; /* read; in all sets */
} merge;

/* OUT must be new or empty, or what a merge that was killed left there; anything else only with
 * --force, and even then what lies there stays as it is until merge_publish. */
int merge_claim(merge *m, sgt_error *err);

/* Gives everything its name, manifest.json last; an earlier set in OUT is gone before that. */
int merge_publish(merge *m, sgt_error *err);

/* Lets go of OUT. failed: nothing of this merge is left in it. */
void merge_release(merge *m, int failed);

#endif
