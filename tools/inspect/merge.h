/* merge.h: shared by merge.c, which joins several sets, and merge_out.c, which manages OUT.
 *
 *     if ((rc = merge_claim(&m, &err)) == 0) {
 *         ... write the whole set in m.work: shards and .idx files, with .tmp appended to names ...
 *         rc = merge_publish(&m, &err);
 *         merge_release(&m, rc < 0);
 *     } */
#ifndef SGT_TOOLS_INSPECT_MERGE_H
#define SGT_TOOLS_INSPECT_MERGE_H

#include "tokenize/out/writer.h"
#include "tools/cli/progress.h"
#include "tools/inspect/inspect.h"

typedef struct merge {
    const inspect *o;
    const char *out;
    char *work;     /* OUT/.work */
    int lock;       /* descriptor of the lock; -1: not held */
    int made;       /* this merge created OUT */
    int publishing; /* names in OUT belong to this merge */

    inspect_set *sets;
    size_t count;
    sgt_vocab *vocab;
    uint64_t shard_tokens;
    sgt_manifest manifest; /* of OUT */

    const char *split; /* split being written */
    sgt_writer *writer;
    uint64_t index; /* index of the shard being written */

    sgt_progress *bar;
    uint64_t bytes, all_tokens; /* bytes read so far; tokens in all sets */
} merge;

/* Lock OUT, which must be new, empty or left by a killed merge. --force allows others, but leaves
 * what is there untouched until merge_publish. */
int merge_claim(merge *m, sgt_error *err);

/* Remove an earlier set from OUT, then rename everything to its final name, manifest.json last. */
int merge_publish(merge *m, sgt_error *err);

/* Unlock OUT; if `failed`, first remove everything of this merge from it. */
void merge_release(merge *m, int failed);

#endif
