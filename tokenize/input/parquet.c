/* parquet.c: find the metadata at the end of a file, and go from page to page. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/input/parquet_format.h"
#include "tokenize/input/source.h"

#define MARK 4 /* "PAR1", at both ends */
/* bytes at the file's end: the length of the metadata, and the mark */
#define TAIL 8
#define META ((uint64_t)256 << 20) /* maximum bytes of the metadata */
#define WINDOW ((size_t)64 << 10)  /* bytes read at first for a page's head */
/* most bytes of a page's head; its statistics may hold long strings */
#define LONGEST_HEAD ((size_t)16 << 20)

struct sgt_parquet {
    sgt_parquet_request r;
    sgt_source *source;
    sgt_parquet_meta meta;
    size_t group;                   /* the current row group */
    uint64_t begun;                 /* where the share of the file begins, in bytes, for progress */
    uint64_t at;                    /* file offset of the next page of the group */
    uint64_t row;                   /* the first row of that page */
    uint64_t taken;                 /* rows of that page that are done */
    sgt_parquet_shared *dictionary; /* of the group */
    double word;                    /* about how many bytes a string of the dictionary has */
    sgt_parquet_shared *whole;      /* that page, if it is shared */
    /* hash of all before row `covered`, of the group's dictionary, of the page at `at`, and of its
     * head */
    uint64_t hash, covered, dictionary_hash, page_hash, head_hash;
    uint8_t *window; /* the bytes of the file from window_at on */
    size_t window_room, window_size;
    uint64_t window_at;
};

static int damaged(const sgt_parquet *p, uint64_t offset, const char *why, sgt_error *err)
{
    return sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": %s", p->r.file->path, offset, why);
}

/* Read n bytes of the file from offset `at` on. */
static int read_at(sgt_parquet *p, uint64_t at, uint8_t *to, size_t n, sgt_error *err)
{
    size_t got = 0;
    int end = 0,
        rc = sgt_source_raw(p->source) == at ? SGT_OK : sgt_source_seek(p->source, at, err);
    if (!rc) rc = sgt_source_read(p->source, to, &got, n, &end, err);
    if (!rc && got < n) rc = damaged(p, at + got, "cut off: the file ends here", err);
    return rc;
}

/* ---- the metadata ---- */

static int read_tail(sgt_parquet *p, uint64_t *at, size_t *n, sgt_error *err)
{
    const sgt_corpus_file *f = p->r.file;
    uint8_t mark[MARK], tail[TAIL];
    uint32_t length;
    if (f->size < MARK + TAIL)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: no Parquet file: %" PRIu64
                        " bytes, and the least is 12 (--format text reads it as text)",
                        f->path, f->size);
    int rc = read_at(p, 0, mark, MARK, err);
    if (!rc) rc = read_at(p, f->size - TAIL, tail, TAIL, err);
    if (rc < 0) return rc;
    if (!memcmp(mark, "PARE", MARK) || !memcmp(tail + 4, "PARE", MARK))
        return sgt_fail(err, SGT_EFORMAT, "%s: encrypted (write it without encryption)", f->path);
    if (memcmp(mark, "PAR1", MARK))
        return damaged(p, 0,
                       "no Parquet file: it does not begin with PAR1 (--format text reads it "
                       "as text)",
                       err);
    if (memcmp(tail + 4, "PAR1", MARK))
        return damaged(p, f->size - MARK,
                       "cut off: a Parquet file ends with PAR1, and this one "
                       "does not (fetch the file again)",
                       err);
    memcpy(&length, tail, sizeof length);
    if (length > f->size - MARK - TAIL)
        return damaged(p, f->size - TAIL,
                       "damaged: the metadata would be longer than the file "
                       "(fetch the file again)",
                       err);
    if (length > META)
        return damaged(p, f->size - TAIL,
                       "more than 256 MiB of metadata (write fewer row groups "
                       "and columns)",
                       err);
    *n = length;
    *at = f->size - TAIL - length;
    return SGT_OK;
}

static int read_meta(sgt_parquet *p, sgt_error *err)
{
    uint64_t at = 0;
    size_t n = 0;
    int rc = read_tail(p, &at, &n, err);
    if (rc < 0) return rc;
    uint8_t *bytes = malloc(n + 1);
    if (!bytes) return sgt_fail_memory(err, p->r.file->path);
    const sgt_parquet_where w = {p->r.file->path, p->r.file->size, at, p->r.field, p->r.kept};
    if ((rc = read_at(p, at, bytes, n, err)) == 0)
        rc = sgt_parquet_meta_read(&p->meta, bytes, n, &w, err);
    p->covered = p->r.file->from_row;
    if (p->r.hashed > p->covered) {
        p->covered = p->r.hashed;
        p->hash = p->r.hash;
    } else if (!rc && !p->covered) p->hash = XXH3_64bits(bytes, n);
    free(bytes);
    return rc;
}

static void begin_group(sgt_parquet *p)
{
    sgt_parquet_shared_drop(p->dictionary);
    p->dictionary = NULL;
    p->dictionary_hash = 0;
    p->word = 0;
    if (p->group == p->meta.count) return;
    p->at = p->meta.groups[p->group].at;
    p->row = p->meta.groups[p->group].row;
    p->taken = 0;
}

int sgt_parquet_open(sgt_parquet **out, const sgt_parquet_request *r, sgt_error *err)
{
    sgt_parquet *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, r->file->path);
    p->r = *r;
    int rc = sgt_source_open(&p->source, r->file, r->stop, r->cancel, err);
    if (rc < 0) {
        free(p);
        return rc;
    }
    p->window = malloc(WINDOW);
    p->window_room = WINDOW;
    rc = p->window ? read_meta(p, err) : sgt_fail_memory(err, r->file->path);
    if (!rc && r->row > p->meta.rows)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: has %" PRIu64 " rows, and the run that is resumed had read %" PRIu64
                      " (--force starts over)",
                      r->file->path, p->meta.rows, r->row);
    if (p->r.row < r->file->from_row) p->r.row = r->file->from_row;
    while (!rc && p->group < p->meta.count &&
           p->meta.groups[p->group].row + p->meta.groups[p->group].rows <= p->covered) {
        if (p->meta.groups[p->group].row < r->file->from_row)
            p->begun = p->meta.groups[p->group].end;
        p->group++;
    }
    if (rc < 0) sgt_parquet_close(p);
    else {
        begin_group(p);
        *out = p;
    }
    return rc;
}

void sgt_parquet_close(sgt_parquet *p)
{
    if (!p) return;
    sgt_source_close(p->source);
    sgt_parquet_shared_drop(p->dictionary);
    sgt_parquet_shared_drop(p->whole);
    sgt_parquet_meta_free(&p->meta);
    free(p->window);
    free(p);
}

size_t sgt_parquet_groups(const sgt_parquet *p) { return p->meta.count; }
uint64_t sgt_parquet_hash(const sgt_parquet *p, uint64_t *covered)
{
    *covered = p->covered;
    return p->hash;
}

int sgt_parquet_is_unsigned(const sgt_parquet *p) { return p->meta.is_unsigned; }
int sgt_parquet_scale(const sgt_parquet *p) { return p->meta.scale; }

void sgt_parquet_group_begin(const sgt_parquet *p, size_t i, uint64_t *row, uint64_t *bytes)
{
    *row = i < p->meta.count ? p->meta.groups[i].row : p->meta.rows;
    *bytes = 0;
    for (size_t g = 0; g < i; g++) *bytes += p->meta.groups[g].end - p->meta.groups[g].at;
}

/* Return whether all groups that are to be read are done. */
static int ended(const sgt_parquet *p)
{
    const uint64_t end = p->r.file->end_row;
    return p->group == p->meta.count || (end && p->meta.groups[p->group].row >= end);
}

uint64_t sgt_parquet_raw(const sgt_parquet *p)
{
    const uint64_t all = sgt_corpus_share(p->r.file), done = p->at - p->begun;
    return ended(p) || done > all ? all : done;
}

/* ---- pages ---- */

/* Set *from to the n bytes of the file at offset `at`, which stay valid until the next call. n is
 * at most the window's room. */
static int fill_window(sgt_parquet *p, uint64_t at, size_t n, const uint8_t **from, sgt_error *err)
{
    int rc = SGT_OK;
    if (at < p->window_at || at - p->window_at > p->window_size ||
        p->window_size - (at - p->window_at) < n) {
        p->window_size = 0;
        if ((rc = read_at(p, at, p->window, n, err)) < 0) return rc;
        p->window_at = at;
        p->window_size = n;
    }
    *from = p->window + (at - p->window_at);
    return SGT_OK;
}

/* Read the head of the page at p->at, in a window that grows until it holds the head. */
static int read_head(sgt_parquet *p, uint64_t end, sgt_parquet_head *h, sgt_error *err)
{
    for (;;) {
        const uint8_t *from;
        const uint64_t left = end - p->at;
        const size_t n = left < p->window_room ? (size_t)left : p->window_room;
        int more, rc = fill_window(p, p->at, n, &from, err);
        if (rc < 0) return rc;
        const char *why = sgt_parquet_head_read(h, from, n, &more);
        if (!why && h->packed > left - h->size) why = "cut off: the page is longer than its column";
        if (!why) {
            p->head_hash = XXH3_64bits_withSeed(from, h->size, p->at);
            return SGT_OK;
        }
        if (!more || n == left || n >= LONGEST_HEAD) return damaged(p, p->at, why, err);
        uint8_t *window = realloc(p->window, 2 * p->window_room);
        if (!window) return sgt_fail_memory(err, p->r.file->path);
        p->window = window;
        p->window_room *= 2;
        p->window_size = 0;
    }
}

/* Copy n bytes of the file from offset `at` on. The window may hold the first of them. */
static int copy_bytes(sgt_parquet *p, uint64_t at, size_t n, uint8_t *to, sgt_error *err)
{
    size_t have = 0;
    if (at >= p->window_at && at - p->window_at < p->window_size) {
        have = p->window_size - (size_t)(at - p->window_at);
        if (have > n) have = n;
        memcpy(to, p->window + (at - p->window_at), have);
    }
    return n > have ? read_at(p, at + have, to + have, n - have, err) : SGT_OK;
}

static int read_dictionary(sgt_parquet *p, const sgt_parquet_head *h, sgt_error *err)
{
    if (p->dictionary) return damaged(p, p->at, "damaged: a second dictionary", err);
    const sgt_parquet_page page = {
        .head = *h, .codec = p->meta.groups[p->group].codec, .type = p->meta.type};
    uint8_t *packed;
    int rc = sgt_parquet_shared_new(&p->dictionary, &page, &packed, err);
    if (h->rows) p->word = (double)h->unpacked / (double)h->rows;
    if (!rc) rc = copy_bytes(p, p->at + h->size, h->packed, packed, err);
    if (!rc) p->dictionary_hash = XXH3_64bits_withSeed(packed, h->packed, p->head_hash);
    return rc;
}

/* Return about how many bytes `rows` rows of a page have, unpacked. */
static size_t text_bytes(const sgt_parquet *p, const sgt_parquet_head *h, uint64_t rows)
{
    const double word = sgt_parquet_has_indices(h) ? p->word : 0;
    return (size_t)(((double)h->unpacked / (double)h->rows + word) * (double)rows);
}

/* Read the packed bytes of a page: into one that all its rows share, or behind u's text. */
static int read_bytes(sgt_parquet *p, const sgt_parquet_page *page, sgt_unit *u, sgt_error *err)
{
    const sgt_parquet_head *h = &page->head;
    uint8_t *to = NULL;
    int rc = SGT_OK;
    /* a damaged head may state any size */
    const size_t all = u->unpacked + page->text, likely = all < SGT_PARQUET_LIKELY ? all : 0;
    if (p->whole) return SGT_OK;
    if (h->rows > SGT_PARQUET_ROWS) rc = sgt_parquet_shared_new(&p->whole, page, &to, err);
    else {
        /* room for the rows, too, and for those of a page that is a little larger: a buffer that
         * grows later is copied */
        rc = sgt_unit_reserve(u, page->at + h->packed + likely + likely / 4, err);
        to = u->text + page->at;
        u->used = page->at + h->packed;
    }
    if (!rc) rc = copy_bytes(p, p->at + h->size, h->packed, to, err);
    if (!rc) p->page_hash = XXH3_64bits_withSeed(to, h->packed, p->head_hash);
    return rc;
}

/* Hash a page of which an earlier run has read the rows, but not counted the hash. */
static int hash_page(sgt_parquet *p, const sgt_parquet_head *h, sgt_error *err)
{
    uint8_t *bytes = malloc(h->packed + 1);
    if (!bytes) return sgt_fail_memory(err, p->r.file->path);
    const int rc = copy_bytes(p, p->at + h->size, h->packed, bytes, err);
    if (!rc) p->page_hash = XXH3_64bits_withSeed(bytes, h->packed, p->head_hash);
    free(bytes);
    return rc;
}

/* Make room for one more page. */
static int reserve_page(sgt_unit *u, sgt_error *err)
{
    if (u->page_count < u->page_room) return SGT_OK;
    const size_t room = 2 * u->page_room + 4;
    sgt_parquet_page *more = reallocarray(u->pages, room, sizeof *more);
    if (!more) return sgt_fail_memory(err, "pages of a unit of work");
    u->pages = more;
    u->page_room = room;
    return SGT_OK;
}

static int add_page(sgt_parquet *p, const sgt_parquet_head *h, sgt_unit *u, uint64_t *rows,
                    sgt_error *err)
{
    const uint64_t left = h->rows - p->taken, n = left < SGT_PARQUET_ROWS ? left : SGT_PARQUET_ROWS;
    sgt_parquet_page page = {.head = *h,
                             .offset = p->at,
                             .first = p->taken,
                             .count = n,
                             .text = text_bytes(p, h, n),
                             .at = u->used,
                             .codec = p->meta.groups[p->group].codec,
                             .type = p->meta.type,
                             .levels = p->meta.levels,
                             .dictionary = p->dictionary};
    int rc = reserve_page(u, err);
    if (!rc) rc = read_bytes(p, &page, u, err);
    if (rc < 0) return rc;
    page.whole = sgt_parquet_shared_use(p->whole);
    sgt_parquet_shared_use(p->dictionary);
    u->pages[u->page_count++] = page;
    p->taken += *rows = n;
    return SGT_OK;
}

/* Go past the page with this head, which began at p->at. */
static void pass_page(sgt_parquet *p, const sgt_parquet_head *h, uint64_t rows)
{
    p->at += h->size + h->packed;
    if (p->row + rows > p->covered) {
        p->hash += p->page_hash;
        if (p->row == p->meta.groups[p->group].row) p->hash += p->dictionary_hash;
        p->covered = p->row + rows;
    }
    p->row += rows;
    p->taken = 0;
    sgt_parquet_shared_drop(p->whole);
    p->whole = NULL;
}

/* Read the page at p->at. Return 1 if it gives rows. */
static int read_page(sgt_parquet *p, const sgt_parquet_group *g, sgt_unit *u, uint64_t *rows,
                     sgt_error *err)
{
    sgt_parquet_head h;
    int rc = read_head(p, g->end, &h, err);
    if (rc < 0) return rc;
    if (h.kind != SGT_PARQUET_DATA && h.kind != SGT_PARQUET_DATA2) {
        if (h.kind == SGT_PARQUET_DICTIONARY) rc = read_dictionary(p, &h, err);
        if (!rc) pass_page(p, &h, 0);
        return rc;
    }
    if (h.rows > g->row + g->rows - p->row)
        return damaged(p, p->at, "damaged: its row group has fewer rows than its pages", err);
    if (p->row + p->taken < p->r.row)
        p->taken = p->row + h.rows <= p->r.row ? h.rows : p->r.row - p->row;
    if (p->taken < h.rows) rc = add_page(p, &h, u, rows, err);
    else if (p->row + h.rows > p->covered) rc = hash_page(p, &h, err);
    if (rc < 0) return rc;
    if (p->taken == h.rows) pass_page(p, &h, h.rows);
    return *rows > 0;
}

/* After the last row, check that the file is still the one that was opened. */
static int finish(sgt_parquet *p, sgt_error *err)
{
    size_t n = 0;
    int end = 0, rc = sgt_source_seek(p->source, p->r.file->size, err);
    return rc < 0 ? rc : sgt_source_read(p->source, p->window, &n, 0, &end, err);
}

int sgt_parquet_next(sgt_parquet *p, sgt_unit *u, uint64_t *rows, sgt_error *err)
{
    *rows = 0;
    while (!ended(p)) {
        const sgt_parquet_group *g = &p->meta.groups[p->group];
        if (p->row < g->row + g->rows && p->at < g->end) {
            int rc = read_page(p, g, u, rows, err);
            if (rc) return rc < 0 ? rc : SGT_OK;
            continue;
        }
        if (p->row < g->row + g->rows)
            return damaged(p, p->at, "damaged: its row group has more rows than its pages", err);
        p->group++;
        begin_group(p);
    }
    int rc = finish(p, err);
    return rc < 0 ? rc : 1;
}
