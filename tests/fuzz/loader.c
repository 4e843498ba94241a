/* loader.c: fuzz targets for the files that the loader reads, and for the order of rows. */
#include "tests/fuzz/fuzz.h"

#include "loader/sample/sampler.h"
#include "loader/sgt_loader.h"
#include "loader/shards/manifest.h"
#include "loader/shards/shard.h"

/* ---- manifest ---- */

static int same_text(const char *a, const char *b) { return a && b ? !strcmp(a, b) : a == b; }

static void check_shard(const sgt_manifest_shard *s, int foreign)
{
    must(*s->file && !strchr(s->file, '/') && strcmp(s->file, "..") && strcmp(s->file, "."),
         "a shard is in the folder");
    must(foreign || s->tokens <= SGT_SHARD_MAX_TOKENS, "a shard has tokens as a shard can have");
}

static void check_same(const sgt_manifest *a, const sgt_manifest *b)
{
    must(same_text(a->options, b->options) && same_text(a->invalid, b->invalid),
         "its JSON is the same");
    must(!strcmp(a->vocabulary, b->vocabulary) && a->fingerprint == b->fingerprint &&
             a->vocab == b->vocab && a->eot == b->eot,
         "its vocabulary is the same");
    must(a->tokens == b->tokens && a->documents == b->documents && a->bytes == b->bytes &&
             a->files == b->files && a->invalid_utf8 == b->invalid_utf8 &&
             a->bad_lines == b->bad_lines && a->duplicates == b->duplicates &&
             a->lone_surrogates == b->lone_surrogates,
         "its totals are the same");
    must(a->count == b->count, "there are as many shards");
    must(a->foreign == b->foreign && a->raw == b->raw, "its layout is the same");
    for (size_t i = 0; i < a->count; i++) {
        const sgt_manifest_shard *x = &a->shards[i], *y = &b->shards[i];
        must(!strcmp(x->file, y->file) && !strcmp(x->split, y->split) && x->tokens == y->tokens &&
                 x->documents == y->documents && x->xxh3 == y->xxh3,
             "a shard is the same");
    }
}

/* A manifest is refused with a message of one line, or its numbers are within bounds and it names
 * only files in its own folder. If it is written and read again, it is the same. */
void fuzz_manifest(const uint8_t *data, size_t size)
{
    sgt_manifest m = {0}, again = {0};
    sgt_error err;
    put_file("manifest.json", data, size);
    int rc = sgt_manifest_read(&m, own_folder, &err);
    if (refused(rc, &err)) return;
    for (size_t i = 0; i < m.count; i++) check_shard(&m.shards[i], m.foreign);
    must(sgt_manifest_write(&m, own_folder, &err) == 0, "what is read can be written");
    must(sgt_manifest_read(&again, own_folder, &err) == 0, "and read again");
    check_same(&m, &again);
    sgt_manifest_free(&m);
    sgt_manifest_free(&again);
}

/* ---- sampler ---- */

enum { SHARDS = 5, ROWS = 300, SMALL = 5000 };

static uint64_t take_number(const uint8_t **data, size_t *size, size_t bytes)
{
    uint64_t v = 0;
    for (size_t i = 0; i < bytes && *size; i++, ++*data, --*size) v = v << 8 | **data;
    return v;
}

/* Check that the permutation is a bijection. If n is small, check all n images. If it is large,
 * check that 64 neighbours have distinct images below n. */
static void check_permutation(uint64_t key, uint64_t n)
{
    static uint8_t seen[SMALL];
    sgt_permutation p;
    sgt_permutation_init(&p, key, n);
    if (n <= SMALL) memset(seen, 0, n);
    uint64_t images[64], from = n <= SMALL ? 0 : key % (n - 64), count = n <= SMALL ? n : 64;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t image = sgt_permute(&p, from + i);
        must(image < n, "an image is below n");
        if (n <= SMALL) {
            must(!seen[image]++, "no image comes twice");
            continue;
        }
        images[i] = image;
        for (uint64_t k = 0; k < i; k++)
            must(images[k] != image, "neighbours have images of their own");
    }
}

static int by_place(const void *a, const void *b)
{
    const sgt_window *x = a, *y = b;
    if (x->shard != y->shard) return x->shard < y->shard ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Check that the epoch whose first row is `first` has every window once. The windows of a shard
 * begin T tokens apart. */
static void check_epoch(const sgt_sampler *s, uint64_t first)
{
    static sgt_window w[SMALL];
    for (uint64_t i = 0; i < s->windows; i++) w[i] = sgt_sampler_window(s, NULL, first + i);
    qsort(w, s->windows, sizeof *w, by_place);
    uint64_t apart = s->sampling == SGT_SAMPLING_DOCUMENTS ? 1 : s->seq;
    for (uint64_t i = 1; i < s->windows; i++)
        must(w[i].shard != w[i - 1].shard || w[i].offset - w[i - 1].offset == apart,
             "an epoch has every window once");
}

static void check_rows(const sgt_sampler *s, const uint64_t *tokens, uint64_t row, uint64_t step)
{
    uint64_t rows[ROWS];
    sgt_window w[ROWS];
    sgt_sampler_memo memo = {0}, one = {0};
    int documents = s->sampling == SGT_SAMPLING_DOCUMENTS;
    for (uint64_t i = 0; i < ROWS; i++) rows[i] = row + i * step;
    sgt_sampler_windows(s, &memo, rows, ROWS, w);
    for (uint64_t i = 0; i < ROWS; i++) {
        sgt_window alone = sgt_sampler_window(s, i % 2 ? &one : NULL, rows[i]);
        must(alone.shard == w[i].shard && alone.offset == w[i].offset &&
                 alone.tokens == w[i].tokens,
             "one by one the same");
        must(w[i].shard < s->shards, "a window has a shard");
        must(w[i].tokens == (documents ? 0 : s->seq + 1), "it has T + 1 tokens");
        must(w[i].offset < tokens[w[i].shard] && tokens[w[i].shard] - w[i].offset >= w[i].tokens,
             "all of them in it");
    }
}

/* The permutation is a bijection of 0 .. n-1 for any n. Windows of every sampling lie in
 * their shards, and are the same whether they are computed one by one or many at a time. In
 * samplings without replacement, each window occurs once per epoch. */
void fuzz_sampler(const uint8_t *data, size_t size)
{
    sgt_sampler s;
    sgt_error err;
    uint64_t key = take_number(&data, &size, 8), n = take_number(&data, &size, 8), tokens[SHARDS],
             wide = take_number(&data, &size, 1);
    check_permutation(key, n % SMALL + 1);
    check_permutation(key, n >> 1 | 64);
    /* sampling `packed` has no windows */
    sgt_sampling sampling = (sgt_sampling)(take_number(&data, &size, 1) % SGT_SAMPLING_PACKED);
    uint32_t seq = (uint32_t)take_number(&data, &size, wide & 1 ? 3 : 1) + 1;
    for (int i = 0; i < SHARDS; i++) /* a shard may have more tokens than a file can hold */
        tokens[i] = take_number(&data, &size, wide & 2 ? 6 : 2) +
                    (sampling == SGT_SAMPLING_DOCUMENTS ? i == 0 : seq + 1);
    uint64_t row = take_number(&data, &size, 5), step = take_number(&data, &size, 1) + 1;
    if (sgt_sampler_init(&s, sampling, key, seq, tokens, SHARDS, &err) < 0) return;
    if (wide & 4) s.block_tokens = 3 * seq, s.pool_blocks = 2;
    check_rows(&s, tokens, row, step);
    if (s.windows <= SMALL && sampling != SGT_SAMPLING_RANDOM)
        check_epoch(&s, row / s.windows * s.windows);
    sgt_sampler_free(&s);
}

/* ---- shard ---- */

enum { SEQ = 3, BATCH_ROWS = 2, BATCHES = 4 };

typedef struct drawn {
    int rc;
    int32_t rows[BATCHES][BATCH_ROWS * (SEQ + 1)];
} drawn;

static void draw(drawn *d, const char *path, sgt_reader reader, sgt_sampling sampling)
{
    const sgt_loader_options o = {.size = sizeof o,
                                  .data = path,
                                  .reader = reader,
                                  .sampling = sampling,
                                  .seq = SEQ,
                                  .batch = BATCH_ROWS,
                                  .documents = 1};
    sgt_loader *l;
    sgt_cursor *c;
    sgt_error err;
    d->rc = sgt_loader_open(&l, &o, &err);
    if (d->rc < 0) {
        must_say(d->rc, &err);
        return;
    }
    must(sgt_cursor_open(&c, l, &err) == 0, "a cursor opens");
    for (uint64_t k = 0; k < BATCHES && d->rc == 0; k++) {
        d->rc = sgt_loader_read(l, c, k * 1000003, 1, SGT_OUTPUT_I32_ROWS, d->rows[k],
                                sizeof d->rows[k], &err);
        const sgt_loader_batch *b = sgt_cursor_batch(c);
        for (uint32_t i = d->rc < 0 ? UINT32_MAX : 0; i < b->row_starts[BATCH_ROWS]; i++)
            must(b->starts[i] <= SEQ, "a document begins within its row");
    }
    sgt_cursor_close(c);
    sgt_loader_close(l);
}

static void check_header(const char *path, int raw, size_t size)
{
    sgt_shard_header h;
    sgt_error err;
    int fd = sgt_shard_open(&h, path, raw, &err);
    if (fd < 0) {
        must_say(fd, &err);
        return;
    }
    close(fd);
    must(h.data + h.width * h.tokens == size, "its tokens fill the file");
    must(!h.vocab || (h.eot < h.vocab && h.width == sgt_id_width(h.vocab)),
         "its ids are as wide as its vocabulary needs");
    int rc = sgt_shard_verify(path, raw, 50257, NULL, NULL, &err);
    if (rc < 0) must_say(rc, &err);
}

/* A shard of sgt or another program, with its .idx, is refused with a message of one line.
 * Otherwise it has as many tokens as its size says. For each sampling, all readers give the same
 * batches. The first two bytes of the input are the shard's length; the rest is the shard and its
 * .idx. */
void fuzz_shard(const uint8_t *data, size_t size)
{
    static drawn by[2];
    if (size < 2) return;
    size_t n = (size_t)data[0] << 8 | data[1];
    if (n > size - 2) n = size - 2;
    const char *path = put_file("train_000000.bin", data + 2, n);
    if (n < size - 2) put_file("train_000000.idx", data + 2 + n, size - 2 - n);
    else unlink(path_of("train_000000.idx"));
    for (int raw = 0; raw <= 32; raw += 16) check_header(path, raw, n);
    check_header(path, -1, n);
    for (int s = 0; s < SGT_SAMPLINGS; s++) {
        draw(&by[0], path, SGT_READER_PRELOAD, (sgt_sampling)s);
        draw(&by[1], path, SGT_READER_MMAP, (sgt_sampling)s);
        /* readers may report an invalid id at different times: preload checks all ids when it
         * opens */
        must(by[0].rc < 0 || by[1].rc == 0, "what one reader takes the other does");
        must(by[0].rc < 0 || !memcmp(by[0].rows, by[1].rows, sizeof by[0].rows),
             "their rows are the same");
    }
}
