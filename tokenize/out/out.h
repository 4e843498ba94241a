/* out.h: the folder OUT: whose it is, whether a run may write there, where an earlier one stopped,
 * and how it becomes complete.
 *
 *     sgt_out o;
 *     int rc = sgt_out_claim(&o, &(sgt_out_request){.path = "out", ...}, &err);
 *     if (rc == 1) ...;                                      // complete already, nothing to do or to release
 *     if (rc == 0) {
 *         ... work in o.work, from o.journal->now on ...
 *         sgt_out_publish(&o, &manifest, vocab, &err);
 *         sgt_out_release(&o, keep);
 *     }
 *
 * Several ranks fill one OUT together: each joins it (sgt_out_join) and makes a part of it, a set
 * in a folder of its own under OUT/.work (parts.h); when all parts are whole, one of them has OUT
 * alone (sgt_out_alone) and completes it.
 *
 * OUT belongs to one run at a time (a lock in OUT/.work, which ranks share). OUT with other options
 * or from other inputs, and a folder with anything in it that sgt-tokenize did not make, are
 * refused unless `force`; then only files with the names of our own are replaced. Complete means:
 * manifest.json is there, which is the last thing written. */
#ifndef SGT_OUT_H
#define SGT_OUT_H

#include <stdint.h>

#include "base/error.h"
#include "input/corpus.h"
#include "journal.h"
#include "shards/manifest.h"
#include "sgt_tokenize.h"

typedef struct sgt_out_request {
    const char *path;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    /* JSON object text: what changes bytes. Keys are the program's options with _ for - */
    const char *options;
    /* the same and what decides how OUT is divided into parts; NULL: it is not */
    const char *journal_options;
    int force;
    sgt_notice notice;
    const sgt_stop *stop;
} sgt_out_request;

#define SGT_OUT_PARTS 1000000     /* parts are numbered with six digits */
#define SGT_OUT_SORTING "sorting" /* in .work: documents on their way into another order */

typedef struct sgt_out {
    const char *path; /* the request's */
    char *work;       /* OUT/.work */
    int lock;         /* descriptor, -1: not held */
    int made;         /* OUT was not there before */
    int had_work;     /* .work was */
    sgt_journal *journal;
} sgt_out;

/* 0: OUT is ours, *o filled in. 1: it is complete, made by the same options from the same inputs.
 * Else a negative SGT_E*. sgt_out_release is due after 0 alone. */
int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err);

/* The same for a rank of several: OUT is ours together with all who ask for the same. Nothing of
 * OUT itself may be written before sgt_out_alone. Waits for one that is setting OUT up or
 * completing it, for ten seconds. */
int sgt_out_join(sgt_out *o, const sgt_out_request *r, sgt_error *err);

/* After sgt_out_join, with our part whole: gives up our share of OUT. */
void sgt_out_share_no_more(sgt_out *o);
/* After that: waits until no other rank is at work here. 0: OUT is ours alone; 1: it is complete by
 * now. */
int sgt_out_alone(sgt_out *o, const sgt_out_request *r, sgt_error *err);
/* While another rank has OUT alone: to write shards beside it. Whoever has OUT alone after a death
 * waits for our end. */
int sgt_out_help(sgt_out *o, sgt_error *err);
/* Lets go of an OUT that was joined; one in which nobody has begun a part is left as it was
 * before. */
void sgt_out_leave(sgt_out *o);

/* "part-000007", into name[32]. */
void sgt_out_part_name(char name[32], uint32_t part);

/* Moves the shard files of a committed checkpoint from .work to OUT. */
int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err);

/* sources.jsonl (from .work), tokenizer.json and, last, manifest.json; then .work is gone. */
int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err);

/* Lets go of OUT. keep 0: nothing is left of an OUT that has no whole shard. */
void sgt_out_release(sgt_out *o, int keep);

#endif
