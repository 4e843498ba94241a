/* before.c: checks the options of a call, estimates the disk space that the output needs, and
 * compares the estimate with the free space. */
#include "tokenize/before.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include "loader/base/file.h"
#include "loader/base/format.h"
#include "loader/base/memory.h"
#include "loader/shards/shard.h"
#include "tokenize/input/parquet.h"
#include "tokenize/out/out.h"
#include "tokenize/parts/parts.h"
#include "tokenize/pipeline.h"
#include "tokenize/vocab/vocab.h"

#define MAX_THREADS 1024
#define TOKEN_BYTES 4  /* average bytes of text per token */
#define UNPACKED 3     /* assumed ratio of the uncompressed to the compressed size of a file */
#define VOCAB_ENTRY 28 /* approximate size in bytes of a token's entry in tokenizer.json */
/* upper bound in bytes on the total size of the output files that hold no tokens: the vocabulary
 * and the lists of input files */
#define SMALL (64u << 20)

/* ---- the options ---- */

static int check_options(const sgt_tokenize_options *o, sgt_error *err)
{
    if (!(o->val_fraction >= 0 && o->val_fraction <= 1))
        return sgt_fail(err, SGT_EUSAGE, "split: %g is not between 0 and 1", o->val_fraction);
    if (o->shard_tokens > SGT_SHARD_MAX_TOKENS)
        return sgt_fail(err, SGT_EUSAGE,
                        "shard-tokens: %" PRIu64 " is too many (a shard holds at most %u tokens)",
                        o->shard_tokens, SGT_SHARD_MAX_TOKENS);
    if ((unsigned)o->layout > SGT_LAYOUT_NPY || (unsigned)o->format > SGT_FORMAT_JSONL ||
        (unsigned)o->normalize > SGT_NORMALIZE_NFKC ||
        (unsigned)o->invalid_utf8 > SGT_INVALID_FAIL || (unsigned)o->binary > SGT_BINARY_KEEP)
        return sgt_fail(err, SGT_EUSAGE,
                        "sgt_tokenize_options: unknown value in layout %d, format %d, normalize "
                        "%d, invalid_utf8 %d or binary %d",
                        (int)o->layout, (int)o->format, (int)o->normalize, (int)o->invalid_utf8,
                        (int)o->binary);
    if (o->layout && o->shard_tokens)
        return sgt_fail(err, SGT_EUSAGE,
                        "shard-tokens: cannot be combined with the formats megatron, nanogpt and "
                        "npy, which keep each split in one file");
    if (o->threads < 0 || o->threads > MAX_THREADS)
        return sgt_fail(err, SGT_EUSAGE, "threads: %d is not between 0 and %d", o->threads,
                        MAX_THREADS);
    if (o->rank && o->rank >= o->ranks)
        return sgt_fail(err, SGT_EUSAGE,
                        "rank: %" PRIu32 " must be below the number of ranks, %" PRIu32
                        " (ranks are numbered from 0)",
                        o->rank, o->ranks);
    return SGT_OK;
}

int sgt_tokenize_given(sgt_tokenize_options *o, const sgt_tokenize_options *given,
                       const sgt_tokenize_result *result, sgt_error *err)
{
    sgt_tokenize_result r;
    int rc = sgt_struct_read(o, sizeof *o, given, "sgt_tokenize_options", err);
    if (!rc && result) rc = sgt_struct_read(&r, sizeof r, result, "sgt_tokenize_result", err);
    if (!rc) rc = check_options(o, err);
    if (rc < 0) return rc;
    if (!o->inputs || !o->input_count || !o->out || !*o->out)
        return sgt_fail(err, SGT_EUSAGE, "expected at least one INPUT, and OUT");
    return SGT_OK;
}

/* ---- the disk ---- */

/* Return the number of bytes that this user can still write to the file system of the output folder
 * `out`. The folder need not exist yet. Return SGT_NOT_KNOWN if `out` is NULL or if the free space
 * cannot be determined. */
static uint64_t free_bytes(const char *out)
{
    struct statvfs f;
    char *path = out && *out ? strdup(out) : NULL;
    uint64_t n = SGT_NOT_KNOWN;
    while (path && statvfs(path, &f) < 0 && errno == ENOENT) {
        char *slash = strrchr(path, '/');
        if (slash && slash > path) *slash = 0; /* "out/" becomes "out" first */
        else memcpy(path, slash ? "/" : ".", 2);
    }
    if (path && statvfs(path, &f) == 0) n = (uint64_t)f.f_bavail * f.f_frsize;
    free(path);
    return n;
}

int sgt_space_lacks(const char *out, const sgt_dry_run_result *r, sgt_error *err)
{
    const uint64_t need = r->disk + r->disk_meanwhile;
    char a[32], b[32];
    if (r->begun || r->disk_free == SGT_NOT_KNOWN || need <= r->disk_free) return SGT_OK;
    return sgt_fail(err, SGT_EIO,
                    "%s: needs about %s, but only %s is free there (free some space, name an OUT "
                    "elsewhere, or pass --force)",
                    out, sgt_format_bytes(a, sizeof a, need),
                    sgt_format_bytes(b, sizeof b, r->disk_free));
}

/* ---- the inputs ---- */

/* Set *documents to the number of rows in the Parquet file f, and *bytes to the size in the file,
 * in bytes, of the column that holds the text. */
static int measure_rows(const sgt_corpus *c, const sgt_corpus_file *f, const sgt_stop *stop,
                        uint64_t *documents, uint64_t *bytes, sgt_error *err)
{
    const sgt_parquet_request request = {.file = f, .field = c->field, .stop = stop};
    sgt_parquet *p;
    int rc = sgt_parquet_open(&p, &request, err);
    if (rc < 0) return rc;
    sgt_parquet_size(p, documents, bytes);
    sgt_parquet_close(p);
    return SGT_OK;
}

/* Estimate how many documents and tokens the corpus holds and how much disk space the output needs.
 * Set every field of *r except disk_free and begun. */
static int estimate(sgt_dry_run_result *r, const sgt_tokenize_options *o, const sgt_corpus *c,
                    const sgt_vocab *v, sgt_error *err)
{
    /* Maximum number of tokens per output file. Layouts other than SGT_LAYOUT_SGT write one file
     * per split, however large, so for them the limit is a number that is never reached. */
    const double size = o->layout ? 1e18 : (double)sgt_pipeline_shard_tokens(o);
    double text = 0;
    int known = !o->special_eot; /* a file of text is one document */
    *r = (sgt_dry_run_result){.files = c->count, .bytes = c->bytes, .skipped = c->skipped};
    for (size_t i = 0; i < c->count; i++) {
        const sgt_corpus_file *f = &c->files[i];
        uint64_t documents = 1, bytes = f->size;
        int rc = sgt_stopped(o->stop) ? sgt_fail(err, SGT_ESTOPPED, "stopped") : SGT_OK;
        if (!rc && f->rows) rc = measure_rows(c, f, o->stop, &documents, &bytes, err);
        if (rc < 0) return rc;
        known &= !f->lines && !f->detect && !(f->rows && o->skip_bad);
        r->documents += documents;
        r->packed |= !sgt_corpus_sought(f) && !f->filter;
        /* Estimate the size of the text in the file: the size on disk, times UNPACKED if the file
         * is compressed. The size of a file that is read through a filter is not multiplied,
         * because a PDF, for example, holds fewer bytes of text than the file has bytes. */
        text += (double)bytes * (sgt_corpus_sought(f) || f->filter ? 1 : UNPACKED);
    }
    const double tokens = ceil(text / TOKEN_BYTES);
    const uint64_t documents = known ? r->documents : 0;
    /* number of temporary copies of the tokens that the run may keep on disk besides the output:
     * one if the output is made in parts that are joined later, and one if shards are converted to
     * another layout */
    const uint64_t sets = (sgt_parts_wanted(o) ? 1u : 0u) + (o->layout ? 1u : 0u);
    r->tokens = (uint64_t)tokens;
    r->shards = (uint64_t)(ceil(tokens * (1 - o->val_fraction) / size) +
                           ceil(tokens * o->val_fraction / size));
    const uint64_t bytes = sgt_vocab_width(v) * r->tokens;
    r->disk_meanwhile = sets * (bytes + 8 * documents);
    r->disk = bytes + r->shards * SGT_SHARD_HEADER +
              (o->layout == SGT_LAYOUT_MEGATRON ? 20 : 8) * documents +
              VOCAB_ENTRY * (uint64_t)sgt_vocab_size(v);
    if (!known) r->documents = SGT_NOT_KNOWN;
    return SGT_OK;
}

int sgt_dry_run(const sgt_tokenize_options *o, sgt_dry_run_result *r, sgt_error *err)
{
    sgt_corpus *c = NULL;
    sgt_vocab *v = NULL;
    int rc = check_options(o, err);
    if (rc < 0) return rc;
    if ((rc = sgt_corpus_list(&c, o, err)) == 0 && c->stream)
        rc = sgt_fail(err, SGT_EUSAGE,
                      "standard input (-) has an unknown size, so its tokens cannot be estimated "
                      "(save it as a file first)");
    if (!rc && (rc = sgt_vocab_of(&v, o, err)) == 0) {
        sgt_vocab_say(v, &o->notice);
        rc = estimate(r, o, c, v, err);
        r->disk_free = free_bytes(o->out);
        r->begun = o->out && sgt_out_is_begun(o->out);
    }
    sgt_vocab_free(v);
    sgt_corpus_free(c);
    return rc;
}

int sgt_space_check(const sgt_tokenize_options *o, const sgt_corpus *c, const sgt_vocab *v,
                    sgt_error *err)
{
    if (o->force || c->stream || (o->joined && o->rank) || sgt_out_is_begun(o->out)) return SGT_OK;
    /* If the free space exceeds eight times the sum of the inputs' size and SMALL, skip the
     * estimate: the output never needs that much space, and the estimate would open every Parquet
     * file. */
    const uint64_t avail = free_bytes(o->out);
    if (avail == SGT_NOT_KNOWN || avail / 8 > c->bytes + SMALL) return SGT_OK;
    sgt_dry_run_result r;
    sgt_error why;
    int rc = estimate(&r, o, c, v, &why);
    if (rc == SGT_ESTOPPED) return sgt_fail(err, rc, "%s", why.text);
    /* Ignore an error in an input here, because the run reports that error when it reaches the
     * input. */
    if (rc < 0) return SGT_OK;
    r.disk_free = avail;
    return sgt_space_lacks(o->out, &r, err);
}
