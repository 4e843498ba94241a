/* merge.h: declarations shared by merge.c, which joins several sets, export.c, which rewrites one
 * for another trainer, and merge_out.c, which manages the folder OUT of the result.
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
    int made;       /* 1: this merge created the folder OUT */
    int publishing; /* 1: OUT has files of this merge under their final names */

    inspect_set *sets;
    size_t count;
    sgt_vocab *vocab;
    uint64_t shard_tokens;
    sgt_manifest manifest; /* manifest of OUT */

    const char *split; /* split being written */
    sgt_writer *writer;
    uint64_t index; /* index of the shard being written */

    sgt_progress *bar;
    uint64_t bytes, all_tokens; /* bytes: read so far; all_tokens: tokens in all sets */
} merge;

/* Fail if the set at `path` is OUT itself. */
int merge_check_not_out(const merge *m, const char *path, sgt_error *err);

/* Lock OUT, which must be new, empty or left by a killed merge. With --force, it may have other
 * contents; those of an earlier set stay until merge_publish. */
int merge_claim(merge *m, sgt_error *err);

/* Remove an earlier set from OUT. Then rename all files that m->manifest lists, and the set's other
 * files, to their final names, manifest.json last. */
int merge_publish(merge *m, sgt_error *err);

/* Unlock OUT. If `failed`, first remove everything of this merge from it. */
void merge_release(merge *m, int failed);

#endif
