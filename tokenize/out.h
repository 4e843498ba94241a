/* out.h: the folder OUT: whose it is, whether a run may write there, where an earlier one stopped, and how it becomes
 * complete.
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
 * OUT belongs to one run at a time (a lock in OUT/.work). OUT with other options or from other inputs, and a folder
 * with anything in it that sgt-tokenize did not make, are refused unless `force`; then only files with the names of our
 * own are replaced. Complete means: manifest.json is there, which is the last thing written. */
#ifndef SGT_OUT_H
#define SGT_OUT_H

#include <stdint.h>

#include "base/error.h"
#include "corpus.h"
#include "journal.h"
#include "manifest.h"
#include "sgt_tokenize.h"

typedef struct sgt_out_request {
    const char *path;
    const sgt_corpus *corpus;
    const sgt_vocab *vocab;
    const char *options; /* JSON object text: what changes bytes. Keys are the program's options with _ for - */
    int force;
    sgt_notice notice;
} sgt_out_request;

typedef struct sgt_out {
    const char *path; /* the request's */
    char *work;       /* OUT/.work */
    int lock;         /* descriptor, -1: not held */
    int made;         /* OUT was not there before */
    sgt_journal *journal;
} sgt_out;

/* 0: OUT is ours, *o filled in. 1: it is complete, made by the same options from the same inputs. Else a negative
 * SGT_E*. sgt_out_release is due after 0 alone. */
int sgt_out_claim(sgt_out *o, const sgt_out_request *r, sgt_error *err);

/* Moves the shard files of a committed checkpoint from .work to OUT. */
int sgt_out_move_shard(const sgt_out *o, const sgt_manifest_shard *s, sgt_error *err);

/* sources.jsonl (from .work), tokenizer.json and, last, manifest.json; then .work is gone. */
int sgt_out_publish(sgt_out *o, const sgt_manifest *m, const sgt_vocab *v, sgt_error *err);

/* Lets go of OUT. keep 0: nothing is left of an OUT that has no whole shard. */
void sgt_out_release(sgt_out *o, int keep);

#endif
