/* out.h: manages the output folder OUT: decides if a run may write to OUT, finds the position at
 * which an earlier run stopped, and completes OUT.
 *
 *     sgt_out o;
 *     int rc = sgt_out_claim(&o, &(sgt_out_request){.path = "out", ...}, &err);
 *     if (rc == 1) ...;              // already complete: nothing to do or to release
 *     if (rc == 0) {
 *         ... work in o.work, from o.journal->now on ...
 *         sgt_out_publish(&o, &manifest, vocab, &err);
 *         sgt_out_release(&o, keep);
 *     }
 *
 * OUT is complete if it contains manifest.json. OUT belongs to one run at a time; this run holds a
 * lock and an owner file in OUT/.work (owner.h). A run cannot claim OUT if OUT was made with
 * different options or from different inputs, or if it holds files that sgt-tokenize did not make.
 * With `force`, the run can claim it even so, but replaces only files with names that sgt-tokenize
 * uses.
 *
 * Several ranks (processes) can share OUT. Each rank claims OUT and writes its part, which is a set
 * of shards in a folder of its own in OUT/.work (parts.h). When all parts are complete, one rank
 * takes OUT over (sgt_out_alone) and completes it. Ranks that share OUT hold the lock only while
 * they claim or complete OUT. At other times, each rank holds only its own owner file. */
#ifndef SGT_OUT_H
#define SGT_OUT_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/owner.h"
#include "tokenize/input/corpus.h"
#include "tokenize/out/journal.h"
#include "loader/shards/manifest.h"
#include "tokenize/sgt_tokenize.h"

/* How to treat a set that an earlier run left in the output folder. */
typedef enum sgt_out_force {
    SGT_OUT_KEEP,
    /* replace the set, unless it is incomplete and was made for the same request; in that case,
     * resume it */
    SGT_OUT_ANEW,
    /* replace the set if it was made for a different request, and otherwise keep it; used for a
     * rank's part */
    SGT_OUT_DIFFERENT,
    SGT_OUT_BESIDE /* keep the set, and add other files to its folder */
} sgt_out_force;

typedef struct sgt_out_request {
    const char *path;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    /* options that influence the output, as the text of a JSON object; each key is the name of a
     * command-line option, with "_" instead of "-" */
    const char *options;
    /* `options` without the layout. These are the options of a set of shards in sgt's own layout,
     * which is made first if ranks make parts (sets of shards in .work) or if the set is converted
     * to another layout. */
    const char *set_options;
    /* What the journal stores if each rank makes a part (a set of shards in .work): the text of
     * `options`, followed by the options that decide how the inputs are divided among the ranks.
     * NULL if there are no parts. */
    const char *journal_options;
    /* index of this process among the ranks, each of which writes one part (a set of shards in
     * .work) */
    uint32_t rank;
    int force; /* a value of sgt_out_force */
    const sgt_notice *notice;
    const sgt_stop *stop;
    sgt_layout layout; /* layout of the files in OUT */
} sgt_out_request;

/* maximum number of parts; it is limited because the name of a part's folder has six digits */
#define SGT_OUT_PARTS 1000000
/* subfolder of .work for the files from which the ranks' parts are joined: documents that are
 * copied to be shuffled (order.h), and the list of duplicates (dedup.h) */
#define SGT_OUT_SORTING "sorting"

typedef struct sgt_out {
    const char *path;    /* path of the output folder OUT; points to the string in the request */
    char work[SGT_PATH]; /* OUT/.work */
    /* folder for complete shards: OUT, or OUT/.work/set if the shards will be converted to another
     * layout (export.h) */
    char shards[SGT_PATH];
    /* owner: ownership of all of OUT, represented by the file .work/owner and the lock .work/lock.
     * sharer: ownership of this rank's part while several ranks share OUT, represented by the file
     * .work/owner-RANK. Each is NULL if this process does not hold it. */
    sgt_owner *owner, *sharer;
    sgt_claimant who;
    size_t width; /* bytes of an id in the shards */
    int made;     /* 1 if OUT did not exist before this run claimed it, else 0 */
    int had_work; /* 1: .work existed before this claim */
    sgt_journal *journal;
} sgt_out;

/* Return 1 if `folder` has an entry with a name other than names[0] ... names[count - 1], else 0. A
 * folder that does not exist counts as empty. */
int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count);
int sgt_out_is_begun(const char *out); /* returns 1 if OUT holds a set, complete or not, else 0 */

/* Return an error if the inputs recorded in `folder` differ from those in r->corpus. For a complete
 * set, `folder` is its folder and `now` is NULL. For a run that is to be resumed, `folder` is its
 * folder .work and `now` is the checkpoint in its journal. */
int sgt_out_compare_inputs(const sgt_out_request *r, const char *folder, const sgt_checkpoint *now,
                           sgt_error *err);

/* Claim the output folder OUT for this run. The result is
 *     0    this run can use OUT, and *o is filled in; the caller must call sgt_out_release later
 *     1    OUT already holds a complete set, made with the same options from the same inputs
 *     < 0  an error (SGT_E*)
 *
 * If r->journal_options is set, the ranks of the same request share OUT. No rank may write to OUT
 * itself before it calls sgt_out_alone. To release a shared OUT, call sgt_out_leave. While another
 * rank is setting OUT up or completing it, the call waits, at most for ten seconds.
 *
 * If the new files are not made from text, r->corpus is NULL, and only `path` and `force` are
 * needed. In that case, OUT must be new, empty, or left by an earlier request without a corpus
 * that did not complete OUT. With `force`, OUT may also hold an earlier set, which is kept until
 * sgt_out_clear is called. With SGT_OUT_BESIDE, even an incomplete set is kept. */
int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err);

/* Remove the files of an earlier set from OUT. The manifest is removed first, because OUT counts as
 * complete while it exists. */
int sgt_out_clear(const sgt_out *o, sgt_error *err);

/* Stop sharing OUT with other ranks, wait until they have stopped using it, and lock it. Return 0
 * if OUT now belongs to this rank alone, 1 if another rank has completed OUT, or a negative
 * SGT_E*. */
int sgt_out_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err);
/* Return an error if another run has taken over OUT, which can happen if this run was suspended for
 * too long (owner.h). */
int sgt_out_check(const sgt_out *o, sgt_error *err);
/* Stop using an OUT that ranks share. If no rank has begun its part, restore the state that OUT had
 * before it was claimed. */
void sgt_out_leave(sgt_out *o);

/* Move the files of a complete shard from .work to o->shards, unless an earlier call has moved
 * them. The document index is moved first, so that a shard whose token file is in o->shards also
 * has its index there. */
int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err);

/* Look for shard `index` of a split in the folder o->shards. If its files exist, describe the shard
 * in *s and return 1. If a file is missing, return 0. On an error, return a negative SGT_E*. */
int sgt_out_find_shard(const sgt_out *o, int split, uint64_t index, sgt_manifest_shard *s,
                       sgt_error *err);

/* For each split, append its first shards[split] shards in the folder o->shards to m->shards, and
 * add the numbers of their tokens and documents to m->tokens and m->documents. Return an error if
 * one of these shards does not exist. */
int sgt_out_list_shards(const sgt_out *o, const uint64_t shards[SGT_SPLITS], sgt_manifest *m,
                        sgt_error *err);

/* Complete OUT: write tokenizer.json, move sources.jsonl from .work to OUT, write manifest.json,
 * and remove .work. If the layout is not sgt's, the converted files must already be in OUT. */
int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err);

/* Release OUT, so that other runs can claim it. If `keep` is 0, remove .work; also remove OUT if it
 * is empty and did not exist before it was claimed. */
void sgt_out_release(sgt_out *o, int keep);

#endif
