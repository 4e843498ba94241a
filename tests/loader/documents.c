/* documents.c: draws document starts and tokens at random, and writes them as shards. */
#include "tests/loader/documents.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "loader/base/philox.h"
#include "tests/loader/batches.h"

uint32_t stream[MOST];
uint64_t first[SHARDS + 1], starts[MOST], documents;

static int begins(uint64_t at, unsigned mean)
{
    /* Documents begin at tokens 1 and 2. So token 0 is in no document, and token 1 is a document of
     * one token. A document begins at the first token of shard 4. */
    if (at < 3 || at == 40 || at == first[4]) return at != 0;
    if (at >= first[1] && at < first[3] + 5) return 0;
    if (at >= first[5]) return 0;
    return sgt_philox_u64(77, at, 0) % mean == 0;
}

static void make_stream(const uint64_t sizes[SHARDS], unsigned mean, unsigned later, int misleading)
{
    first[0] = documents = 0;
    for (int s = 0; s < SHARDS; s++) first[s + 1] = first[s] + sizes[s];
    cr_assert_leq(first[SHARDS], MOST);
    for (uint64_t i = 0; i < first[SHARDS]; i++) {
        int is = begins(i, i < 1000 ? mean : later);
        int marked = misleading ? i % 5 == 0 : is;
        stream[i] = marked ? EOT : (uint32_t)(sgt_philox_u64(78, i, 0) % EOT);
        if (is) starts[documents++] = i;
    }
    starts[documents] = first[SHARDS];
}

void put_documents_index(const char *path, uint32_t s)
{
    uint64_t at[MOST];
    size_t n = 0;
    for (uint64_t d = 0; d < documents; d++)
        if (starts[d] >= first[s] && starts[d] < first[s + 1]) at[n++] = starts[d] - first[s];
    put_bytes(path, at, 8 * n);
}

void put_documents(const char *name, const uint64_t sizes[SHARDS], unsigned mean, unsigned later,
                   int indexed)
{
    make_stream(sizes, mean, later, indexed == 2);
    for (uint32_t s = 0; s < SHARDS; s++) {
        put_ids(shard_path(name, s, "bin"), stream + first[s], sizes[s]);
        if (indexed) put_documents_index(shard_path(name, s, "idx"), s);
    }
}

/* Check what a batch says about input i. It belongs to the row's document number `id`, and is
 * `position` inputs behind that document's first one, which is number `from` of its row. */
static void check_input(const sgt_loader_batch *b, uint32_t i, uint32_t from, uint32_t position,
                        int32_t id)
{
    cr_assert_eq(b->begins[i], (int32_t)from, "input %u", i);
    if (!b->positions) return;
    cr_assert_eq(b->positions[i], (int32_t)position, "input %u", i);
    cr_assert_eq(b->ids[i], id, "input %u", i);
}

static void check_row(const sgt_loader *l, const sgt_loader_batch *b, uint32_t r,
                      const row_model *m, const int32_t *in, const int32_t *to)
{
    uint32_t T = l->o.seq, k = l->o.documents ? b->row_starts[r] : 0, from = 0;
    int32_t document = 0;
    cr_assert_eq(b->lengths ? b->lengths[r] : T + 1, m->tokens);
    for (uint32_t t = 0; t <= T; t++) {
        int32_t id = (int32_t)m->ids[t];
        cr_assert_eq(id_of(b, b->inputs, r * (T + 1) + t), id, "row %u, token %u", r, t);
        if (t < T) cr_assert_eq(in[r * T + t], id);
        if (t > 0) cr_assert_eq(to[r * T + t - 1], t < m->tokens ? id : SGT_IGNORED);
        if (!l->o.documents) continue;
        if (m->begins[t]) cr_assert_eq(b->starts[k++], t);
        if (m->begins[t] && t) from = t, document++;
        if (t < m->tokens && t < T) check_input(b, r * T + t, from, t - from, document);
        else if (t < T) check_input(b, r * T + t, t, 0, -1); /* padding */
    }
    if (l->o.documents) cr_assert_eq(k, b->row_starts[r + 1]);
}

static void check_batch_of(const sgt_loader *l, sgt_cursor *c, uint64_t k, make_row *make,
                           const void *plan)
{
    uint32_t T = l->o.seq, n = l->o.batch / l->o.ranks;
    scoped_memory int32_t *rows = malloc(4ul * n * (T + 1)), *in = malloc(8ul * n * T);
    sgt_loader_batch b;
    row_model m;
    must(read_batch(l, c, k, SGT_OUTPUT_I32, in, &b, why));
    must(read_batch(l, c, k, output_of_rows(l), rows, &b, why));
    cr_assert_eq(b.lengths != NULL, l->o.sampling == SGT_SAMPLING_DOCUMENTS);
    cr_assert_eq(b.positions && b.ids, l->o.documents == 1);
    if (l->o.documents) cr_assert_eq(b.row_starts[0], 0);
    for (uint32_t r = 0; r < n; r++) {
        uint64_t row = k * l->o.batch + l->o.rank + (uint64_t)r * l->o.ranks, at;
        uint32_t shard;
        make(&m, l, plan, row);
        sgt_loader_window(l, row, &shard, &at);
        cr_assert_eq(first[shard % SHARDS] + at, m.start);
        check_row(l, &b, r, &m, in, in + (size_t)n * T);
    }
}

void check_rows(const sgt_loader *l, make_row *make, const void *plan)
{
    scoped(sgt_cursor) *c = open_cursor(l);
    for (uint64_t k = 0; k < 40; k++) check_batch_of(l, c, k, make, plan);
    check_batch_of(l, c, 123456789, make, plan);
    for (uint64_t k = 90; k < 120; k += 5) check_batch_of(l, c, k, make, plan);
    check_batch_of(l, c, 0, make, plan);
}

void check_variants(set_check *check, sgt_sampling sampling)
{
    static const reader_fault faults[] = {{.most_bytes = 3}, {.ring_error = 1}};
    sgt_loader_options o = {
        .reader = SGT_READER_URING, .sampling = sampling, .batch = 200, .seq = 33};
    for (size_t i = 0; i < 2; i++) check("d", &o, &faults[i]);
    o = (sgt_loader_options){.sampling = sampling, .batch = 12, .seq = 16, .seed = 9};
    for (o.ranks = 1; o.ranks <= 6; o.ranks++)
        for (o.rank = 0; o.rank < o.ranks && 12 % o.ranks == 0; o.rank++) {
            o.reader = (sgt_reader)(o.rank % SGT_READERS);
            check("d", &o, NULL);
        }
}
