/* packed.c: decompressing gzip or zstd gives the same text and the same error for any size of
 * output buffers, and also if a thread reads the file ahead. The text before damage that ends the
 * stream is the same, too. The sanitizer finds writes beyond the output and reads outside the
 * window. */
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tokenize/input/source.h"

/* maximum bytes of text that are checked, because some inputs expand to gigabytes */
enum { MOST = 1 << 14 };

typedef struct result {
    uint8_t text[MOST];
    size_t n;
    int rc, end;
} result;

/* Decompress f into output buffers of `out` bytes. ahead: a thread reads the file ahead. */
static void unpack(result *r, const sgt_corpus_file *f, size_t out, int ahead)
{
    sgt_source *s;
    sgt_error err;
    r->n = 0;
    r->end = 0;
    r->rc = sgt_source_open(&s, f, NULL, NULL, &err);
    must(r->rc == 0, "there is memory");
    if (ahead) sgt_source_ahead(s);
    while (!r->end && r->rc == 0 && r->n < MOST) {
        size_t room = MOST - r->n < out ? MOST - r->n : out, n = 0;
        /* allocate exactly the bytes needed, so that the sanitizer finds writes beyond them */
        scoped_memory uint8_t *to = malloc(room);
        must(to != NULL, "there is memory");
        r->rc = sgt_source_read(s, to, &n, room, &r->end, &err);
        must(n <= room, "it keeps to what it is given");
        must(r->rc < 0 || r->end || n == room, "it stops at the end or where the buffer is full");
        memcpy(r->text + r->n, to, n);
        r->n += n;
    }
    must(r->rc == 0 || (*err.text && err.code == r->rc), "a failure is said");
    sgt_source_close(s);
}

void fuzz_packed(const uint8_t *data, size_t size)
{
    static const size_t cuts[] = {1, 500, 3000, MOST};
    static result whole, parts;
    char path[40];
    struct stat st;
    const int fd = memfd_create("packed", 0);
    must(fd >= 0 && write(fd, data, size) == (ssize_t)size && fstat(fd, &st) == 0,
         "there is memory");
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    sgt_corpus_file f = {.path = path,
                         .name = path,
                         .size = size,
                         .mtime = st.st_mtim.tv_sec,
                         .nanoseconds = st.st_mtim.tv_nsec};
    for (int way = 0; way < 4; way++) {
        f.pack = way % 2 ? SGT_PACK_ZST : SGT_PACK_GZ;
        f.skip_bad = way / 2;
        unpack(&whole, &f, MOST, 0);
        for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
            unpack(&parts, &f, cuts[i], i == 3);
            size_t n = whole.n < parts.n ? whole.n : parts.n;
            must(!memcmp(whole.text, parts.text, n), "the text is the same");
            /* the text beyond MOST is not compared */
            if (whole.n == MOST || parts.n == MOST) continue;
            must(whole.rc == parts.rc, "it fails in every cut or in none");
            must(whole.n == parts.n, "it ends at the same place");
            must(!f.skip_bad || whole.rc != SGT_EFORMAT, "damage ends it");
        }
    }
    close(fd);
}
