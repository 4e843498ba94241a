/* loader.c: open a loader: shards, order of windows and reader in one immutable handle; the names of
 * readers and samplings; and the position in a run, from which a loader may continue. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/handle.h"
#include "loader/words.h"

/* ---- names ---- */

#define WORD(name) #name,
const char *const sgt_reader_words[] = {SGT_READ_ALL(WORD) NULL};
const char *const sgt_sampling_words[] = {"shuffle",   "random", "block", "sequential",
                                          "documents", "packed", NULL};
_Static_assert(sizeof sgt_sampling_words / sizeof *sgt_sampling_words == SGT_SAMPLINGS + 1,
               "a word for each sampling");

const char *sgt_reader_name(sgt_reader r)
{
    return (unsigned)r < SGT_READERS ? sgt_reader_words[r] : "unknown";
}

const char *sgt_sampling_name(sgt_sampling s)
{
    return (unsigned)s < SGT_SAMPLINGS ? sgt_sampling_words[s] : "unknown";
}

/* ---- opening ---- */

#define OPS(name) &sgt_read_##name,
static const sgt_reader_ops *const readers[] = {SGT_READ_ALL(OPS)};
_Static_assert(sizeof readers / sizeof *readers == SGT_READERS,
               "a reader for each member of sgt_reader");

static int verify(sgt_loader_options *o, sgt_error *err)
{
    if (!o->batch) o->batch = 8;
    if (!o->seq) o->seq = 512;
    if (!o->ranks) o->ranks = 1;
    if (!o->split) o->split = "train";
    if ((unsigned)o->reader >= SGT_READERS)
        return sgt_fail(err, SGT_EUSAGE, "unknown reader %d", (int)o->reader);
    if ((unsigned)o->sampling >= SGT_SAMPLINGS)
        return sgt_fail(err, SGT_EUSAGE, "unknown sampling %d", (int)o->sampling);
    if (o->rank >= o->ranks)
        return sgt_fail(err, SGT_EUSAGE, "rank %" PRIu32 " of %" PRIu32 ": ranks count from 0",
                        o->rank, o->ranks);
    if (o->batch % o->ranks)
        return sgt_fail(err, SGT_EUSAGE,
                        "a batch of %" PRIu32 " rows does not divide among %" PRIu32 " ranks",
                        o->batch, o->ranks);
    if (o->vocab > 65536)
        return sgt_fail(err, SGT_EUSAGE,
                        "a vocabulary of %" PRIu32 ", which 16-bit ids cannot have", o->vocab);
    if (o->seq >= SGT_SHARD_MAX_TOKENS)
        return sgt_fail(err, SGT_EUSAGE,
                        "a sequence length of %" PRIu32 ", which no shard can have", o->seq);
    return SGT_OK;
}

/* Return the number that the mix takes for a shard: of tokens, of documents, or, for the first
 * shard of a packed set, of the rows of its first epoch. */
static uint64_t measure_shard(const sgt_loader *l, uint32_t part, uint32_t shard)
{
    if (l->o.sampling == SGT_SAMPLING_DOCUMENTS) return sgt_documents_in(&l->documents, shard);
    if (l->o.sampling == SGT_SAMPLING_PACKED)
        return shard == l->parts[part].first ? sgt_pack_epoch_rows(&l->packs[part]) : 0;
    return l->set.shards[shard].head.tokens;
}

/* Set up the order of rows over the shards of all sets. */
static int open_mix(sgt_loader *l, sgt_error *err)
{
    uint64_t *tokens = malloc(l->set.count * sizeof *tokens);
    sgt_mix_set *sets = calloc(l->part_count, sizeof *sets);
    int rc = SGT_OK;
    if (!tokens || !sets)
        rc = sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " shards: out of memory", l->set.count);
    for (uint32_t i = 0; rc == SGT_OK && i < l->part_count; i++) {
        const sgt_loader_part *p = &l->parts[i];
        for (uint32_t s = p->first; s < p->first + p->shards; s++)
            tokens[s] = measure_shard(l, i, s);
        sets[i] = (sgt_mix_set){p->weight, tokens + p->first, p->shards};
    }
    if (rc == SGT_OK)
        rc = sgt_mix_init(&l->mix, l->o.sampling, l->o.seed, l->o.seq, sets, l->part_count, err);
    free(tokens);
    free(sets);
    return rc;
}

static int open_documents(sgt_loader *l, sgt_error *err)
{
    int rc = SGT_OK, rows = sgt_sampling_of_documents(l->o.sampling);
    for (uint32_t i = 0; (rows || l->o.documents) && i < l->part_count && rc == SGT_OK; i++) {
        const sgt_loader_part *p = &l->parts[i];
        rc = sgt_documents_find(&l->documents, &l->set, p->first, p->shards, rows ? p->path : NULL,
                                err);
    }
    if (rc < 0 || !rows) return rc;
    if (l->o.sampling == SGT_SAMPLING_PACKED) return sgt_loader_open_packs(l, err);
    if (!l->o.padded_by) l->o.pad = sgt_set_eot(&l->set, 0);
    if (l->o.pad < l->set.vocab) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE, "pad-id %" PRIu32 ": %s has ids below %" PRIu32, l->o.pad,
                    l->parts[0].path, l->set.vocab);
}

int sgt_loader_open(sgt_loader **out, const char *path, const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader *l = calloc(1, sizeof *l);
    if (!l) return sgt_fail_memory(err, "a loader");
    int rc;
    if (o) l->o = *o;
    if ((rc = verify(&l->o, err)) < 0 || (rc = sgt_loader_open_sets(l, path, err)) < 0) goto fail;
    l->o.split = NULL; /* owned by the caller */
    l->o.sets = NULL;
    if ((rc = open_documents(l, err)) < 0 || (rc = open_mix(l, err)) < 0) goto fail;
    for (uint32_t i = 0; l->packs && i < l->part_count; i++)
        l->packs[i].seed = l->mix.samplers[i].seed;
    sgt_reader_options ro = {.sampling = l->o.sampling,
                             .mix = &l->mix,
                             .seq = l->o.seq,
                             .windows = l->o.batch / l->o.ranks,
                             .notice = l->o.notice};
    l->rows = sgt_rows_best();
    l->ops = readers[l->o.reader];
    if ((rc = l->ops->open(&l->reader, &l->set, &ro, err)) < 0) goto fail;
    *out = l;
    return SGT_OK;
fail:
    sgt_loader_close(l);
    return rc;
}

int sgt_loader_open_data(sgt_loader **out, const char *text, const sgt_loader_options *o,
                         sgt_error *err)
{
    sgt_loader_set *sets;
    sgt_loader_options all = {0};
    if (o) all = *o;
    int rc = sgt_loader_sets_parse(&sets, &all.set_count, text, err);
    if (rc < 0) return rc;
    all.sets = sets;
    rc = sgt_loader_open(out, NULL, &all, err);
    sgt_loader_sets_free(sets);
    return rc;
}

void sgt_loader_close(sgt_loader *l)
{
    if (!l) return;
    if (l->reader) l->ops->close(l->reader);
    sgt_mix_free(&l->mix);
    sgt_documents_free(&l->documents);
    sgt_loader_close_packs(l);
    sgt_loader_close_sets(l);
    free(l);
}

/* ---- what it holds ---- */

void sgt_loader_get_info(const sgt_loader *l, sgt_loader_info *info)
{
    *info = (sgt_loader_info){.tokens = l->set.tokens,
                              .shards = l->set.count,
                              .skipped = l->set.skipped,
                              .windows_per_epoch = l->mix.windows,
                              .batch = l->o.batch,
                              .seq = l->o.seq,
                              .vocab = l->set.vocab,
                              .local_batch = l->o.batch / l->o.ranks,
                              .padded = l->o.sampling == SGT_SAMPLING_DOCUMENTS,
                              .hash = l->set.hash,
                              .sets = l->part_count,
                              .documents = l->documents.unlisted_count ? 0 : l->documents.count,
                              .reader = l->o.reader,
                              .reader_detail = l->ops->detail(l->reader)};
}

sgt_window sgt_loader_find_document(const sgt_loader *l, sgt_window w)
{
    const sgt_loader_part *p = &l->parts[sgt_mix_set_of(&l->mix, w.shard)];
    return sgt_documents_window(&l->documents, &l->set, p->first + p->shards, &w, l->o.seq + 1);
}

void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset)
{
    sgt_window w = l->packs ? sgt_loader_draw_packed(l, row) : sgt_mix_window(&l->mix, NULL, row);
    if (l->o.sampling == SGT_SAMPLING_DOCUMENTS) w = sgt_loader_find_document(l, w);
    *shard = w.shard;
    *offset = w.offset;
}

uint64_t sgt_loader_fingerprint(const sgt_loader *l)
{
    const sgt_set_shard *marked = sgt_set_marked(&l->set);
    return marked ? marked->head.fingerprint : 0;
}

const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard)
{
    return shard < l->set.count ? l->set.shards[shard].path : NULL;
}

/* ---- resuming ---- */

void sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *state)
{
    *state = (sgt_loader_state){.rows = next * l->o.batch,
                                .hash = l->set.hash,
                                .tokens = l->set.tokens,
                                .seed = l->o.seed,
                                .sampling = l->o.sampling,
                                .seq = l->o.seq,
                                .pad = l->o.sampling == SGT_SAMPLING_DOCUMENTS ? l->o.pad : 0};
}

typedef struct differences {
    char text[512];
    size_t used;
} differences;

SGT_PRINTF(2, 3) static void differ(differences *d, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    d->used +=
        (size_t)snprintf(d->text + d->used, sizeof d->text - d->used, "%s", d->used ? "; " : "");
    d->used += (size_t)vsnprintf(d->text + d->used, sizeof d->text - d->used, fmt, args);
    va_end(args);
}

int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *state, uint64_t *next,
                      sgt_error *err)
{
    differences d = {0};
    sgt_loader_state now;
    sgt_loader_get_state(l, 0, &now);
    /* Count the tokens too: another split may have the same hash, and the tokens also change with
     * the shards left out as too short. */
    if (now.hash != state->hash ||
        (now.tokens != state->tokens && now.seq == state->seq && now.sampling == state->sampling))
        differ(&d,
               "the data are others, %016" PRIx64 " of %" PRIu64 " tokens and were %016" PRIx64
               " of %" PRIu64,
               now.hash, now.tokens, state->hash, state->tokens);
    if (now.sampling != state->sampling)
        differ(&d, "the sampling is %s and was %s", sgt_sampling_name(now.sampling),
               sgt_sampling_name(state->sampling));
    if (now.seed != state->seed)
        differ(&d, "the seed is %" PRIu64 " and was %" PRIu64, now.seed, state->seed);
    if (now.seq != state->seq)
        differ(&d, "the sequence length is %" PRIu32 " and was %" PRIu32, now.seq, state->seq);
    if (now.pad != state->pad && now.sampling == state->sampling)
        differ(&d, "the padding is %" PRIu32 " and was %" PRIu32, now.pad, state->pad);
    if (state->rows % l->o.batch)
        differ(&d,
               "%" PRIu64 " rows were drawn, which is not a whole number of batches of %" PRIu32,
               state->rows, l->o.batch);
    if (d.used)
        return sgt_fail(err, SGT_EUSAGE, "the saved position is of another run: %s", d.text);
    *next = state->rows / l->o.batch;
    return SGT_OK;
}
