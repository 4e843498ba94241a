/* loader.c: open a loader, an immutable handle that holds the sets, the order of the rows and the
 * reader. This file also contains the names of readers and samplings, the parser of --data, and the
 * functions that save and resume the position of a run. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "loader/base/search.h"
#include "loader/handle.h"

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

/* ---- the parser of --data ---- */

/* Parse `part`, one element of the comma-separated list `text`, into *set. It is "DIR" or
 * "DIR:WEIGHT". The colon before a weight is overwritten with a NUL, so that `part` becomes the
 * path. */
static int parse_part(sgt_loader_set *set, char *part, const char *text, sgt_error *err)
{
    char *colon = strrchr(part, ':'), *end = NULL;
    set->path = part;
    if (!*part)
        return sgt_fail(err, SGT_EUSAGE, "%s: the path of a set is empty (commas separate sets)",
                        text);
    if (!colon || access(part, F_OK) == 0) return SGT_OK;
    double weight = strtod(colon + 1, &end);
    /* the colon is part of the path, because the text after it is not a number */
    if (end == colon + 1 || *end) return SGT_OK;
    if (colon == part)
        return sgt_fail(err, SGT_EUSAGE, "%s: there is no path before the weight", part);
    if (!sgt_mix_weight(weight))
        return sgt_fail(err, SGT_EUSAGE, "%s: the weight must be a number from %g to %g", part,
                        SGT_MIX_LEAST, SGT_MIX_MOST);
    set->weight = weight;
    *colon = '\0';
    return SGT_OK;
}

/* Check that there are at most SGT_MIX_SETS sets, that every weight is in range, and that either
 * all sets have a weight or none has. */
static int check_sets(const sgt_loader_set *sets, uint32_t n, sgt_error *err)
{
    if (!sets)
        return sgt_fail(err, SGT_EUSAGE,
                        "sgt_loader_options.sets is NULL, but set_count is %" PRIu32, n);
    if (n > SGT_MIX_SETS)
        return sgt_fail(err, SGT_EUSAGE, "%" PRIu32 " sets: at most %u can be mixed", n,
                        SGT_MIX_SETS);
    for (uint32_t i = 0; i < n; i++) {
        if (!sets[i].path) return sgt_fail(err, SGT_EUSAGE, "set %" PRIu32 " has no path", i);
        if (sets[i].weight != 0 && !sgt_mix_weight(sets[i].weight))
            return sgt_fail(err, SGT_EUSAGE, "%s:%g: the weight must be a number from %g to %g",
                            sets[i].path, sets[i].weight, SGT_MIX_LEAST, SGT_MIX_MOST);
        if ((sets[i].weight != 0) != (sets[0].weight != 0))
            return sgt_fail(err, SGT_EUSAGE,
                            "%s has %s weight, but %s has %s (give every set a weight, or none)",
                            sets[0].path, sets[0].weight != 0 ? "a" : "no", sets[i].path,
                            sets[0].weight != 0 ? "none" : "one");
    }
    return SGT_OK;
}

int sgt_loader_sets_parse(sgt_loader_set **sets, uint32_t *count, const char *text, sgt_error *err)
{
    size_t bytes = strlen(text) + 1;
    int whole = access(text, F_OK) == 0;
    uint32_t n = 1;
    for (const char *p = text; *p && !whole; p++) n += *p == ',';
    /* allocate a single block for the list of sets and, after it, a copy of the text, which holds
     * the paths of the sets */
    sgt_loader_set *got = calloc(1, n * sizeof *got + bytes);
    if (!got) return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " sets: out of memory", n);
    char *part = memcpy(got + n, text, bytes);
    int rc = SGT_OK;
    for (uint32_t i = 0; i < n && rc == SGT_OK; i++) {
        char *comma = whole ? NULL : strchr(part, ',');
        if (comma) *comma = '\0';
        rc = parse_part(&got[i], part, text, err);
        if (comma) part = comma + 1;
    }
    if (rc == SGT_OK) rc = check_sets(got, n, err);
    if (rc < 0) {
        free(got);
        return rc;
    }
    *sets = got;
    *count = n;
    return SGT_OK;
}

/* ---- opening the sets ----
 *
 * The shards of all sets are in one list, l->set. */

static int open_set(sgt_loader *l, const sgt_loader_set *from, sgt_error *err)
{
    sgt_set *set = &l->set;
    sgt_loader_set_info *p = &l->sets[l->set_count];
    uint64_t tokens = set->tokens;
    uint32_t skipped = set->skipped;
    if (!(p->path = strdup(from->path))) return sgt_fail_memory(err, from->path);
    l->set_count++;
    int rc = sgt_set_open(set, from->path, &l->o, err);
    for (uint32_t i = set->first; i < set->count; i++) set->shards[i].set = l->set_count - 1;
    p->weight = from->weight;
    p->tokens = set->tokens - tokens;
    p->hash = set->hash;
    p->first_shard = set->first;
    p->shards = set->count - set->first;
    p->skipped = set->skipped - skipped;
    return rc;
}

/* Reject two sets that are the same folder: its windows would be drawn twice as often as the user
 * intended. */
static int all_different(const sgt_loader *l, sgt_error *err)
{
    for (uint32_t i = 0; i < l->set_count; i++)
        for (uint32_t j = 0; j < i; j++) {
            const sgt_loader_set_info *p = &l->sets[i], *q = &l->sets[j];
            const struct stat *a = &l->set.shards[p->first_shard].file,
                              *b = &l->set.shards[q->first_shard].file;
            if (a->st_dev == b->st_dev && a->st_ino == b->st_ino && p->shards == q->shards)
                return sgt_fail(
                    err, SGT_EUSAGE,
                    "%s: the same set as %s (to draw more of it, give it a larger weight)", p->path,
                    q->path);
        }
    return SGT_OK;
}

/* Fill in l->set and l->sets from the string l->o.data or from the list l->o.sets. */
static int open_sets(sgt_loader *l, sgt_error *err)
{
    sgt_loader_set *parsed = NULL;
    uint32_t n = l->o.set_count;
    if (!l->o.data == !n)
        return sgt_fail(err, SGT_EUSAGE, "sgt_loader_options: %s (set exactly one of them)",
                        n ? "data and sets are both set" : "neither data nor sets is set");
    int rc = n ? check_sets(l->o.sets, n, err) : sgt_loader_sets_parse(&parsed, &n, l->o.data, err);
    if (rc < 0) return rc;
    assert(n); /* `data` names at least one set */
    const sgt_loader_set *sets = parsed ? parsed : l->o.sets;
    if (!(l->sets = calloc(n, sizeof *l->sets)))
        rc = sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " sets: out of memory", n);
    for (uint32_t i = 0; i < n && rc == SGT_OK; i++) rc = open_set(l, &sets[i], err);
    free(parsed);
    if (rc == SGT_OK && n > 1) rc = all_different(l, err);
    assert(rc < 0 || l->set_count == n);
    return rc;
}

/* ---- packed rows ---- */

/* Return a number that identifies a document for sgt_pack: the index of its shard in the upper 32
 * bits, and the index in the shard of its first token in the lower 32 bits. (documents.c rejects
 * shards whose token indices need more than 32 bits.) */
static uint64_t pack_at(uint32_t shard, uint64_t offset) { return (uint64_t)shard << 32 | offset; }

sgt_window sgt_loader_packed_window(const sgt_pack_piece *document)
{
    return (sgt_window){.shard = (uint32_t)(document->place >> 32),
                        .offset = (uint32_t)document->place,
                        .tokens = document->tokens};
}

/* Set *place to the number that identifies document n (see pack_at), and *tokens to the length of
 * this document. n is an index into the documents of all sets. */
static void list_document(void *ctx, uint64_t n, uint64_t *place, uint64_t *tokens)
{
    const sgt_loader *l = ctx;
    const uint64_t *before = l->documents.before;
    uint32_t shard = (uint32_t)sgt_last_up_to(before, 1, l->set.count, n);
    sgt_window w = {.shard = shard, .offset = n - before[shard]};
    w = sgt_documents_window(&l->documents, &l->set, &w, UINT32_MAX);
    *place = pack_at(w.shard, w.offset);
    *tokens = w.tokens;
}

int sgt_loader_check_beginning(const sgt_loader *l, const sgt_window *w, uint32_t id,
                               sgt_error *err)
{
    uint32_t eot = l->set.shards[w->shard].eot;
    if (id == eot) return SGT_OK;
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: token %" PRIu64 ": this document begins with id %" PRIu32
                    ", but for packed rows it must begin with the end-of-text id, %" PRIu32
                    " (use a different sampling)",
                    l->set.shards[w->shard].path, w->offset, id, eot);
}

/* Check that a document of a set begins with the end-of-text id, as packed rows require. In data
 * made for other training programs, this id may instead be at the end of each document. */
static int check_beginning(const sgt_loader *l, const sgt_pack *p, sgt_error *err)
{
    /* Check one of the longest documents. A document of a single token would prove nothing, because
     * its only token is both its first and its last. */
    sgt_pack_piece document = {.place = p->places[p->first[p->most]]};
    sgt_window w = sgt_loader_packed_window(&document);
    const sgt_set_shard *h = &l->set.shards[w.shard];
    const size_t width = l->set.width;
    uint32_t id = 0;
    int fd = sgt_set_open_shard(&l->set, w.shard, err);
    if (fd < 0) return fd;
    int rc = sgt_pread_all(fd, &id, width, h->head.data + width * w.offset, h->path, err);
    close(fd);
    return rc < 0 ? rc : sgt_loader_check_beginning(l, &w, id, err);
}

/* Make the plan of each set, which assigns the documents of the set to packed rows, from
 * l->documents. Free l->documents, even on failure. The caller sets the seeds of the plans
 * later. */
static int open_packs(sgt_loader *l, sgt_error *err)
{
    int rc = SGT_OK;
    l->packs = calloc(l->set_count, sizeof *l->packs);
    if (!l->packs) rc = sgt_fail_memory(err, l->sets[0].path);
    for (uint32_t i = 0; i < l->set_count && rc == SGT_OK; i++) {
        const sgt_loader_set_info *p = &l->sets[i];
        const uint64_t *before = l->documents.before + p->first_shard;
        sgt_pack_source from = {before[p->shards] - before[0], list_document, l, before[0]};
        rc = sgt_pack_init(&l->packs[i], l->o.seq, &from, p->path, err);
        if (rc == SGT_OK) rc = check_beginning(l, &l->packs[i], err);
    }
    sgt_documents_free(&l->documents);
    return rc;
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
        return sgt_fail(err, SGT_EUSAGE,
                        "rank %" PRIu32 " of %" PRIu32
                        ": must be below the number of ranks (ranks count from 0)",
                        o->rank, o->ranks);
    if (o->batch % o->ranks)
        return sgt_fail(err, SGT_EUSAGE,
                        "a batch of %" PRIu32 " rows cannot be divided evenly among %" PRIu32
                        " ranks",
                        o->batch, o->ranks);
    if (o->vocab > SGT_MOST_IDS)
        return sgt_fail(err, SGT_EUSAGE,
                        "a vocabulary of %" PRIu32 " ids: at most %" PRIu32 " are supported",
                        o->vocab, SGT_MOST_IDS);
    if (o->raw && o->raw != 16 && o->raw != 32)
        return sgt_fail(err, SGT_EUSAGE,
                        "raw %d: must be 16 or 32, the bits of an id in files without a header",
                        o->raw);
    if (o->seq >= SGT_SHARD_MAX_TOKENS)
        return sgt_fail(err, SGT_EUSAGE,
                        "a sequence length of %" PRIu32
                        " is too large: no shard can have that many tokens",
                        o->seq);
    return SGT_OK;
}

/* Return the size of a shard in the unit that sgt_mix_init expects: in documents for sampling
 * `documents`, in rows for `packed`, otherwise in tokens. A packed row may have documents from
 * several shards, so it belongs to the set rather than to a shard. Therefore, the first shard of a
 * set has as its size the number of rows in the set's first epoch, and the other shards have size
 * 0. */
static uint64_t measure_shard(const sgt_loader *l, uint32_t shard)
{
    uint32_t set = sgt_loader_set_of(l, shard);
    const uint64_t *before = l->documents.before;
    if (l->o.sampling == SGT_SAMPLING_DOCUMENTS) return before[shard + 1] - before[shard];
    if (l->o.sampling == SGT_SAMPLING_PACKED)
        return shard == l->sets[set].first_shard ? sgt_pack_epoch_rows(&l->packs[set]) : 0;
    return l->set.shards[shard].head.tokens;
}

/* Set up l->mix, which determines the order of the rows of all sets. If there are several sets,
 * also set l->set.hash to a hash of the sets' hashes and of their shares of the rows. Weights are
 * not hashed, because different weights can give the same rows: for example, 1:2 and 2:4 do. */
static int open_mix(sgt_loader *l, sgt_error *err)
{
    uint64_t words[SGT_MIX_SETS][2], *tokens = malloc(l->set.count * sizeof *tokens);
    if (!tokens)
        return sgt_fail(err, SGT_ENOMEM, "%" PRIu32 " shards: out of memory", l->set.count);
    for (uint32_t i = 0; i < l->set.count; i++) tokens[i] = measure_shard(l, i);
    int rc = sgt_mix_init(&l->mix, &l->o, l->sets, l->set_count, tokens, err);
    free(tokens);
    const uint64_t *shares = l->mix.shares_before;
    for (uint32_t i = 0; i < l->mix.sets; i++) {
        words[i][0] = l->sets[i].hash;
        words[i][1] = l->sets[i].weight != 0 ? shares[i + 1] - shares[i] : 0;
    }
    if (l->mix.sets > 1) l->set.hash = XXH3_64bits(words, l->mix.sets * sizeof *words);
    return rc;
}

static int open_documents(sgt_loader *l, sgt_error *err)
{
    int rc = SGT_OK, rows = sgt_sampling_of_documents(l->o.sampling),
        packed = l->o.sampling == SGT_SAMPLING_PACKED;
    if (rows || l->o.documents) rc = sgt_documents_find(&l->documents, &l->set, rows, err);
    for (uint32_t i = 0; rows && i < l->set_count && rc == SGT_OK; i++) {
        const sgt_loader_set_info *p = &l->sets[i];
        const uint64_t *before = l->documents.before + p->first_shard;
        const uint32_t eot = l->set.shards[p->first_shard].eot;
        if (before[p->shards] == before[0])
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: no documents found: no .idx file lists one, and no token is the "
                          "end-of-text id %" PRIu32 " (other samplings need no documents)",
                          p->path, eot);
        else if ((packed || !l->o.padded_by) && eot == SGT_NO_ID)
            rc = sgt_fail(err, SGT_EFORMAT, "%s: no header states the end-of-text id, but %s",
                          p->path,
                          packed ? "packed rows need it (use a different sampling)"
                                 : "rows are padded with it (set pad-id)");
    }
    if (rc < 0 || !rows) return rc;
    if (packed) return open_packs(l, err);
    if (!l->o.padded_by) l->o.pad = l->set.shards[0].eot;
    if (l->o.pad < l->set.vocab) return SGT_OK;
    return sgt_fail(err, SGT_EUSAGE,
                    "pad-id %" PRIu32 ": must be below %" PRIu32 ", like all ids of %s", l->o.pad,
                    l->set.vocab, l->sets[0].path);
}

/* Open the reader that the options name. If this machine does not support it, open the reader
 * `mmap` instead. */
static int open_reader(sgt_loader *l, sgt_error *err)
{
    const char *remark = NULL, *name = sgt_reader_name(l->o.reader);
    sgt_error why;
    l->ops = readers[l->o.reader];
    int rc = l->ops->open(&l->reader, &remark, &l->set, &l->o, &l->mix, &why);
    if (rc == SGT_EUNSUPPORTED) remark = why.text;
    snprintf(l->detail, sizeof l->detail, "%s%s%s%.200s%s", name, remark ? " (" : "",
             rc < 0 ? "mmap: " : "", remark ? remark : "", remark ? ")" : "");
    if (rc != SGT_EUNSUPPORTED) return rc < 0 ? sgt_fail(err, rc, "%s", why.text) : rc;
    sgt_say(&l->o.notice, "%s: reading with mmap instead", remark);
    l->ops = &sgt_read_mmap;
    return l->ops->open(&l->reader, &remark, &l->set, &l->o, &l->mix, err);
}

/* Fill in l->info. */
static void fill_info(sgt_loader *l)
{
    const sgt_set_shard *marked = sgt_set_marked(&l->set), *first = &l->set.shards[0];
    int eot_known = first->head.revision || first->head.vocab;
    l->info = (sgt_loader_info){.size = sizeof l->info,
                                .tokens = l->set.tokens,
                                .shards = l->set.count,
                                .skipped = l->set.skipped,
                                .windows_per_epoch = l->mix.windows,
                                .batch = l->o.batch,
                                .seq = l->o.seq,
                                .vocab = l->set.vocab,
                                .local_batch = l->o.batch / l->o.ranks,
                                .padded = l->o.sampling == SGT_SAMPLING_DOCUMENTS,
                                .set_count = l->set_count,
                                .sets = l->sets,
                                .hash = l->set.hash,
                                .fingerprint = marked ? marked->head.fingerprint : 0,
                                .eot = eot_known ? (int64_t)first->head.eot : -1,
                                .documents = l->documents.unlisted_count ? 0 : l->documents.count,
                                .reader_detail = l->detail};
    for (uint32_t i = 0; l->packs && i < l->set_count; i++) {
        l->info.packed_tokens += l->packs[i].tokens;
        l->info.cropped += l->packs[i].tokens - l->packs[i].kept;
    }
}

int sgt_loader_open(sgt_loader **out, const sgt_loader_options *o, sgt_error *err)
{
    sgt_loader *l = calloc(1, sizeof *l);
    if (!l) return sgt_fail_memory(err, "a loader");
    int rc = sgt_struct_read(&l->o, sizeof l->o, o, "sgt_loader_options", err);
    if (rc < 0 || (rc = verify(&l->o, err)) < 0 || (rc = open_sets(l, err)) < 0) goto fail;
    l->o.data = l->o.split = NULL; /* the caller owns these strings */
    l->o.sets = NULL;
    if ((rc = open_documents(l, err)) < 0 || (rc = open_mix(l, err)) < 0) goto fail;
    for (uint32_t i = 0; l->packs && i < l->set_count; i++)
        l->packs[i].seed = l->mix.samplers[i].seed;
    l->rows = sgt_rows_best();
    if ((rc = open_reader(l, err)) < 0) goto fail;
    fill_info(l);
    *out = l;
    return SGT_OK;
fail:
    sgt_loader_close(l);
    return rc;
}

void sgt_loader_close(sgt_loader *l)
{
    if (!l) return;
    if (l->reader) l->ops->close(l->reader);
    sgt_mix_free(&l->mix);
    sgt_documents_free(&l->documents);
    for (uint32_t i = 0; i < l->set_count; i++) {
        if (l->packs) sgt_pack_free(&l->packs[i]);
        free(l->sets[i].path);
    }
    free(l->packs);
    free(l->sets);
    sgt_set_close(&l->set);
    free(l);
}

/* ---- description of a loader ---- */

const sgt_loader_info *sgt_loader_get_info(const sgt_loader *l) { return &l->info; }

void sgt_loader_window(const sgt_loader *l, uint64_t row, uint32_t *shard, uint64_t *offset)
{
    sgt_window w = sgt_mix_window(&l->mix, row);
    sgt_pack_piece first;
    if (l->o.sampling == SGT_SAMPLING_DOCUMENTS)
        w = sgt_documents_window(&l->documents, &l->set, &w, l->o.seq + 1);
    if (l->packs) {
        sgt_pack_row(&l->packs[sgt_loader_set_of(l, w.shard)], NULL, w.offset, &first, 1);
        w = sgt_loader_packed_window(&first);
    }
    *shard = w.shard;
    *offset = w.offset;
}

const char *sgt_loader_shard_path(const sgt_loader *l, uint32_t shard)
{
    return shard < l->set.count ? l->set.shards[shard].path : NULL;
}

uint64_t sgt_loader_drawn(const sgt_loader *l, uint32_t set, uint64_t rows)
{
    return sgt_mix_drawn(&l->mix, set, rows);
}

uint32_t sgt_loader_set_of(const sgt_loader *l, uint32_t shard) { return l->set.shards[shard].set; }

/* ---- resuming ---- */

static sgt_loader_state state_at(const sgt_loader *l, uint64_t next)
{
    return (sgt_loader_state){.rows = next * l->o.batch,
                              .hash = l->set.hash,
                              .tokens = l->set.tokens,
                              .seed = l->o.seed,
                              .sampling = l->o.sampling,
                              .seq = l->o.seq,
                              .pad = l->o.sampling == SGT_SAMPLING_DOCUMENTS ? l->o.pad : 0};
}

int sgt_loader_get_state(const sgt_loader *l, uint64_t next, sgt_loader_state *s, sgt_error *err)
{
    sgt_loader_state now;
    int rc = sgt_struct_read(&now, sizeof now, s, "sgt_loader_state", err);
    if (rc < 0) return rc;
    now = state_at(l, next);
    sgt_struct_write(s, &now, sizeof now);
    return SGT_OK;
}

int sgt_loader_resume(const sgt_loader *l, const sgt_loader_state *s, uint64_t *next,
                      sgt_error *err)
{
    char *text = NULL;
    size_t n;
    const sgt_loader_state now = state_at(l, 0);
    sgt_loader_state was;
    int rc = sgt_struct_read(&was, sizeof was, s, "sgt_loader_state", err);
    if (rc < 0) return rc;
    if (was.reserved)
        return sgt_fail(err, SGT_EUSAGE, "sgt_loader_state: reserved is %" PRIu32 ", not 0",
                        was.reserved);
    FILE *f = open_memstream(&text, &n);
    if (!f) return sgt_fail_memory(err, "the saved position");
    /* Equal hashes do not prove that the data is the same: two splits in one folder have the same
     * manifest and therefore the same hash. So also compare the number of tokens. It does not count
     * shards that are too short for a row, which depends on the row length and the sampling.
     * Therefore, compare it only if these two are unchanged. */
    if (now.hash != was.hash ||
        (now.tokens != was.tokens && now.seq == was.seq && now.sampling == was.sampling))
        fprintf(f,
                "; the data has hash %016" PRIx64 " and %" PRIu64 " tokens, but had %016" PRIx64
                " and %" PRIu64,
                now.hash, now.tokens, was.hash, was.tokens);
    if (now.sampling != was.sampling)
        fprintf(f, "; the sampling is %s but was %s", sgt_sampling_name(now.sampling),
                sgt_sampling_name(was.sampling));
    if (now.seed != was.seed)
        fprintf(f, "; the seed is %" PRIu64 " but was %" PRIu64, now.seed, was.seed);
    if (now.seq != was.seq)
        fprintf(f, "; the sequence length is %" PRIu32 " but was %" PRIu32, now.seq, was.seq);
    if (now.pad != was.pad && now.sampling == was.sampling)
        fprintf(f, "; the padding is %" PRIu32 " but was %" PRIu32, now.pad, was.pad);
    if (was.rows % l->o.batch)
        fprintf(
            f, "; %" PRIu64 " rows were drawn, which is not a multiple of the batch size, %" PRIu32,
            was.rows, l->o.batch);
    if (fclose(f) != 0) rc = sgt_fail_memory(err, "the saved position");
    else if (n)
        rc = sgt_fail(err, SGT_EUSAGE, "the saved position belongs to a different run: %s",
                      text + 2);
    else *next = was.rows / l->o.batch;
    free(text);
    return rc;
}
