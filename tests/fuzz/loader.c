/* loader.c: fuzz targets for the files that the loader reads. */
#include "tests/fuzz/fuzz.h"

#include "loader/sgt_loader.h"
#include "loader/shards/manifest.h"
#include "loader/shards/shard.h"

/* ---- manifest ---- */

static void check_shard(const sgt_manifest_shard *s, int foreign)
{
    must(*s->file && !strchr(s->file, '/') && strcmp(s->file, "..") && strcmp(s->file, "."),
         "a shard is in the folder");
    must(foreign || s->tokens <= SGT_SHARD_MAX_TOKENS, "a shard has tokens as a shard can have");
}

/* Write m to manifest.json and return the file's text. */
static char *write_manifest(const sgt_manifest *m)
{
    sgt_error err;
    char *text;
    size_t n;
    must(sgt_manifest_write(m, own_folder, &err) == 0, "what is read can be written");
    must(sgt_file_get(&text, &n, path_of("manifest.json"), (size_t)1 << 24, &err) == 0,
         "and is there");
    return text;
}

/* A manifest is refused with a message of one line, or its numbers are within bounds and it names
 * only files in its own folder. If it is written, read and written again, its bytes are the same. */
void fuzz_manifest(const uint8_t *data, size_t size)
{
    sgt_manifest m = {0}, again = {0};
    sgt_error err;
    put_file("manifest.json", data, size);
    int rc = sgt_manifest_read(&m, own_folder, &err);
    if (refused(rc, &err)) return;
    for (size_t i = 0; i < m.count; i++) check_shard(&m.shards[i], m.foreign);
    scoped_memory char *text = write_manifest(&m), *same = NULL;
    must(sgt_manifest_read(&again, own_folder, &err) == 0, "and read again");
    same = write_manifest(&again);
    must(!strcmp(text, same), "it is the same");
    sgt_manifest_free(&m);
    sgt_manifest_free(&again);
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
