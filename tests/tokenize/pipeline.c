#include "tests/expect.h"
#include "tests/tokenize/pipeline.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/philox.h"
#include "tests/scratch.h"
#include "tokenize/input/feed.h"
#include "loader/shards/shard.h"
#include "tokenize/text/utf8.h"

#define EOT "<|endoftext|>"

static char folder[64];

void enter_scratch(void)
{
    /* use memory if possible: on a disk, every shard's fsync takes time */
    snprintf(folder, sizeof folder, "%s/sgt-tokenize.XXXXXX",
             access("/dev/shm", W_OK | X_OK) ? "/tmp" : "/dev/shm");
    cr_assert(mkdtemp(folder) && chdir(folder) == 0);
}

void leave_scratch(void)
{
    cr_assert_eq(chdir("/"), 0);
    must(sgt_remove_tree(folder, why));
}

void put_text(const char *path, const void *text, size_t n)
{
    FILE *f = fopen(path, "wb");
    cr_assert(f && fwrite(text, 1, n, f) == n && fclose(f) == 0, "%s", path);
}

size_t get_file(char **out, const char *path)
{
    size_t n;
    must(sgt_file_get(out, &n, path, (size_t)1 << 30, why));
    return n;
}

char *mixed_text(uint64_t seed, size_t *n, int odd)
{
    static const char *const bits[] = {
        "the",      " quick",        "  brown",  "\n",        "\n\n   ", "'ll",
        " don't",   "12345",         " 7",       "...",       " --",     "\t",
        "é",        " über",         "中文字符", "ไทยไม่มีเว้น", "🙂",    "e\xCC\x81",
        "\xC2\xA0", "<|endoftext|>", "<|endof",  "|>",        "=====",   " a"};
    static const char *const bad[] = {"\xFF", "\xC3", "\xE2\x82", "\xED\xA0\x80", "\xF0\x9F\x99"};
    char *text = malloc(*n + 4096);
    size_t at = 0;
    cr_assert(text);
    for (uint64_t i = 0; at < *n; i++) {
        uint64_t r = sgt_philox_u64(seed, i, 0);
        if (r % 97 == 0) { /* a run of one character, in which no cut is allowed */
            size_t run = 1 + (r >> 8) % 3000;
            memset(text + at, "a =7\n"[(r >> 32) % 5], run);
            at += run;
        } else {
            const char *s = odd && r % 13 == 0 ? bad[(r >> 8) % 5]
                                               : bits[(r >> 8) % (sizeof bits / sizeof *bits)];
            memcpy(text + at, s, strlen(s));
            at += strlen(s);
        }
        if (at > *n) at = *n;
    }
    return text;
}

void put_mixed(const char *path, uint64_t seed, size_t n, int odd)
{
    scoped_memory char *text = mixed_text(seed, &n, odd);
    put_text(path, text, n);
}

int tokenize(sgt_tokenize_options o, const char *input, const char *out, sgt_tokenize_result *r,
             sgt_error *err)
{
    o.size = sizeof o;
    if (r) r->size = sizeof *r;
    o.inputs = &input;
    o.input_count = 1;
    o.out = out;
    return sgt_tokenize(&o, r, err);
}

/* Add the document text[n] to the stream. */
static void add_document(stream *s, sgt_encoder *e, const char *text, size_t n, int replace)
{
    scoped_memory char *good = malloc(3 * n + 1);
    if (replace) n = sgt_utf8_replace((uint8_t *)good, (const uint8_t *)text, n);
    s->ids = realloc(s->ids, (s->count + n + 1) * sizeof *s->ids);
    s->starts = realloc(s->starts, (s->documents + 2) * sizeof *s->starts);
    cr_assert(good && s->ids && s->starts);
    s->starts[s->documents++] = s->count;
    s->ids[s->count++] = 50256;
    s->count += encode(e, replace ? good : text, n, s->ids + s->count);
}

stream slow_stream(const char *const *paths, size_t count, const sgt_tokenize_options *o, int split)
{
    scoped(sgt_vocab) *v = gpt2();
    scoped(sgt_encoder) *e = new_encoder(v);
    stream s = {.starts = calloc(1, sizeof *s.starts)};
    for (size_t i = 0; i < count; i++) {
        const char *slash = strrchr(paths[i], '/'), *name = slash ? slash + 1 : paths[i];
        scoped_memory char *text = NULL;
        const size_t n = get_file(&text, paths[i]);
        /* a document's position is that of the literal before it, and its text begins after the
         * literal */
        size_t position = 0, from = o->special_eot && n >= 13 && !memcmp(text, EOT, 13) ? 13 : 0;
        for (const char *found; from <= n;
             position = (size_t)(found - text), from = position + 13) {
            found = o->special_eot ? memmem(text + from, n - from, EOT, 13) : NULL;
            if (sgt_text_feed_split(name, position, o->val_fraction) == split)
                add_document(&s, e, text + from, (found ? (size_t)(found - text) : n) - from,
                             o->invalid_utf8 == SGT_INVALID_REPLACE);
            if (!found) break;
        }
    }
    return s;
}

void free_stream(stream *s)
{
    free(s->ids);
    free(s->starts);
}

static void expect_index(const char *path, const stream *s, uint64_t from, uint64_t to)
{
    scoped_memory char *bytes = NULL;
    size_t n = get_file(&bytes, path), want = 0;
    for (size_t i = 0; i < s->documents; i++) {
        if (s->starts[i] < from || s->starts[i] >= to) continue;
        uint64_t start;
        cr_assert_leq(8 * (want + 1), n, "%s: too short", path);
        memcpy(&start, bytes + 8 * want++, sizeof start);
        cr_assert_eq(start, s->starts[i] - from, "%s: document %zu", path, i);
    }
    cr_assert_eq(n, 8 * want, "%s: %zu bytes for %zu documents", path, n, want);
}

void expect_shards(const char *out, const char *split, const stream *s, uint64_t shard_tokens)
{
    char path[256];
    sgt_error err;
    size_t shard = 0;
    for (uint64_t from = 0; from < s->count; from += shard_tokens, shard++) {
        uint64_t count = s->count - from < shard_tokens ? s->count - from : shard_tokens;
        sgt_shard_header h;
        char *bytes;
        snprintf(path, sizeof path, "%s/%s_%06zu.bin", out, split, shard);
        int fd = sgt_shard_open(&h, path, 0, &err);
        cr_assert_geq(fd, 0, "%s", err.text);
        close(fd);
        cr_assert_eq(h.tokens, count, "%s: %lu tokens", path, (unsigned long)h.tokens);
        cr_assert(h.vocab == 50257 && h.eot == 50256 && h.fingerprint && h.revision == 1,
                  "%s: header", path);
        size_t n = get_file(&bytes, path);
        cr_assert_eq(n, 1024 + 2 * count);
        cr_assert_eq(memcmp(bytes + 1024, s->ids + from, 2 * count), 0, "%s: ids", path);
        cr_assert_eq(h.xxh3, XXH3_64bits(bytes + 1024, 2 * count), "%s: checksum", path);
        free(bytes);
        snprintf(path, sizeof path, "%s/%s_%06zu.idx", out, split, shard);
        expect_index(path, s, from, from + count);
    }
    snprintf(path, sizeof path, "%s/%s_%06zu.bin", out, split, shard);
    cr_assert(access(path, F_OK) < 0, "%s: one shard too many", path);
}

void expect_same_file(const char *a, const char *b, const char *name)
{
    scoped_memory char *p = sgt_join(a, name), *q = sgt_join(b, name), *x, *y;
    size_t n = get_file(&x, p), m = get_file(&y, q);
    cr_assert(n == m && !memcmp(x, y, n), "%s and %s differ", p, q);
}

void expect_same_folders(const char *a, const char *b)
{
    scoped(DIR) *d = opendir(a);
    cr_assert(d, "%s", a);
    cr_assert_eq(count_names(a), count_names(b), "%s and %s hold different names", a, b);
    for (const struct dirent *e; (e = readdir(d));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..")) expect_same_file(a, b, e->d_name);
}

int folder_is_gone(const char *path)
{
    struct stat st;
    return lstat(path, &st) < 0;
}

void stop_after(void *ctx, uint64_t done, uint64_t total, uint64_t tokens)
{
    stopper *s = ctx;
    cr_assert_leq(done, total);
    if (!s->calls++) s->first_done = done, s->first_tokens = tokens;
    else cr_assert_gt(tokens, 0);
    if (s->calls > s->after) sgt_stop_request(&s->stop);
}

int tokenize_in_stops(sgt_tokenize_options o, const char *out, int after, int more)
{
    for (int stops = 0;; stops++) {
        sgt_error err;
        stopper s = {.after = after + more * stops};
        o.stop = &s.stop;
        o.progress = stop_after;
        o.progress_ctx = &s;
        o.threads = 1 + stops % 3;
        piece_bytes = (size_t)(300 + 200 * (stops % 4));
        int rc = tokenize(o, "in", out, NULL, &err);
        if (rc == 0) return stops;
        cr_assert(rc == SGT_ESTOPPED && !strcmp(err.text, "stopped"), "%s", err.text);
        cr_assert(!folder_is_gone(out));
    }
}
