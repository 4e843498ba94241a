/* parquet_body.c: decode a large page once, for all threads that need rows of it. */
#include "tokenize/input/parquet_body.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "tokenize/input/parquet_dictionary.h"

struct sgt_parquet_body {
    atomic_int users;
    pthread_mutex_t lock; /* guards all below until the page is decoded */
    sgt_parquet_page page;
    sgt_unit unit; /* the page's packed bytes, and then its strings */
    sgt_parquet_string *rows;
    const uint8_t *strings; /* what the rows' positions are in */
    int ready, rc;          /* the page was decoded, and the result */
    sgt_error err;
};

int sgt_parquet_body_new(sgt_parquet_body **out, const sgt_parquet_page *p, uint8_t **packed,
                         sgt_error *err)
{
    sgt_parquet_body *b = calloc(1, sizeof *b);
    if (!b) return sgt_fail_memory(err, "a page");
    int rc = sgt_unit_reserve(&b->unit, p->head.packed, err);
    if (rc < 0) {
        free(b);
        return rc;
    }
    b->users = 1;
    b->page = *p;
    b->page.at = b->page.first = 0;
    b->page.count = p->head.rows;
    b->page.body = NULL;
    b->page.dictionary = sgt_parquet_dictionary_use(p->dictionary);
    b->unit.used = p->head.packed;
    pthread_mutex_init(&b->lock, NULL);
    *packed = b->unit.text;
    *out = b;
    return SGT_OK;
}

sgt_parquet_body *sgt_parquet_body_use(sgt_parquet_body *b)
{
    if (b) atomic_fetch_add(&b->users, 1);
    return b;
}

void sgt_parquet_body_drop(sgt_parquet_body *b)
{
    if (!b || atomic_fetch_sub(&b->users, 1) > 1) return;
    pthread_mutex_destroy(&b->lock);
    sgt_parquet_dictionary_drop(b->page.dictionary);
    sgt_unit_free(&b->unit);
    free(b->rows);
    free(b);
}

static int decode(sgt_parquet_body *b, const char *path)
{
    b->rows = calloc((size_t)b->page.count, sizeof *b->rows);
    if (!b->rows) return sgt_fail_memory(&b->err, "rows of a page");
    return sgt_parquet_page_strings(&b->page, &b->unit, b->rows, &b->strings, path, &b->err);
}

static int ready(sgt_parquet_body *b, const char *path, sgt_error *err)
{
    pthread_mutex_lock(&b->lock);
    if (!b->ready) b->rc = decode(b, path);
    b->ready = 1;
    pthread_mutex_unlock(&b->lock);
    if (b->rc < 0 && err) *err = b->err;
    return b->rc;
}

int sgt_parquet_body_rows(sgt_parquet_body *b, uint64_t first, uint64_t count, sgt_unit *u,
                          sgt_parquet_string *rows, const char *path, sgt_error *err)
{
    int rc = ready(b, path, err);
    if (rc < 0) return rc;
    memcpy(rows, b->rows + first, (size_t)count * sizeof *rows);
    return sgt_parquet_rows_copy(u, rows, count, b->strings, path, b->page.offset, err);
}
