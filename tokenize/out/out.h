/* out.h: manages the output folder OUT: decides if a run may write there, finds where an earlier
 * run stopped, and completes the folder.
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
 * OUT is complete if manifest.json exists. It belongs to one run at a time, which holds a lock and
 * an owner file in OUT/.work (owner.h). The claim fails if OUT was made with other options or from
 * other inputs, or if it holds files that sgt-tokenize did not make. `force` replaces OUT
 * nevertheless, but only files with names that sgt-tokenize uses.
 *
 * Several ranks can fill one OUT together. Each rank claims OUT, and writes its part, which is a
 * set of shards in a separate folder in OUT/.work (parts.h). When all parts are complete, one rank
 * stops sharing OUT (sgt_out_alone) and completes it. Ranks that share OUT hold the lock only while
 * they claim or complete it; the rest of the time, each rank holds only a separate owner file. */
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
    /* replace the set, unless it is an unfinished set of the same request: resume that one */
    SGT_OUT_ANEW,
    /* replace the set only if it was made for a different request; used for a rank's part */
    SGT_OUT_DIFFERENT,
    SGT_OUT_BESIDE /* keep the set, and write different files into the same folder */
} sgt_out_force;

typedef struct sgt_out_request {
    const char *path;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    /* options that change the output, as the text of a JSON object; its keys are the command-line
     * options with _ for - */
    const char *options;
    /* `options` without the layout. sgt's own shards are made with these options. They are made
     * first if the set is divided into parts or converted to another layout. */
    const char *set_options;
    /* options that the journal stores if the ranks make parts: `options`, plus those that decide
     * how the inputs are divided among the ranks; NULL if there are no parts */
    const char *journal_options;
    uint32_t rank; /* index of this process among the ranks, each of which makes a part */
    int force;     /* a value of sgt_out_force */
    const sgt_notice *notice;
    const sgt_stop *stop;
    sgt_layout layout; /* layout of the files in OUT */
} sgt_out_request;

#define SGT_OUT_PARTS 1000000 /* maximum number of parts: a part's folder name has six digits */
/* subfolder of .work for files that are needed to join the parts: the buckets of shuffled documents
 * (order.h), and the list of duplicates (dedup.h) */
#define SGT_OUT_SORTING "sorting"

typedef struct sgt_out {
    const char *path;    /* path of the output folder OUT; points into the request */
    char work[SGT_PATH]; /* OUT/.work */
    /* folder that complete shards are moved to: OUT, or OUT/.work/set if they will be converted to
     * another layout (export.h) */
    char shards[SGT_PATH];
    /* owner: ownership of the whole OUT (the file .work/owner and the lock .work/lock); sharer:
     * ownership of this rank's part while ranks share OUT (the file .work/owner-RANK); NULL: not
     * owned */
    sgt_owner *owner, *sharer;
    sgt_claimant who;
    size_t width; /* bytes of an id in the shards */
    int made;     /* 1 if OUT did not exist before this claim */
    int had_work; /* 1: .work existed before this claim */
    sgt_journal *journal;
} sgt_out;

/* Return 1 if `folder` has an entry that is not among the `count` entries of `names`. A folder that
 * does not exist has no entries. */
int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count);
int sgt_out_is_begun(const char *out); /* returns 1 if OUT holds a set, complete or not */

/* Return an error if the inputs recorded in `folder` differ from r->corpus. If `now` is NULL,
 * `folder` holds a complete set. Otherwise `folder` is the .work of a run to resume, and `now` is
 * the checkpoint in its journal. */
int sgt_out_compare_inputs(const sgt_out_request *r, const char *folder, const sgt_checkpoint *now,
                           sgt_error *err);

/* Claim the output folder OUT for this run. The result is
 *     0    this run may use OUT, and *o is filled in; call sgt_out_release later
 *     1    OUT already holds the complete set, made with the same options from the same inputs
 *     < 0  an error (SGT_E*)
 *
 * If r->journal_options is set, the ranks of the same request share OUT. No rank may write to OUT
 * itself before it calls sgt_out_alone. To release a shared OUT, call sgt_out_leave. If another
 * rank is setting OUT up or completing it, the call waits for up to ten seconds.
 *
 * If r->corpus is NULL, the files are not made from text, and only `path` and `force` are needed.
 * OUT must then be new, empty, or left by a claim of this kind that did not reach sgt_out_publish.
 * With `force`, OUT may also hold an earlier set, which stays until sgt_out_clear is called. With
 * SGT_OUT_BESIDE, even an unfinished set stays. */
int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err);

/* Remove the files of an earlier set from OUT, its manifest first. */
int sgt_out_clear(const sgt_out *o, sgt_error *err);

/* Stop sharing OUT, and wait until no other rank uses it. Return 0 if OUT now belongs only to this
 * rank, 1 if another rank has completed OUT, or a negative SGT_E*. */
int sgt_out_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err);
/* Return an error if another run has taken OUT over because this run was suspended for too long
 * (owner.h). */
int sgt_out_check(const sgt_out *o, sgt_error *err);
/* Stop using a shared OUT. If no rank has begun a part, restore OUT to its state before the
 * claim. */
void sgt_out_leave(sgt_out *o);

/* Move the files of a complete shard from .work to o->shards, unless they are already there. The
 * index is moved before the tokens, so that every shard in o->shards has an index. */
int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err);

/* Look for shard `index` of a split in o->shards. If it exists, describe it in *s and return 1.
 * Return 0 if it does not exist, or a negative SGT_E*. */
int sgt_out_find_shard(const sgt_out *o, int split, uint64_t index, sgt_manifest_shard *s,
                       sgt_error *err);

/* Append the first shards[split] shards of each split to m->shards, and add their counts to
 * m->tokens and m->documents. Return an error if one of them is not in o->shards. */
int sgt_out_list_shards(const sgt_out *o, const uint64_t shards[SGT_SPLITS], sgt_manifest *m,
                        sgt_error *err);

/* Complete OUT: write tokenizer.json, move sources.jsonl from .work to OUT, write manifest.json,
 * and then remove .work. If another layout is requested, its files must already be in OUT. */
int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err);

/* Release OUT. If `keep` is 0, remove .work, and also remove OUT if this run created it and it is
 * empty. */
void sgt_out_release(sgt_out *o, int keep);

#endif
