/* parquet.c: a Parquet file is refused with a message of one line, or gives the same texts however
 * its rows are divided into units of work. The first byte of the input chooses the column with the
 * text and the columns to keep. The rest is the file. */
#include <jansson.h>
#include <xxhash.h>

#include "tests/fuzz/fuzz.h"
#include "tokenize/input/feed.h"
#include "tokenize/input/kept.h"

static const char *const columns[] = {"text",        "plain_some", "dict_some",
                                      "length_some", "delta_some", "page.in.text"};

static const char *const kept[] = {NULL, "id,page.url", "delta,small,middle,large",
                                   "delta32,delta64,same,split32,split64,float,double"};

typedef struct result {
    int rc;
    uint64_t rows;
    XXH64_hash_t hash; /* hash of all texts and their lengths, in order */
} result;

static int take_unit(XXH3_state_t *hash, sgt_unit *u, uint64_t *rows, sgt_error *err)
{
    int rc = sgt_unit_unfold(u, err);
    for (size_t i = 0; i < u->count && rc == 0; i++) {
        const sgt_part *p = &u->parts[i];
        if (!p->first) continue;
        must(p->at <= u->used && p->length <= u->used - p->at, "a text lies within the unit");
        XXH3_64bits_update(hash, &p->length, sizeof p->length);
        XXH3_64bits_update(hash, u->text + p->at, p->length);
        ++*rows;
    }
    return rc;
}

static result read_all(const char *path, const char *column, size_t piece)
{
    const sgt_tokenize_options o = {
        .inputs = &path, .input_count = 1, .field = column, .skip_bad = 1};
    result got = {0};
    sgt_corpus *c = NULL;
    sgt_text_feed *f = NULL;
    sgt_unit u = {0};
    sgt_error err = {0};
    XXH3_state_t *hash = XXH3_createState();
    must(hash && XXH3_64bits_reset(hash) == XXH_OK, "there is memory");
    got.rc = sgt_corpus_list(&c, &o, &err);
    if (got.rc == 0) {
        const sgt_text_feed_options feed = {.reading = {.corpus = c, .o = &o}, .piece = piece};
        got.rc = sgt_text_feed_open(&f, &feed, &err);
    }
    while (got.rc == 0 && (got.rc = sgt_text_feed_next(f, &u, &err)) == 0)
        got.rc = take_unit(hash, &u, &got.rows, &err);
    if (got.rc < 0) must_say(got.rc, &err);
    got.hash = XXH3_64bits_digest(hash);
    XXH3_freeState(hash);
    sgt_text_feed_close(f);
    sgt_unit_free(&u);
    sgt_corpus_free(c);
    return got;
}

#define MOST_KEPT 5000 /* rows */

/* The columns to keep give a JSON object per row, or one error for the file. */
static void read_kept(const char *path, const char *list)
{
    const sgt_tokenize_options o = {.inputs = &path, .input_count = 1, .keep_fields = list};
    sgt_corpus *c = NULL;
    sgt_kept_rows *rows = NULL;
    sgt_error err = {0};
    int rc = sgt_corpus_list(&c, &o, &err);
    for (uint64_t row = 0; rc == 0 && c->files[0].rows && row < MOST_KEPT; row++) {
        const sgt_part part = {.kind = SGT_PART_ROW, .row.number = row};
        const char *json;
        size_t n;
        rc = sgt_kept_of(&rows, c, NULL, &part, &json, &n, &err);
        /* JSON has numbers of any size; jansson's integers have 64 bits and a sign */
        json_t *j =
            rc == 0 ? json_loadb(json, n, JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, NULL) : NULL;
        must(rc < 0 || json_object_size(j) == c->kept.count, "a row is an object of these fields");
        json_decref(j);
    }
    if (rc < 0) must_say(rc, &err);
    sgt_kept_rows_close(rows);
    sgt_corpus_free(c);
}

void fuzz_parquet(const uint8_t *data, size_t size)
{
    const char *column = columns[size ? data[0] % (sizeof columns / sizeof *columns) : 0];
    const char *path = put_file("x.parquet", size ? data + 1 : data, size ? size - 1 : 0);
    result whole = read_all(path, column, (size_t)1 << 20), parts = read_all(path, column, 1);
    must((whole.rc < 0) == (parts.rc < 0), "it fails in every division or in none");
    must(whole.rc < 0 || (whole.rows == parts.rows && whole.hash == parts.hash),
         "the texts are the same");
    const unsigned list = size ? data[0] / 8 % 4 : 0;
    read_kept(path, list ? kept[list] : column);
}
