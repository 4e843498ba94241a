/* bench_parquet.c: how fast rows of Parquet become documents, beside the bare unpacking of the same
 * pages by the same library. One thread; make bench-parquet ARGS='FILE...', with the column in
 * $FIELD. Reading the file is not counted. Both are timed in turn, by the thread's CPU time, and
 * medians are printed, and their ratio. Pages that are not packed are decoded where they lie; what
 * they stand beside is a memcpy. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "loader/base/file.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/parquet_format.h"

#define ROUNDS 9
#define PIECE ((size_t)256 << 10)
#define MOST ((size_t)4 << 30) /* bytes of a file */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Unpack every page of the column into `out`. Return seconds; *bytes: unpacked. */
static double unpack_all(const sgt_parquet_meta *m, const uint8_t *file, uint8_t *out,
                         double *bytes)
{
    double spent = 0;
    *bytes = 0;
    for (size_t g = 0; g < m->count; g++) {
        for (uint64_t at = m->groups[g].at; at < m->groups[g].end;) {
            sgt_parquet_head h;
            int more;
            if (sgt_parquet_head_read(&h, file + at, (size_t)(m->groups[g].end - at), &more))
                return -1;
            const uint8_t *page = file + at + h.size + h.levels;
            int codec = h.kind == SGT_PARQUET_DATA2 && !h.is_packed ? SGT_PARQUET_PLAIN
                                                                    : m->groups[g].codec;
            double from = now();
            if (sgt_parquet_unpack(codec, page, h.packed - h.levels, out, h.unpacked - h.levels))
                return -1;
            spent += now() - from;
            *bytes += (double)h.unpacked;
            at += h.size + h.packed;
        }
    }
    return spent;
}

/* Return the seconds that unfolding takes, without the reading of pages. */
static double decode_all(const sgt_corpus *c, const char *field, sgt_unit *u)
{
    sgt_error err;
    sgt_text_feed *f;
    sgt_text_feed_options o = {.corpus = c, .piece = PIECE, .field = field};
    sgt_tokenize_options options = {.threads = 1, .field = field, .skip_bad = 1};
    double spent = 0;
    int rc = sgt_text_feed_open(&f, &o, &err);
    if (rc < 0) return -1;
    while ((rc = sgt_text_feed_next(f, u, &err)) == 0) {
        double from = now();
        if (sgt_unit_unfold(u, c, &options, &(sgt_literal){0}, &err) < 0) break;
        spent += now() - from;
        sgt_unit_trim(u, (size_t)1 << 20); /* as the pipeline does */
    }
    sgt_text_feed_close(f);
    return rc == 1 ? spent : -1;
}

static int measure(const char *path, const char *field, const sgt_corpus *c)
{
    sgt_error err;
    sgt_parquet_meta m;
    sgt_unit u;
    char *file;
    size_t n;
    uint32_t length;
    uint8_t *out = malloc((size_t)64 << 20);
    double bare[ROUNDS], whole[ROUNDS], bytes = 0;
    if (!out || sgt_file_get(&file, &n, path, MOST, &err) < 0 || n < 12) return -1;
    memcpy(&length, file + n - 8, sizeof length);
    const sgt_parquet_where w = {path, n, n - 8 - length, field, 0};
    if (sgt_parquet_meta_read(&m, (uint8_t *)file + w.offset, length, &w, &err) < 0 ||
        sgt_unit_new(&u, &err) < 0)
        return -1;
    for (int i = 0; i < ROUNDS; i++) {
        bare[i] = unpack_all(&m, (const uint8_t *)file, out, &bytes);
        whole[i] = decode_all(c, field, &u);
        if (bare[i] < 0 || whole[i] < 0) return -1;
    }
    qsort(bare, ROUNDS, sizeof *bare, by_size);
    qsort(whole, ROUNDS, sizeof *whole, by_size);
    const double b = bare[ROUNDS / 2], d = whole[ROUNDS / 2];
    printf("%-28s unpacking %6.0f MB/s, documents %6.0f MB/s, ratio %.2f\n", path, bytes / b / 1e6,
           bytes / d / 1e6, d / b);
    sgt_unit_free(&u);
    sgt_parquet_meta_free(&m);
    free(file);
    free(out);
    return 0;
}

int main(int argc, char **argv)
{
    const char *field = getenv("FIELD") ? getenv("FIELD") : "text";
    for (int i = 1; i < argc; i++) {
        sgt_error err = {0};
        sgt_corpus *c;
        const char *inputs[] = {argv[i]};
        sgt_corpus_request r = {.inputs = inputs, .count = 1, .out = "no/such/folder"};
        if (sgt_corpus_list(&c, &r, &err) < 0 || measure(argv[i], field, c) < 0) {
            fprintf(stderr, "bench-parquet: %s: cannot be read %s\n", argv[i], err.text);
            return 1;
        }
        sgt_corpus_free(c);
    }
    return 0;
}
