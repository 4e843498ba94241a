/* bench_json.c: the speed at which lines of JSONL become documents, on one thread, with the text in
 * memory (make bench-json). It counts the bytes of JSON that sgt_json_parts takes: finding
 * newlines, checking UTF-8 and the whole syntax, decoding escapes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tokenize/input/json_parts.h"

#define UNIT ((size_t)256 << 10)
#define SECONDS 0.5

/* A line consists of `before`, then `times` copies of `text`, then a quote and a brace. */
static const struct {
    const char *name, *before, *text;
    int times;
} kinds[] = {
    {"few escapes", "{\"id\":17,\"meta\":{\"score\":0.5,\"url\":\"http://a.b/c\"},\"text\":\"",
     "The \xE2\x80\x9Cquick\xE2\x80\x9D brown fox jumped over the lazy dog, and then did it "
     "again.\\n",
     50},
    {"many escapes", "{\"id\":17,\"meta\":{\"score\":0.5,\"url\":\"http://a.b/c\"},\"text\":\"",
     "The \\\"quick\\\" br\\u00f6wn f\\u00f6x\\tjumped\\tover \\u00e9very l\\u00e1zy d\\u00f6g.\\n",
     50},
    {"all escaped", "{\"text\":\"", "\\u4e2d\\u6587\\u5b57\\u7b26\\uff0c", 200},
    {"Chinese as it is", "{\"text\":\"",
     "\xE4\xB8\xAD\xE6\x96\x87\xE5\xAD\x97\xE7\xAC\xA6\xEF\xBC\x8C", 200},
    {"short lines", "{\"id\":17,\"text\":\"", "a line of sixty-four bytes, or some", 1},
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t put_lines(size_t kind, char *out)
{
    size_t n = 0, line = strlen(kinds[kind].before) +
                         strlen(kinds[kind].text) * (size_t)kinds[kind].times + 3;
    while (n + line <= UNIT) {
        char *at = stpcpy(out + n, kinds[kind].before);
        for (int i = 0; i < kinds[kind].times; i++) at = stpcpy(at, kinds[kind].text);
        at = stpcpy(at, "\"}\n");
        n = (size_t)(at - out);
    }
    return n;
}

/* Return bytes of JSON per second. Copying the lines into place before each run is not timed: it is
 * needed because escapes are decoded in place. */
static double measure(sgt_unit *u, const char *json, size_t n)
{
    sgt_error err;
    sgt_corpus_file file = {.path = (char *)"x.jsonl", .name = "x.jsonl", .lines = 1};
    sgt_corpus c = {.files = &file, .count = 1};
    sgt_tokenize_options o = {.threads = 1};
    double spent = 0, bytes = 0;
    while (spent < SECONDS) {
        memcpy(u->text, json, n);
        u->parts[0] = (sgt_part){.end = n, .length = n, .folded = 1};
        u->count = 1;
        u->used = n;
        u->bad.why = NULL;
        double from = now();
        if (sgt_json_parts(u, &c, &o, &err) < 0 || u->bad.why) return 0;
        spent += now() - from;
        bytes += (double)n;
    }
    return bytes / spent;
}

int main(void)
{
    sgt_error err;
    sgt_unit u;
    char *json = malloc(UNIT + 65536);
    if (!json || sgt_unit_new(&u, &err) < 0 || sgt_unit_reserve(&u, UNIT + 1, &err) < 0) return 1;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        double rate = measure(&u, json, put_lines(k, json));
        if (rate <= 0) return 1;
        printf("%-18s %6.2f GB/s\n", kinds[k].name, 1e-9 * rate);
    }
    sgt_unit_free(&u);
    free(json);
    return 0;
}
