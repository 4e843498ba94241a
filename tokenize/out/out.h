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
 * Several ranks can fill one OUT together. Each rank claims it, and makes a part,
 * which is a set in its own folder under OUT/.work (parts.h). When all parts are complete, one rank
 * takes OUT alone (sgt_out_alone) and completes it.
 *
 * OUT belongs to one run at a time, by a lock and an owner's file in OUT/.work (owner.h). Ranks
 * that share OUT hold these only while they claim or complete it; otherwise each has an owner's
 * file of its own. Unless `force` is set, an OUT with other options or from other inputs is
 * refused. So is a folder with files that sgt-tokenize did not make. `force` replaces only files
 * with names that sgt-tokenize uses. OUT is complete if manifest.json exists. */
#ifndef SGT_OUT_H
#define SGT_OUT_H

#include <stdint.h>

#include "loader/base/error.h"
#include "loader/base/owner.h"
#include "tokenize/input/corpus.h"
#include "tokenize/out/journal.h"
#include "loader/shards/manifest.h"
#include "tokenize/sgt_tokenize.h"

/* What an earlier run has left in OUT, if this run may replace it. */
typedef enum sgt_out_force {
    SGT_OUT_KEEP,
    SGT_OUT_ANEW, /* replaced, unless it is an unfinished run of the same set, which is resumed */
    SGT_OUT_DIFFERENT, /* replaced if it differs; for parts of a set */
    SGT_OUT_BESIDE     /* kept, and other files come beside it */
} sgt_out_force;

typedef struct sgt_out_request {
    const char *path;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    /* options that change the output: JSON text of an object whose keys are the program's options,
     * with _ instead of - */
    const char *options;
    /* those of its parts, and of the set of shards that another layout is written from: without the
     * layout */
    const char *set_options;
    /* options for the journal: `options`, and what decides how OUT is divided into parts; NULL: OUT
     * is not made by parts */
    const char *journal_options;
    uint32_t rank; /* of the ranks that make those parts */
    int force;     /* sgt_out_force */
    const sgt_notice *notice;
    const sgt_stop *stop;
    sgt_layout layout; /* of the files of OUT */
} sgt_out_request;

#define SGT_OUT_PARTS 1000000     /* limit: a part's number has six digits */
#define SGT_OUT_SORTING "sorting" /* folder in .work for documents that are being reordered */

typedef struct sgt_out {
    const char *path;    /* path of OUT; belongs to the request */
    char work[SGT_PATH]; /* OUT/.work */
    /* folder of the complete shards: OUT, or, if OUT gets another layout, OUT/.work/set, which OUT's
     * files are written from in the end (export.h) */
    char shards[SGT_PATH];
    /* the owner of .work/owner, which holds .work/lock; and while OUT is shared, of
     * .work/owner-RANK; or NULL */
    sgt_owner *owner, *sharer;
    sgt_claimant who;
    size_t width; /* bytes of an id in the shards */
    int made;     /* 1: OUT did not exist before */
    int had_work; /* 1: .work existed before */
    sgt_journal *journal;
} sgt_out;

/* Return whether `folder` holds anything but the `count` names. A missing folder holds nothing. */
int sgt_out_holds_other_than(const char *folder, const char *const *names, size_t count);
int sgt_out_file_exists(const char *folder, const char *name);
int sgt_out_is_begun(const char *out); /* OUT holds a set, complete or not */

/* Compare what `folder` says of the inputs with r->corpus: the folder of a complete set, OUT or a part
 * of it; or, with the journal's checkpoint `now`, the .work of a run that is resumed. */
int sgt_out_compare_inputs(const sgt_out_request *r, const char *folder, const sgt_checkpoint *now,
                           sgt_error *err);

/* Claim OUT for this run. Return 0 if it is ours, with *o filled in; 1 if it is complete, made with
 * the same options from the same inputs; or a negative SGT_E*. Call sgt_out_release only after 0.
 *
 * With journal_options, OUT is shared by the ranks of the same request. Nothing in OUT itself may
 * be written before sgt_out_alone, and sgt_out_leave releases it. If a rank is setting OUT up or
 * completing it, wait up to ten seconds.
 *
 * Files that are not made from text need only `path` and `force`: OUT must be new, empty, or left
 * by such a claim that did not end in sgt_out_publish. With `force`, an earlier set may be in it,
 * and stays there until sgt_out_clear; with SGT_OUT_BESIDE, an unfinished one stays, too. */
int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err);

/* Remove an earlier set from OUT, its manifest first. */
int sgt_out_clear(const sgt_out *o, sgt_error *err);

/* Stop sharing an OUT, and wait until no other rank works on it. Return 0 if OUT is
 * ours alone, 1 if it has become complete, or a negative SGT_E*. */
int sgt_out_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err);
/* Fail if another run has taken OUT over, because this one was stopped for too long (owner.h). */
int sgt_out_check(const sgt_out *o, sgt_error *err);
/* Leave a shared OUT. If no rank has begun a part, restore OUT as it was before. */
void sgt_out_leave(sgt_out *o);

/* Move the files of a complete shard from .work to o->shards, if they are not there yet. The index
 * goes first, so that a shard there always has its index. */
int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err);

/* Look for a shard of a split in o->shards. Return 1 if it exists, described in *s; 0 if not; or a
 * negative SGT_E*. */
int sgt_out_find_shard(const sgt_out *o, int split, uint64_t index, sgt_manifest_shard *s,
                       sgt_error *err);

/* List the first shards[] shards of each split, which must be in o->shards, in m->shards, and set
 * m->tokens and m->documents. */
int sgt_out_list_shards(const sgt_out *o, const uint64_t shards[SGT_SPLITS], sgt_manifest *m,
                        sgt_error *err);

/* Complete OUT: sources.jsonl (from .work), tokenizer.json and, last, manifest.json. Then remove
 * .work. If OUT has another layout, its files must be there already. */
int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err);

/* Release OUT. If keep is 0, an OUT without a complete shard is removed. */
void sgt_out_release(sgt_out *o, int keep);

#endif
