/* packed.c: unpacking gzip and zstd gives the same text and the same error, however input and
 * output are cut into buffers. The sanitizer finds writes past the output and reads outside the
 * window. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "tokenize/input/source.h"

/* most bytes of text that are checked, because some inputs unpack to gigabytes */
enum { MOST = 1 << 14 };

typedef struct result {
    uint8_t text[MOST];
    size_t n;
    int rc, inside;
} result;

/* Unpack `data`, from input buffers of `in` bytes into output buffers of `out` bytes. */
static void unpack(result *r, sgt_pack pack, const uint8_t *data, size_t size, size_t in,
                   size_t out)
{
    sgt_unpack *u;
    sgt_error err;
    must(sgt_unpack_new(&u, pack, "it", &err) == 0, "there is memory");
    r->n = 0;
    r->rc = 0;
    for (size_t at = 0, full = 0; (at < size || full) && r->rc == 0 && r->n < MOST;) {
        size_t n = size - at < in ? size - at : in, room = MOST - r->n < out ? MOST - r->n : out;
        /* allocate exactly the bytes needed, so that the sanitizer finds reads and writes beyond
         * them */
        scoped_memory uint8_t *from = malloc(n ? n : 1), *to = malloc(room);
        must(from && to, "there is memory");
        if (n) memcpy(from, data + at, n);
        sgt_unpack_io io = {.in = from, .in_size = n, .offset = at, .out = to, .out_size = room};
        r->rc = sgt_unpack_some(u, &io, &err);
        must(io.in_at <= n && io.out_at <= room, "it keeps to what it is given");
        must(r->rc < 0 || io.in_at == n || io.out_at == room,
             "it stops where one of the two is used up");
        memcpy(r->text + r->n, to, io.out_at);
        r->n += io.out_at;
        at += io.in_at;
        full = io.out_at == room; /* the output buffer is full, so the same input may give more */
    }
    r->inside = sgt_unpack_inside(u);
    must(r->rc == 0 || (*err.text && err.code == r->rc), "a failure is said");
    sgt_unpack_free(u);
}

void fuzz_packed(const uint8_t *data, size_t size)
{
    static const size_t cuts[][2] = {{1, 500}, {70, 3000}, {SIZE_MAX, 30}};
    static result whole, parts;
    for (int pack = SGT_PACK_GZ; pack <= SGT_PACK_ZST; pack++) {
        unpack(&whole, (sgt_pack)pack, data, size, SIZE_MAX, MOST);
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            unpack(&parts, (sgt_pack)pack, data, size, cuts[i][0], cuts[i][1]);
            size_t n = whole.n < parts.n ? whole.n : parts.n;
            must(!memcmp(whole.text, parts.text, n), "the text is the same");
            /* the text beyond MOST is not compared */
            if (whole.n == MOST || parts.n == MOST) continue;
            must(whole.rc == parts.rc, "it fails in every cut or in none");
            must(whole.rc < 0 || (whole.n == parts.n && whole.inside == parts.inside),
                 "it ends at the same place");
        }
    }
}
