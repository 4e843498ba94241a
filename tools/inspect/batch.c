/* batch.c: draws the batches that training would draw with the same options, and prints them. For
 * --sampling packed, it can also print how many documents the rows of an epoch contain, and how
 * many tokens are cropped. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/json.h"
#include "loader/sgt_loader.h"
#include "tools/cli/talk.h"
#include "tools/inspect/inspect.h"

#define SHOWN_IDS 24  /* maximum number of tokens per row that are decoded to text */
#define SHOWN_TEXT 72 /* size in bytes of the buffer for the text of a row, including a NUL */

typedef struct drawing {
    const inspect *o;
    sgt_loader *loader;
    sgt_loader_info info;
    sgt_cursor *cursor;
    sgt_vocab *vocab; /* vocabulary that decodes the ids; NULL if it is unknown */
    const sgt_loader_batch *batch;
    /* array of shape (2, B, T) with the inputs of the batch, followed by the targets */
    int32_t *inputs;
} drawing;

/* Return a JSON array that contains, for each row of batch k, the index of the data set from which
 * the row was drawn. This is used if several data sets are mixed. */
static json_t *sets_json(const drawing *d, uint64_t k)
{
    json_t *sets = json_array();
    for (uint32_t r = 0; r < d->info.batch; r++) {
        uint32_t shard;
        uint64_t at;
        sgt_loader_window(d->loader, k * d->info.batch + r, &shard, &at);
        json_array_append_new(sets, json_integer(sgt_loader_set_of(d->loader, shard)));
    }
    return sets;
}

static json_t *rows_json(const drawing *d, const int32_t *ids)
{
    json_t *rows = json_array();
    for (uint32_t b = 0; b < d->info.batch; b++, ids += d->info.seq)
        json_array_append_new(rows, sgt_json_ids(ids, sizeof *ids, d->info.seq));
    return rows;
}

static int print_json(const drawing *d, uint64_t k, sgt_error *err)
{
    json_t *o = json_pack("{s:I, s:o, s:o}", "index", (json_int_t)k, "inputs",
                          rows_json(d, d->inputs), "targets", rows_json(d, d->batch->targets));
    if (d->o->documents) {
        json_object_set_new(o, "positions", rows_json(d, d->batch->positions));
        json_object_set_new(o, "documents", rows_json(d, d->batch->ids));
    }
    if (d->info.set_count > 1) json_object_set_new(o, "sets", sets_json(d, k));
    return sgt_print_json(o, JSON_COMPACT, err);
}

/* Decode the first tokens of a row, and write their text to `text` as a JSON string, which is cut
 * off if it does not fit. own: number of tokens in the row, without padding. */
static int row_text(const drawing *d, const int32_t *row, uint32_t own, char text[SHOWN_TEXT],
                    sgt_error *err)
{
    uint16_t narrow[SHOWN_IDS];
    uint32_t n = own < SHOWN_IDS ? own : SHOWN_IDS;
    char *decoded;
    size_t bytes;
    for (uint32_t t = 0; t < n; t++) narrow[t] = (uint16_t)row[t];
    const void *ids = sgt_vocab_width(d->vocab) == 2 ? (const void *)narrow : row;
    int rc = sgt_decode(d->vocab, ids, n, &decoded, &bytes, err);
    if (rc < 0) return rc;
    json_t *string = sgt_json_text(decoded, bytes);
    char *quoted = sgt_json_dumps(string, JSON_ENCODE_ANY);
    if (quoted) sgt_printable(text, SHOWN_TEXT, quoted);
    else rc = sgt_fail_memory(err, NULL);
    json_decref(string);
    free(quoted);
    free(decoded);
    return rc;
}

/* Print the indices of those tokens in row r at which documents begin. */
static void print_starts(const drawing *d, uint32_t r)
{
    uint32_t from = d->batch->row_starts[r], to = d->batch->row_starts[r + 1];
    printf("           documents begin at ");
    for (uint32_t k = from; k < to; k++)
        printf("%s%" PRIu32, k == from ? "" : ", ", d->batch->starts[k]);
    printf("%s\n", from == to ? "no token of this row" : "");
}

static int print_rows(const drawing *d, uint64_t k, sgt_error *err)
{
    const uint32_t rows = d->info.batch, T = d->info.seq;
    printf("batch %" PRIu64 ": %" PRIu32 " row%s of %" PRIu32 " token%s\n", k, rows,
           rows == 1 ? "" : "s", T, T == 1 ? "" : "s");
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t shard;
        uint64_t at;
        char text[SHOWN_TEXT] = "", name[1024];
        sgt_loader_window(d->loader, k * d->info.batch + r, &shard, &at);
        const char *path = sgt_loader_shard_path(d->loader, shard), *slash = strrchr(path, '/');
        const int32_t *row = d->inputs + (size_t)r * d->info.seq;
        uint32_t own = d->info.padded ? d->batch->lengths[r] : T;
        int rc = d->vocab ? row_text(d, row, own < T ? own : T, text, err) : SGT_OK;
        if (rc < 0) return rc;
        /* if all shards are from one data set, omit the folder from the path */
        if (slash && d->info.set_count == 1) path = slash + 1;
        printf("  row %-4" PRIu32 " %s from token %-10" PRIu64, r,
               sgt_printable(name, sizeof name, path), at);
        if (d->info.padded) printf(" %6" PRIu32 " token%s", own, own == 1 ? " " : "s");
        printf(" %s\n", text);
        if (d->o->documents) print_starts(d, r);
    }
    return SGT_OK;
}

static int show_batches(drawing *d, uint64_t from, uint64_t count, sgt_error *err)
{
    const size_t bytes = (size_t)d->info.batch * d->info.seq * 2 * sizeof *d->inputs;
    int rc = SGT_OK;
    for (uint64_t k = from; k < from + count && rc == SGT_OK; k++) {
        if (sgt_stopped(d->o->stop))
            return sgt_fail(err, SGT_ESTOPPED, "%s: interrupted", d->o->path);
        rc = sgt_loader_read(d->loader, d->cursor, k, 1, SGT_OUTPUT_I32, d->inputs, bytes, err);
        if (rc == SGT_OK) rc = d->o->json ? print_json(d, k, err) : print_rows(d, k, err);
    }
    return rc;
}

static int open_loader(sgt_loader **l, const inspect *o, sgt_error *err)
{
    const sgt_loader_options options = {.size = sizeof options,
                                        .data = o->path,
                                        .split = o->split,
                                        .raw = o->raw,
                                        .sampling = (sgt_sampling)o->sampling,
                                        .seed = o->seed,
                                        .batch = (uint32_t)o->batch_size,
                                        .seq = (uint32_t)o->seq_len,
                                        .documents = o->documents,
                                        .padded_by = o->padded_by,
                                        .pad = (uint32_t)o->pad,
                                        .reader = (sgt_reader)o->loader,
                                        .notice = o->notice};
    return sgt_loader_open(l, &options, err);
}

int inspect_batches(const inspect *o, sgt_error *err)
{
    drawing d = {.o = o};
    uint64_t from, count;
    int rc = inspect_span(&from, &count, o->batch, "batch", err);
    if (rc < 0 || (rc = open_loader(&d.loader, o, err)) < 0) return rc;
    d.info = *sgt_loader_get_info(d.loader);
    /* the product cannot overflow, because the limits of --batch-size and --seq-len keep it below
     * 2^40 */
    size_t ids = (size_t)d.info.batch * d.info.seq;
    d.inputs = calloc(2 * ids, sizeof *d.inputs);
    /* the sum cannot overflow, because inspect_span has checked this */
    if (from + count > INT64_MAX / d.info.batch)
        rc = sgt_fail(err, SGT_EUSAGE, "--batch %s: too large for batches of %" PRIu32 " rows",
                      o->batch, d.info.batch);
    else if (!d.inputs)
        rc = sgt_fail(err, SGT_ENOMEM,
                      "%s: out of memory for a batch of %" PRIu32 " x %" PRIu32 " tokens", o->path,
                      d.info.batch, d.info.seq);
    if (rc == SGT_OK) rc = sgt_cursor_open(&d.cursor, d.loader, err);
    if (rc == SGT_OK) d.batch = sgt_cursor_batch(d.cursor);
    if (rc == SGT_OK && !o->json)
        rc = inspect_vocabulary(&d.vocab, d.info.fingerprint, sgt_id_width(d.info.vocab),
                                sgt_loader_shard_path(d.loader, 0), err);
    /* if the vocabulary is unavailable, print the rows without text */
    if (rc == SGT_OK || (d.batch && rc == SGT_EUNSUPPORTED))
        rc = show_batches(&d, from, count, err);
    sgt_vocab_free(d.vocab);
    free(d.inputs);
    sgt_cursor_close(d.cursor);
    sgt_loader_close(d.loader);
    return rc;
}

/* ---- packed rows ---- */

int inspect_packing(const inspect *o, sgt_error *err)
{
    sgt_loader *l;
    int rc = open_loader(&l, o, err);
    if (rc < 0) return rc;
    const sgt_loader_info is = *sgt_loader_get_info(l);
    sgt_loader_close(l);
    return sgt_print_result(
        o->json, o->quiet, o->path, "packed rows of one epoch",
        json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:f, s:f}", "sampling", "packed", "seq",
                  (json_int_t)is.seq, "rows", (json_int_t)is.windows_per_epoch, "documents",
                  (json_int_t)is.documents, "tokens", (json_int_t)is.packed_tokens,
                  "cropped_tokens", (json_int_t)is.cropped, "cropped_fraction",
                  (double)is.cropped / (double)is.packed_tokens, "documents_per_row",
                  (double)is.documents / (double)is.windows_per_epoch),
        err);
}
