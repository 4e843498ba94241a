/* space_check.c: check whether the output of these inputs fits on the disk. */
#include "tokenize/dry_run.h"
#include "tokenize/out/out_compare.h"
#include "tokenize/space.h"

/* bytes of text assumed per byte of a packed file: as much as occurs in practice */
#define UNPACKED 32
/* bytes that each file adds: a line of sources.jsonl, an end-of-text id, an offset */
#define EACH_FILE 512
#define ALWAYS (32u << 20) /* bytes for vocabulary, manifest and journal */
#define COPIES 3           /* copies of the tokens, with ranks, --shuffle and --dedup */

/* Return an upper estimate of the output in bytes. Each byte of text is at most one token, unless
 * normalizing or replacing makes the text longer; `copies` covers that too. */
static double most(const sgt_tokenize_options *o, const sgt_corpus *c)
{
    double bytes = 0, copies = sgt_ranks_size(o->ranks) > 1 || o->shuffle || o->dedup ? COPIES : 1;
    if (o->layout) copies++;
    for (size_t i = 0; i < c->count; i++)
        bytes +=
            EACH_FILE + (double)c->files[i].size * (sgt_corpus_sought(&c->files[i]) ? 1 : UNPACKED);
    if (o->normalize > SGT_NORMALIZE_NONE || o->invalid_utf8 == SGT_INVALID_REPLACE)
        copies *= COPIES;
    return ALWAYS + 2 * bytes * copies;
}

int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err)
{
    if (o->force || c->stream || (sgt_ranks_connected(o->ranks) && o->ranks->rank)) return SGT_OK;
    if (sgt_out_file_exists(o->out, "manifest.json")) return SGT_OK;
    const uint64_t avail = sgt_space_free(o->out);
    if (avail == SGT_NOT_KNOWN || most(o, c) < (double)avail) return SGT_OK;
    sgt_dry_run_result r;
    sgt_error why;
    int rc = sgt_dry_run_corpus(o, c, v, &r, &why);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "%s", why.text);
    /* Ignore errors in the inputs: the run reports them, after the work that it can do. */
    if (rc < 0) return SGT_OK;
    if (!sgt_space_lacks(r.disk + r.disk_meanwhile, r.disk_there, avail)) return SGT_OK;
    return sgt_space_fail(o->out, r.disk + r.disk_meanwhile, r.disk_there, avail, err);
}
