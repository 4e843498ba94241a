/* shard.c: a shard of sgt or another program, with its .idx, is refused with a message of one line.
 * Otherwise it has as many tokens as its size says. For each sampling, all readers give the same
 * batches. The first two bytes of the input are the shard's length; the rest is the shard and its
 * .idx. */
#include "tests/fuzz/files.h"
#include "loader/sgt_loader.h"
#include "loader/shards/shard.h"

enum { SEQ = 3, ROWS = 2, BATCHES = 4 };

typedef struct drawn {
    int rc;
    uint16_t rows[BATCHES][ROWS * (SEQ + 1)];
} drawn;

static void draw(drawn *d, const char *path, sgt_reader reader, sgt_sampling sampling)
{
    const sgt_loader_options o = {
        .reader = reader, .sampling = sampling, .seq = SEQ, .batch = ROWS, .documents = 1};
    sgt_loader *l;
    sgt_cursor *c;
    sgt_error err;
    d->rc = sgt_loader_open(&l, path, &o, &err);
    if (d->rc < 0) {
        must_say(d->rc, &err);
        return;
    }
    must(sgt_cursor_open(&c, l, &err) == 0, "a cursor opens");
    for (uint64_t k = 0; k < BATCHES && d->rc == 0; k++) {
        d->rc = sgt_loader_batch(l, c, k * 1000003, d->rows[k], &err);
        const sgt_row_documents *at = sgt_cursor_documents(c);
        for (uint32_t i = d->rc < 0 ? UINT32_MAX : 0; i < at->first[ROWS]; i++)
            must(at->starts[i] <= SEQ, "a document begins within its row");
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
    must(h.data + 2 * h.tokens == size, "its tokens fill the file");
    must(h.vocab <= 65536 && (!h.vocab || h.eot < h.vocab), "its vocabulary is one of 16 bits");
    int rc = sgt_shard_verify(path, raw, 50257, NULL, NULL, &err);
    if (rc < 0) must_say(rc, &err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static drawn by[2];
    take_level();
    if (size < 2) return 0;
    size_t n = (size_t)data[0] << 8 | data[1];
    if (n > size - 2) n = size - 2;
    const char *path = put_file("train_000000.bin", data + 2, n);
    if (n < size - 2) put_file("train_000000.idx", data + 2 + n, size - 2 - n);
    else unlink(path_of("train_000000.idx"));
    for (int raw = -1; raw <= 1; raw++) check_header(path, raw, n);
    for (int s = 0; s < SGT_SAMPLINGS; s++) {
        draw(&by[0], path, SGT_READER_PRELOAD, (sgt_sampling)s);
        draw(&by[1], path, SGT_READER_MMAP, (sgt_sampling)s);
        /* readers may report an invalid id at different batches: preload checks all ids at open */
        must(by[0].rc < 0 || by[1].rc == 0, "what one reader takes the other does");
        must(by[0].rc < 0 || !memcmp(by[0].rows, by[1].rows, sizeof by[0].rows),
             "their rows are the same");
    }
    return 0;
}
