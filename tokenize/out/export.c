/* export.c: converts a complete set of shards to files for another trainer, under temporary names,
 * and renames these files to their final names. */
#include "tokenize/out/export.h"

#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"
#include "loader/shards/shard.h"
#include "tokenize/out/writer.h"

#define BUFFER ((size_t)1 << 18) /* bytes written at a time */
/* codes for the type of token ids in Megatron-LM's index: 16 bits unsigned, 32 bits signed */
#define UINT16 8
#define INT32 4

const char *const sgt_layout_names[] = {"sgt", "megatron", "nanogpt", "npy"};
#define SAYS(bits)                                                                             \
    {                                                                                          \
        "shards of sgt",                                                                       \
            "for Megatron-LM: --data-path OUT/train_text_document (" bits                      \
            "-bit ids, documents end with the end-of-text id)",                                \
            "for nanoGPT: raw " bits "-bit ids; documents end with the end-of-text id",        \
            "for OLMo-core: raw " bits "-bit ids without NumPy's header (numpy.fromfile, not " \
            "numpy.load); documents end with the end-of-text id"                               \
    }
const char *const sgt_layout_says[2][4] = {SAYS("16"), SAYS("32")};
static const char *const endings[] = {"", "_text_document.bin", ".bin", ".npy"};

static int open_sink(sgt_sink *s, const sgt_export *e, const char *name, sgt_error *err)
{
    char text[80];
    sgt_writer_temporary_name(text, name);
    return sgt_sink_open(s, e->work, text, O_CREAT | O_TRUNC, err);
}

char *sgt_export_options(const char *options, sgt_layout layout)
{
    json_t *all = json_loads(options, 0, NULL);
    char *text = NULL;
    if (layout) json_object_del(all, "shard_tokens");
    if (!layout || json_object_set_new(all, "shards", json_string(sgt_layout_names[layout])) == 0)
        text = sgt_json_dumps(all, 0);
    json_decref(all);
    return text;
}

/* ---- Megatron-LM's index of a split ----
 *
 * Megatron-LM's index describes sequences; here, every document is one sequence. The index has
 * three arrays, stored one after the other: the length of each sequence, the offset of each
 * sequence, and the number of the first sequence of each document. They are computed from the .idx
 * files of sgt's shards, which are read twice: for the lengths and for the offsets. */

static int put_u64(sgt_sink *s, uint64_t v, sgt_error *err)
{
    return sgt_sink_put(s, &v, sizeof v, err);
}

/* Write one array of the index, with one entry per document. If `lengths` is 1, the entry is the
 * document's length in tokens; if 0, it is the byte offset at which the document begins. */
static int put_column(const sgt_export *e, int split, int lengths, sgt_sink *to, sgt_error *err)
{
    const uint64_t documents = sgt_made_documents(e->set, split);
    uint64_t start = 0, next = 0;
    int rc = sgt_made_start(e->set, split, 0, &start, err);
    for (uint64_t i = 0; i < documents && !rc; i++, start = next) {
        if (sgt_stopped(e->stop)) return sgt_fail(err, SGT_ESTOPPED, "stopped");
        if ((rc = sgt_made_start(e->set, split, i + 1, &next, err)) < 0) break;
        const uint64_t n = next - start;
        const int32_t length = (int32_t)n;
        if (n > INT32_MAX)
            rc = sgt_fail(err, SGT_EUNSUPPORTED,
                          "%s: document %" PRIu64 " of split %s has %" PRIu64
                          " tokens, but Megatron-LM's index allows at most %d (use a different "
                          "--shards, or split the document)",
                          sgt_made_path(e->set, 0), i, sgt_split_names[split], n, INT32_MAX);
        else if (lengths) rc = sgt_sink_put(to, &length, sizeof length, err);
        else rc = put_u64(to, sgt_made_width(e->set) * start, err);
    }
    return rc;
}

/* Write the index that Megatron-LM needs for the documents of a split. megatron.h describes the
 * format. */
static int put_index(const sgt_export *e, int split, sgt_sink *to, sgt_error *err)
{
    const uint64_t documents = sgt_made_documents(e->set, split);
    const unsigned char type = sgt_made_width(e->set) == 4 ? INT32 : UINT16;
    int rc = sgt_sink_put(to, "MMIDIDX\0", 9, err);
    if (!rc) rc = put_u64(to, 1, err);
    if (!rc) rc = sgt_sink_put(to, &type, 1, err);
    if (!rc) rc = put_u64(to, documents, err);
    if (!rc) rc = put_u64(to, documents + 1, err);
    if (!rc) rc = put_column(e, split, 1, to, err);
    if (!rc) rc = put_column(e, split, 0, to, err);
    for (uint64_t i = 0; i <= documents && !rc; i++) rc = put_u64(to, i, err);
    return rc ? rc : sgt_sink_sync(to, err);
}

/* ---- tokens ---- */

/* State of copying a split's tokens from its shards into one file. */
typedef struct copy {
    const sgt_export *e;
    sgt_sink *to;
    /* read: number of tokens of this split that have been read so far. written: number of tokens
     * that were written for the splits before this one. Both are used only to report progress. */
    uint64_t read, written;
    const char *shard; /* path of the shard being read */
} copy;

/* Write the next n token ids of a split, but skip the very first id of the split, which must be the
 * end-of-text id. sgt's shards have this id before each document; the other layouts have it after
 * each document. Skipping the first end-of-text id and appending one at the end of the split
 * therefore converts the entire split. */
static int put_ids(void *ctx, const void *ids, size_t n, uint64_t first, sgt_error *err)
{
    copy *c = ctx;
    const size_t width = sgt_made_width(c->e->set);
    const uint32_t eot = sgt_made_manifest(c->e->set, 0)->eot;
    const size_t skip = c->read == 0 && n > 0;
    (void)first;
    if (skip && sgt_id_at(ids, width, 0) != eot)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: token 0 is %u, expected the end-of-text id %u that begins a document",
                        c->shard, sgt_id_at(ids, width, 0), eot);
    c->read += n;
    int rc = sgt_sink_put(c->to, (const char *)ids + width * skip, width * (n - skip), err);
    if (c->e->progress) c->e->progress(c->e->ctx, c->written + c->read);
    return rc;
}

static int copy_shard(copy *c, const sgt_manifest_shard *s, sgt_error *err)
{
    const sgt_shard_visitor visitor = {.see = put_ids, .ctx = c};
    const uint64_t before = c->read;
    char path[SGT_PATH];
    c->shard = sgt_path(path, sgt_made_path(c->e->set, 0), "%s", s->file);
    int rc = sgt_shard_verify(path, 0, sgt_made_manifest(c->e->set, 0)->vocab, &visitor, c->e->stop,
                              err);
    if (!rc && c->read - before != s->tokens)
        rc =
            sgt_fail(err, SGT_EFORMAT, "%s: has %" PRIu64 " tokens, but the manifest says %" PRIu64,
                     path, c->read - before, s->tokens);
    return rc;
}

/* Copy the tokens of a split from its shards to *to. `written` is the number of tokens that were
 * written for the splits before this one; it is used only to report progress. */
static int put_tokens(const sgt_export *e, const char *split, uint64_t written, sgt_sink *to,
                      sgt_error *err)
{
    const sgt_manifest *m = sgt_made_manifest(e->set, 0);
    copy c = {.e = e, .to = to, .written = written};
    int rc = SGT_OK;
    for (size_t i = 0; i < m->count && !rc; i++)
        if (!strcmp(m->shards[i].split, split)) rc = copy_shard(&c, &m->shards[i], err);
    if (!rc) rc = sgt_sink_put(to, &m->eot, sgt_made_width(e->set), err);
    return rc ? rc : sgt_sink_sync(to, err);
}

/* ---- the set ---- */

/* Write the file of tokens of a split and, if `indexed` is 1, its index. Describe the file in
 * *s. */
static int write_split(const sgt_export *e, int split, uint64_t written, int indexed,
                       sgt_manifest_shard *s, sgt_error *err)
{
    char index[64];
    sgt_sink bin = {.fd = -1, .size = BUFFER, .hash = XXH3_createState()},
             idx = {.fd = -1, .size = BUFFER};
    snprintf(s->split, sizeof s->split, "%s", sgt_split_names[split]);
    snprintf(s->file, sizeof s->file, "%s%s", s->split, endings[e->layout]);
    sgt_writer_index_name(index, s->file);
    int rc = bin.hash ? SGT_OK : sgt_fail_memory(err, e->work);
    if (!rc && indexed && (rc = open_sink(&idx, e, index, err)) == 0)
        rc = put_index(e, split, &idx, err);
    if (!rc) XXH3_64bits_reset(bin.hash);
    if (!rc && (rc = open_sink(&bin, e, s->file, err)) == 0)
        rc = put_tokens(e, s->split, written, &bin, err);
    if (!rc) s->xxh3 = XXH3_64bits_digest(bin.hash);
    XXH3_freeState(bin.hash);
    sgt_sink_free(&bin);
    sgt_sink_free(&idx);
    return rc;
}

int sgt_export_write(const sgt_export *e, sgt_manifest *to, sgt_error *err)
{
    const sgt_manifest *from = sgt_made_manifest(e->set, 0);
    *to = *from;
    to->count = 0;
    to->foreign = 1;
    to->raw = e->layout != SGT_LAYOUT_MEGATRON;
    to->options = sgt_export_options(from->options, e->layout);
    to->invalid = from->invalid ? strdup(from->invalid) : NULL;
    to->shards = calloc(SGT_SPLITS, sizeof *to->shards);
    if (!to->options || !to->shards || (from->invalid && !to->invalid))
        return sgt_fail_memory(err, e->work);
    uint64_t written = 0;
    for (int i = 0; i < SGT_SPLITS; i++) {
        sgt_manifest_shard *s = &to->shards[to->count];
        *s = (sgt_manifest_shard){.tokens = sgt_made_tokens(e->set, i),
                                  .documents = sgt_made_documents(e->set, i)};
        if (!s->tokens) continue;
        const int rc = write_split(e, i, written, !to->raw, s, err);
        if (rc < 0) return rc;
        written += s->tokens;
        to->count++;
    }
    return SGT_OK;
}

static int move_file(const char *work, const char *out, const char *name, sgt_error *err)
{
    char from[80];
    sgt_writer_temporary_name(from, name);
    return sgt_move(work, out, from, name, NULL, err);
}

int sgt_export_move(const char *work, const char *out, const sgt_manifest *to, sgt_error *err)
{
    int rc = sgt_manifest_write(to, work, err);
    for (size_t i = 0; i < to->count && !rc; i++) {
        char name[64];
        sgt_writer_index_name(name, to->shards[i].file);
        if (!to->raw) rc = move_file(work, out, name, err);
        if (!rc) rc = move_file(work, out, to->shards[i].file, err);
    }
    return rc;
}

int sgt_export_copy(const char *from, const char *to, const char *name, sgt_error *err)
{
    char path[SGT_PATH], made[SGT_PATH], bytes[1 << 14];
    sgt_file out = {0};
    FILE *in = NULL;
    size_t n;
    int rc = sgt_file_lines(&in, sgt_path(path, from, "%s", name), err);
    if (!rc) rc = sgt_file_begin(&out, sgt_path(made, to, "%s", name), err);
    while (!rc && (n = fread(bytes, 1, sizeof bytes, in)) > 0)
        rc = sgt_file_write(&out, bytes, n, err);
    if (!rc && ferror(in)) rc = sgt_fail_errno(err, "%s", path);
    if (!rc) rc = sgt_file_commit(&out, err);
    sgt_file_abandon(&out);
    if (in) fclose(in);
    return rc;
}
