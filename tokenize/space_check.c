/* space_check.c: how much disk the output of these inputs needs, and whether that is free. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "loader/shards/shard.h"
#include "tokenize/out/out_compare.h"
#include "tokenize/parts/parts.h"
#include "tokenize/space.h"

#define SHARD_TOKENS 100000000u /* sgt_tokenize's default */
#define SOURCE_LINE 80          /* approximate bytes of a line of sources.jsonl without the name */
#define SHARD_ENTRY 160         /* bytes of a shard's entry in manifest.json */
/* bytes of text assumed per byte of a packed file: as much as occurs in practice */
#define UNPACKED 32
/* bytes that each file adds: a line of sources.jsonl, an end-of-text id, an offset */
#define EACH_FILE 512
#define ALWAYS (32u << 20) /* bytes for vocabulary, manifest and journal */
#define COPIES 3           /* copies of the tokens, with ranks, --shuffle and --dedup */

static uint64_t shards_of(double tokens, double size)
{
    return tokens > 0 ? (uint64_t)ceil(tokens / size) : 0;
}

int sgt_space_needed(sgt_dry_run_result *r, double kept, const sgt_tokenize_options *o,
                     const sgt_corpus *c, const sgt_vocab *v, sgt_error *err)
{
    const double size = o->layout         ? 1e18 /* one file for a split */
                        : o->shard_tokens ? (double)o->shard_tokens
                                          : SHARD_TOKENS;
    char *text;
    size_t n;
    int rc = sgt_vocab_tokenizer_json(v, &text, &n, err);
    if (rc < 0) return rc;
    free(text);
    r->shards = shards_of((double)r->tokens * (1 - o->val_fraction), size) +
                shards_of((double)r->tokens * o->val_fraction, size);
    /* the parts, and the set that another layout is written from */
    const uint64_t parts = sgt_parts_wanted(o) ? 1 : 0, sets = parts + (o->layout ? 1 : 0);
    r->disk_meanwhile = sets * (2 * r->tokens + 8 * r->documents) + parts * (uint64_t)kept;
    r->disk = 2 * r->tokens + r->shards * (SGT_SHARD_HEADER + SHARD_ENTRY) + (uint64_t)kept +
              (o->layout == SGT_LAYOUT_MEGATRON ? 20 : 8) * r->documents + n;
    for (size_t i = 0; i < c->count; i++) r->disk += strlen(c->files[i].name) + SOURCE_LINE;
    return SGT_OK;
}

/* Return an upper estimate of the output in bytes. Each byte of text is at most one token, unless
 * normalizing or replacing makes the text longer; `copies` covers that too. */
static double most(const sgt_tokenize_options *o, const sgt_corpus *c)
{
    double bytes = 0, copies = sgt_ranks_size(o->ranks) > 1 || o->shuffle || o->dedup ? COPIES : 1;
    if (o->layout) copies++;
    if (o->keep_fields) copies++; /* in sources.jsonl */
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
