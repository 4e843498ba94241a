/* out.h: the folder OUT: decide whether a run may write there, find where an earlier run stopped,
 * and complete the folder.
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
 * Several ranks can fill one OUT together. Each rank claims OUT, and makes a part, which is a set
 * in its own folder in OUT/.work (parts.h). When all parts are complete, one rank stops sharing OUT
 * (sgt_out_alone) and completes it.
 *
 * OUT belongs to one run at a time, which holds a lock and an owner's file in OUT/.work (owner.h).
 * Ranks that share OUT hold these only while they claim or complete it; the rest of the time each
 * rank holds an owner's file of its own. Unless `force` is set, an OUT with other options or from
 * other inputs is refused, and so is a folder with files that sgt-tokenize did not make. `force`
 * replaces only files with names that sgt-tokenize uses. OUT is complete if manifest.json
 * exists. */
#ifndef SGT_OUT_H
#define SGT_OUT_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/owner.h"
#include "tokenize/input/corpus.h"
#include "tokenize/out/journal.h"
#include "loader/shards/manifest.h"
#include "tokenize/sgt_tokenize.h"

/* What happens to the set that an earlier run left in OUT. */
typedef enum sgt_out_force {
    SGT_OUT_KEEP,
    SGT_OUT_ANEW, /* replace the set; but if it is unfinished and of the same request, resume it */
    SGT_OUT_DIFFERENT, /* replace the set if its request differs; used for parts of a set */
    SGT_OUT_BESIDE     /* keep the set, and write other files next to it */
} sgt_out_force;

typedef struct sgt_out_request {
    const char *path;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    /* options that change the output, as the JSON text of an object whose keys are the program's
     * options, with _ instead of - */
    const char *options;
    /* options without the layout: those of the parts, and of the set of shards that another layout
     * is converted from */
    const char *set_options;
    /* options for the journal: `options`, and those that decide how OUT is divided into parts;
     * NULL: OUT is not made in parts */
    const char *journal_options;
    uint32_t rank; /* number of this process among the ranks that make the parts */
    int force;     /* a value of sgt_out_force */
    const sgt_notice *notice;
    const sgt_stop *stop;
    sgt_layout layout; /* layout of the files in OUT */
} sgt_out_request;

#define SGT_OUT_PARTS 1000000 /* limit on the number of parts: a part's number has six digits */
/* folder in .work for documents that are being reordered, and for the list of duplicates */
#define SGT_OUT_SORTING "sorting"

typedef struct sgt_out {
    const char *path;    /* path of OUT; points into the request */
    char work[SGT_PATH]; /* OUT/.work */
    /* folder of the complete shards: OUT; or, if OUT gets another layout, OUT/.work/set, from which
     * OUT's files are converted in the end (export.h) */
    char shards[SGT_PATH];
    /* owner: owner of .work/owner, which holds .work/lock; sharer: while OUT is shared, owner of
     * .work/owner-RANK; either may be NULL */
    sgt_owner *owner, *sharer;
    sgt_claimant who;
    size_t width; /* bytes of an id in the shards */
    int made;     /* 1: OUT did not exist before this claim */
    int had_work; /* 1: .work existed before this claim */
    sgt_journal *journal;
} sgt_out;

/* Return whether `folder` holds an entry other than the `count` names. A missing folder holds
 * nothing. */
int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count);
int sgt_out_file_exists(const char *folder, const char *name);
int sgt_out_is_begun(const char *out); /* return whether OUT holds a set, complete or not */

/* Compare the inputs that `folder` records with r->corpus. `folder` is that of a complete set (OUT
 * or a part of it), or, with the journal's checkpoint `now`, the .work of a run that is resumed. */
int sgt_out_compare_inputs(const sgt_out_request *r, const char *folder, const sgt_checkpoint *now,
                           sgt_error *err);

/* Claim OUT for this run. Return 0 if OUT is ours, with *o filled in; 1 if it is already complete,
 * made with the same options from the same inputs; or a negative SGT_E*. Call sgt_out_release only
 * after 0.
 *
 * If r->journal_options is set, OUT is shared by the ranks of the same request. Nothing in OUT
 * itself may be written before sgt_out_alone. To release a shared OUT, call sgt_out_leave. If
 * another rank is setting OUT up or completing it, the call waits for up to ten seconds.
 *
 * If r->corpus is NULL, because the files are not made from text, only `path` and `force` are
 * needed: OUT must be new, empty, or left by such a claim that did not end in sgt_out_publish. With
 * `force`, OUT may hold an earlier set, which stays until sgt_out_clear; with SGT_OUT_BESIDE, an
 * unfinished set stays, too. */
int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err);

/* Remove an earlier set from OUT, beginning with its manifest. */
int sgt_out_clear(const sgt_out *o, sgt_error *err);

/* Stop sharing OUT, and wait until no other rank works on it. Return 0 if only this rank has OUT
 * now, 1 if OUT has become complete, or a negative SGT_E*. */
int sgt_out_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err);
/* Fail if another run has taken OUT over because this one was suspended for too long (owner.h). */
int sgt_out_check(const sgt_out *o, sgt_error *err);
/* Leave a shared OUT. If no rank has begun a part, restore OUT to its state before the claim. */
void sgt_out_leave(sgt_out *o);

/* Move the files of a complete shard from .work to o->shards, unless they are there already. The
 * index is moved first, so that every shard there has its index. */
int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err);

/* Look for a shard of a split in o->shards. Return 1 and describe it in *s if it exists; 0 if not;
 * or a negative SGT_E*. */
int sgt_out_find_shard(const sgt_out *o, int split, uint64_t index, sgt_manifest_shard *s,
                       sgt_error *err);

/* Add the first shards[split] shards of each split to m->shards, and set m->tokens and
 * m->documents. The shards must be in o->shards. */
int sgt_out_list_shards(const sgt_out *o, const uint64_t shards[SGT_SPLITS], sgt_manifest *m,
                        sgt_error *err);

/* Complete OUT: move or write sources.jsonl (from .work), tokenizer.json and, last, manifest.json.
 * Then remove .work. If OUT has another layout, its files must be there already. */
int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err);

/* Release OUT. If keep is 0, OUT is removed unless it holds a complete shard. */
void sgt_out_release(sgt_out *o, int keep);

#endif
