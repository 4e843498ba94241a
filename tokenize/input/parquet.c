/* parquet.c: read the metadata at the end of a file and the heads of its pages, which are written in
 * Thrift's compact protocol, and go from page to page. The numbers of fields are those of
 * parquet.thrift. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/input/parquet.h"
#include "loader/base/memory.h"
#include "tokenize/input/source.h"
#include "tokenize/input/json_line.h"

#define DEPTH 64      /* maximum nesting, of the schema and of what is skipped */
#define RLE 3         /* encoding of levels unless a page's head gives another */
#define LISTED 240    /* bytes of column names in a message */
#define NONE SIZE_MAX /* no such column */
#define OPTIONAL 1
#define REPEATED 2
#define DECIMAL 5     /* converted type */
#define MOST_SCALE 18 /* digits after the point that 64 bits hold */
#define UINT_8 11     /* converted types of unsigned numbers, the others between them */
#define UINT_64 14
#define LIST_HINT "--filter 'parquet=jsonl:COMMAND' can join its strings"
#define MARK 4 /* "PAR1", at both ends */
/* bytes at the file's end: the length of the metadata, and the mark */
#define TAIL 8
#define META ((uint64_t)256 << 20) /* maximum bytes of the metadata */
#define WINDOW ((size_t)64 << 10)  /* bytes read at first for a page's head */
/* most bytes of a page's head; its statistics may hold long strings */
#define LONGEST_HEAD ((size_t)16 << 20)

/* A row group: the pages of the column lie in bytes at ... end - 1 of the file. */
typedef struct row_group {
    uint64_t row, rows; /* its first row in the file, and their number */
    uint64_t at, end;
    int codec;
} row_group;

typedef struct file_meta {
    row_group *groups;
    size_t count;
    uint64_t rows;
    int type;        /* SGT_PARQUET_BYTES, or that of numbers */
    int is_unsigned; /* integers have no sign */
    int scale;       /* integers are decimals with as many digits after the point; else 0 */
    unsigned levels; /* definition level of a string; below it is null; 0: no row is null */
} file_meta;

/* The file that the metadata come from, for messages and checks. */
typedef struct where {
    const char *path;
    uint64_t offset; /* offset of the metadata in the file */
    const char *field;
    int kept; /* the column may hold numbers, too */
} where;

/* ---- Thrift's compact protocol ----
 *
 * Nothing is copied. After a failure every read returns 0 and no field follows, so callers check
 * once:
 *
 *     thrift t = {bytes, bytes + n, 0, 0};
 *     int type;
 *     for (int id = 0; (type = thrift_field(&t, &id));)
 *         if (id == 3) rows = thrift_int(&t);
 *         else thrift_skip(&t, type);
 *     if (t.cut || t.wrong) ...; */

enum {
    THRIFT_TRUE = 1,
    THRIFT_FALSE,
    THRIFT_BYTE,
    THRIFT_I16,
    THRIFT_I32,
    THRIFT_I64,
    THRIFT_DOUBLE,
    THRIFT_BYTES,
    THRIFT_LIST,
    THRIFT_SET,
    THRIFT_MAP,
    THRIFT_STRUCT
};

typedef struct thrift {
    const uint8_t *at, *end;
    int cut;   /* the bytes ended too early */
    int wrong; /* the bytes are not of the protocol, or nest too deep */
} thrift;

static uint64_t fail(thrift *t, int *why)
{
    *why = 1;
    t->at = t->end;
    return 0;
}

static uint8_t byte(thrift *t) { return t->at < t->end ? *t->at++ : (uint8_t)fail(t, &t->cut); }

static uint64_t thrift_varint(thrift *t)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte(t);
        n |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return t->cut ? 0 : n;
    }
    return fail(t, &t->wrong);
}

static int64_t thrift_int(thrift *t)
{
    uint64_t n = thrift_varint(t);
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

/* Return the type of the next field, whose id becomes *id; 0: the struct has ended. *id is the id
 * of the field before, and 0 at first. */
static int thrift_field(thrift *t, int *id)
{
    uint8_t b = byte(t);
    if (t->cut || t->wrong || !b) return 0;
    int64_t next = b >> 4 ? *id + (b >> 4) : thrift_int(t);
    if (t->cut) return 0;
    if (next < 0 || next > INT16_MAX || !(b & 15) || (b & 15) > THRIFT_STRUCT)
        return (int)fail(t, &t->wrong);
    *id = (int)next;
    return b & 15;
}

/* Return the number of elements of a list, which is at most the number of bytes left. */
static size_t thrift_list(thrift *t, int *type)
{
    uint8_t b = byte(t);
    uint64_t n = b >> 4 == 15 ? thrift_varint(t) : b >> 4;
    *type = b & 15;
    return n > (uint64_t)(t->end - t->at) ? (size_t)fail(t, &t->cut) : (size_t)n;
}

/* Return the bytes of a string. */
static const uint8_t *thrift_bytes(thrift *t, size_t *n)
{
    uint64_t length = thrift_varint(t);
    if (length > (uint64_t)(t->end - t->at)) length = fail(t, &t->cut);
    const uint8_t *bytes = t->at;
    t->at += length;
    *n = (size_t)length;
    return bytes;
}

static void skip_fixed(thrift *t, size_t n)
{
    if ((size_t)(t->end - t->at) < n) fail(t, &t->cut);
    else t->at += n;
}

static void skip(thrift *t, int type, int in_list, int depth);

static void skip_elements(thrift *t, int depth)
{
    int type;
    for (size_t n = thrift_list(t, &type); n-- && !t->cut && !t->wrong;) skip(t, type, 1, depth);
}

static void skip_map(thrift *t, int depth)
{
    uint64_t n = thrift_varint(t);
    uint8_t types = n ? byte(t) : 0;
    if (n > (uint64_t)(t->end - t->at)) fail(t, &t->cut);
    for (; n-- && !t->cut && !t->wrong;) {
        skip(t, types >> 4, 1, depth);
        skip(t, types & 15, 1, depth);
    }
}

/* Skip a value. in_list: 1 if it is an element of a list. There a boolean takes a byte; a boolean
 * field is part of the field's type. */
static void skip(thrift *t, int type, int in_list, int depth)
{
    size_t n;
    int id = 0, field;
    if (depth == DEPTH) type = 0;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE:
        if (in_list) skip_fixed(t, 1);
        break;
    case THRIFT_BYTE: skip_fixed(t, 1); break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64: thrift_varint(t); break;
    case THRIFT_DOUBLE: skip_fixed(t, 8); break;
    case THRIFT_BYTES: thrift_bytes(t, &n); break;
    case THRIFT_LIST:
    case THRIFT_SET: skip_elements(t, depth + 1); break;
    case THRIFT_MAP: skip_map(t, depth + 1); break;
    case THRIFT_STRUCT:
        while ((field = thrift_field(t, &id))) skip(t, field, 0, depth + 1);
        break;
    default: fail(t, &t->wrong);
    }
}

/* Skip a value of a field. */
static void thrift_skip(thrift *t, int type) { skip(t, type, 0, 0); }

/* Read a struct's numbers and booleans of the fields below n into v[id], and skip all else. Elements
 * of v whose fields are missing stay as they are. */
static void thrift_numbers(thrift *t, int64_t *v, int n)
{
    int type;
    for (int id = 0; (type = thrift_field(t, &id));) {
        if (id < n && (type == THRIFT_I32 || type == THRIFT_I64)) v[id] = thrift_int(t);
        else if (id < n && type <= THRIFT_FALSE) v[id] = type == THRIFT_TRUE;
        else thrift_skip(t, type);
    }
}

/* ---- the schema: a tree, as a list of elements in depth-first order ---- */

typedef struct element {
    const uint8_t *name;
    size_t length;
    int64_t type, repetition, children, converted, scale;
} element;

typedef struct walk {
    thrift *t;
    const char *field;
    size_t left;   /* elements that follow */
    size_t leaf;   /* columns so far */
    size_t column; /* index of the column asked for; NONE: not found */
    int64_t type, scale;
    int is_unsigned, decimal;
    unsigned levels;
    /* list: its path has a repeated element; group: its path names a group of columns */
    int list, group;
    int twice;          /* more than one column has the name asked for */
    char names[LISTED]; /* columns of strings, for a message */
    size_t used;
    char above[LISTED]; /* names of the groups that the walk is in, each with a dot */
    size_t above_used;
} walk;

static element read_element(walk *w)
{
    element e = {.type = -1};
    int type;
    w->left--;
    for (int id = 0; (type = thrift_field(w->t, &id));) {
        if (id == 1 && type == THRIFT_I32) e.type = thrift_int(w->t);
        else if (id == 3 && type == THRIFT_I32) e.repetition = thrift_int(w->t);
        else if (id == 4 && type == THRIFT_BYTES) e.name = thrift_bytes(w->t, &e.length);
        else if (id == 5 && type == THRIFT_I32) e.children = thrift_int(w->t);
        else if (id == 6 && type == THRIFT_I32) e.converted = thrift_int(w->t);
        else if (id == 7 && type == THRIFT_I32) e.scale = thrift_int(w->t);
        else thrift_skip(w->t, type);
    }
    return e;
}

/* Add the column e, whose groups are named in w->above, to those that a message lists. */
static void list_name(walk *w, const element *e)
{
    const size_t comma = w->used ? 2 : 0, above = w->above_used;
    if (e->type != SGT_PARQUET_BYTES || w->used + comma + above + e->length + 1 > LISTED) return;
    if (comma) memcpy(w->names + w->used, ", ", 2);
    if (above) memcpy(w->names + w->used + comma, w->above, above);
    if (e->name) memcpy(w->names + w->used + comma + above, e->name, e->length);
    w->used += comma + above + e->length;
    w->names[w->used] = 0;
}

/* Add "NAME." to w->above, or fill it up, so that columns with longer names are not listed. Return
 * its length before. */
static size_t enter_group(walk *w, const element *e)
{
    const size_t before = w->above_used;
    if (before + e->length + 1 > LISTED) w->above_used = LISTED;
    else {
        if (e->name) memcpy(w->above + before, e->name, e->length);
        w->above[before + e->length] = '.';
        w->above_used += e->length + 1;
    }
    return before;
}

/* Go from `rest`, what is left of the field above the element, past the element's name, in which
 * there may be dots. Return "" for the field's last name, NULL if the field is another. */
static const char *follow(const char *rest, const element *e)
{
    if (!rest || !e->name || !e->length || strnlen(rest, e->length) < e->length ||
        memcmp(rest, e->name, e->length))
        return NULL;
    rest += e->length;
    return *rest == '.' ? rest + 1 : *rest ? NULL : rest;
}

static void read_tree(walk *w, size_t depth, unsigned levels, const char *rest, int list);

static void read_children(walk *w, const element *e, size_t depth, unsigned levels,
                          const char *rest, int list)
{
    const size_t before = depth ? enter_group(w, e) : 0;
    w->group |= depth && rest && !*rest;
    for (int64_t i = 0; i < e->children && !w->t->wrong && !w->t->cut; i++)
        read_tree(w, depth + 1, levels, rest, list);
    w->above_used = before;
}

/* Read the element at `depth` and all below it. levels: definition level of its parent; rest: what
 * is left of the field below the parent (follow); list: whether a repeated element is above. */
static void read_tree(walk *w, size_t depth, unsigned levels, const char *rest, int list)
{
    if (!w->left || depth > DEPTH) w->t->wrong = 1;
    if (w->t->wrong || w->t->cut) return;
    const element e = read_element(w);
    if (depth) {
        rest = follow(rest, &e);
        levels += e.repetition == OPTIONAL || e.repetition == REPEATED;
        list |= e.repetition == REPEATED;
    }
    if (e.children > 0 || !depth) {
        read_children(w, &e, depth, levels, rest, list);
        return;
    }
    if (!list) list_name(w, &e);
    if (rest && !*rest) w->twice |= w->column != NONE;
    if (rest && !*rest && w->column == NONE) {
        w->column = w->leaf;
        w->type = e.type;
        w->is_unsigned = e.converted >= UINT_8 && e.converted <= UINT_64;
        w->decimal = e.converted == DECIMAL;
        w->scale = w->decimal ? e.scale : 0;
        w->levels = levels;
        w->list = list;
    }
    w->leaf++;
}

static int find_column(walk *w, const where *from, sgt_error *err)
{
    int type;
    w->left = thrift_list(w->t, &type);
    if (type != THRIFT_STRUCT) w->t->wrong = 1;
    read_tree(w, 0, 0, w->field, 0);
    if (w->t->wrong || w->t->cut) return SGT_OK; /* the caller reports these */
    /* a decimal of bytes is no string */
    const int good = w->type == SGT_PARQUET_BYTES ? !(from->kept && w->decimal)
                                                  : from->kept && sgt_parquet_width((int)w->type) &&
                                                        w->scale >= 0 && w->scale <= MOST_SCALE;
    if (w->twice)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: two columns are named \"%s\" (write the file with another name for "
                        "one of them)",
                        from->path, from->field);
    if (w->column != NONE && !w->list && good) return SGT_OK;
    if (from->kept)
        return sgt_fail(
            err, SGT_EFORMAT, "%s: --keep-fields: column \"%s\" %s", from->path, from->field,
            w->column == NONE && !w->group ? "is missing"
                                           : "holds neither strings nor numbers, one a row");
    if (w->group || (w->column != NONE && w->list))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: column \"%s\" holds lists or groups, not one string a row (--field "
                        "A.B names a column in a group; " LIST_HINT ")",
                        from->path, from->field);
    if (w->column != NONE)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: column \"%s\" does not hold strings (--field NAME says which has the "
                        "text: %s)",
                        from->path, from->field, w->used ? w->names : "no column here holds any");
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: no column \"%s\" (--field NAME says which has the text: %s)", from->path,
                    from->field, w->used ? w->names : "no column here holds strings");
}

/* ---- row groups ---- */

typedef struct chunk {
    int64_t type, codec, bytes, data, dictionary;
    int there, encrypted, elsewhere;
} chunk;

static void read_chunk_meta(thrift *t, chunk *c)
{
    int64_t v[12] = {[1] = -1, [4] = -1};
    thrift_numbers(t, v, 12);
    c->there = 1;
    c->type = v[1];
    c->codec = v[4];
    c->bytes = v[7];
    c->data = v[9];
    c->dictionary = v[11];
}

static chunk read_chunk(thrift *t)
{
    chunk c = {.type = -1, .codec = -1};
    size_t n;
    int type;
    for (int id = 0; (type = thrift_field(t, &id));) {
        if (id == 1 && type == THRIFT_BYTES) {
            thrift_bytes(t, &n);
            c.elsewhere = n > 0;
        } else if (id == 3 && type == THRIFT_STRUCT) read_chunk_meta(t, &c);
        else {
            c.encrypted |= id == 8 || id == 9;
            thrift_skip(t, type);
        }
    }
    return c;
}

/* type: the column's, by the schema */
static int check_chunk(const chunk *c, int type, const where *w, size_t group, sgt_error *err)
{
    const char *remedy;
    if (c->encrypted)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: column \"%s\" is encrypted (write it without encryption)", w->path,
                        w->field);
    if (c->elsewhere)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: row group %zu lies in another file (write it as one file)", w->path,
                        group);
    const char *codec = sgt_parquet_codec_lacks((int)c->codec, &remedy);
    if (c->there && c->codec >= 0 && c->codec < 100 && codec)
        return sgt_fail(err, SGT_EFORMAT, "%s: column \"%s\" is packed by %s (%s)", w->path,
                        w->field, codec, remedy);
    /* a dictionary offset of 0 means there is none, or that it is the first page */
    const int64_t at = c->dictionary > 0 && c->dictionary < c->data ? c->dictionary : c->data;
    if (!c->there || codec || c->type != type || at < 4 || c->bytes < 0 ||
        (uint64_t)at > w->offset || (uint64_t)c->bytes > w->offset - (uint64_t)at)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: offset %" PRIu64
                        ": damaged: row group %zu has no such bytes of column \"%s\"",
                        w->path, w->offset, group, w->field);
    return SGT_OK;
}

static int add_group(file_meta *m, const chunk *c, int64_t rows, size_t *room, const where *w,
                     sgt_error *err)
{
    if (!rows) return SGT_OK; /* an empty row group may have no bytes */
    int rc = check_chunk(c, m->type, w, m->count, err);
    if (rc < 0) return rc;
    if (rows < 0 || (uint64_t)rows > (uint64_t)INT64_MAX - m->rows)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: offset %" PRIu64 ": damaged: %" PRId64 " rows in row group %zu",
                        w->path, w->offset, rows, m->count);
    if ((rc = sgt_reserve(&m->groups, room, m->count + 1, sizeof *m->groups, w->path, err)) < 0)
        return rc;
    const uint64_t at =
        (uint64_t)(c->dictionary > 0 && c->dictionary < c->data ? c->dictionary : c->data);
    m->groups[m->count++] =
        (row_group){m->rows, (uint64_t)rows, at, at + (uint64_t)c->bytes, (int)c->codec};
    m->rows += (uint64_t)rows;
    return SGT_OK;
}

static int read_groups(file_meta *m, thrift *t, size_t column, const where *w, sgt_error *err)
{
    size_t room = 0;
    int type, rc = SGT_OK;
    for (size_t n = thrift_list(t, &type); n-- && !rc && !t->cut && !t->wrong;) {
        chunk mine = {0};
        int64_t rows = -1;
        for (int id = 0; (type = thrift_field(t, &id));) {
            if (id == 1 && type == THRIFT_LIST) {
                size_t chunks = thrift_list(t, &type);
                for (size_t i = 0; i < chunks && !t->cut && !t->wrong; i++) {
                    const chunk c = read_chunk(t);
                    if (i == column) mine = c;
                }
            } else if (id == 3 && type == THRIFT_I64) rows = thrift_int(t);
            else thrift_skip(t, type);
        }
        if (!t->cut && !t->wrong) rc = add_group(m, &mine, rows, &room, w, err);
    }
    return rc;
}

static void free_meta(file_meta *m)
{
    free(m->groups);
    *m = (file_meta){0};
}

/* Read the metadata, bytes[n]. Return SGT_EFORMAT for a file that is damaged, or whose column is
 * missing, encrypted, packed by another codec, or no single string per row. */
static int parse_meta(file_meta *m, const uint8_t *bytes, size_t n, const where *w, sgt_error *err)
{
    thrift t = {bytes, bytes + n, 0, 0}, schema = {0}, groups = {0};
    sgt_json_path path;
    int type, rc = sgt_json_path_set(&path, w->field, err);
    int64_t rows = -1;
    *m = (file_meta){0};
    if (rc < 0) return rc;
    for (int id = 0; (type = thrift_field(&t, &id));) {
        if (id == 2 && type == THRIFT_LIST) schema = t;
        if (id == 4 && type == THRIFT_LIST) groups = t;
        if (id == 3 && type == THRIFT_I64) rows = thrift_int(&t);
        else thrift_skip(&t, type);
    }
    walk found = {.t = &schema, .field = w->field, .column = NONE};
    int bad = t.cut || t.wrong || !schema.at || !groups.at;
    if (!bad) rc = find_column(&found, w, err);
    bad |= schema.cut || schema.wrong;
    m->levels = found.levels;
    m->type = (int)found.type;
    m->is_unsigned = found.is_unsigned;
    m->scale = (int)found.scale;
    if (!bad && !rc) rc = read_groups(m, &groups, found.column, w, err);
    bad |= groups.cut || groups.wrong || (uint64_t)rows != m->rows;
    if (!rc && bad)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: offset %" PRIu64 ": damaged: these are no Parquet metadata (fetch the "
                      "file again)",
                      w->path, w->offset);
    if (rc < 0) free_meta(m);
    return rc;
}

/* ---- heads of pages ---- */

/* Read a DataPageHeader or a DictionaryPageHeader: the fields needed here have the same numbers in
 * both. */
static void read_data(thrift *t, sgt_parquet_head *h, int64_t *rows)
{
    int64_t v[4] = {[2] = -1, [3] = RLE};
    thrift_numbers(t, v, 4);
    *rows = v[1];
    h->encoding = (int)v[2];
    h->level_encoding = (int)v[3];
}

static void read_data2(thrift *t, sgt_parquet_head *h, int64_t *rows, int64_t *levels)
{
    int64_t v[8] = {[4] = -1, [7] = 1};
    thrift_numbers(t, v, 8);
    *rows = v[1];
    h->encoding = (int)v[4];
    *levels = v[5];
    h->repeats = v[6] != 0;
    h->is_packed = v[7] != 0;
}

/* Read the head of a page at p[n]. Return NULL, or what is wrong; *more is 1 if more bytes than n
 * may complete the head. */
static const char *parse_head(sgt_parquet_head *h, const uint8_t *p, size_t n, int *more)
{
    thrift t = {p, p + n, 0, 0};
    int64_t unpacked = -1, packed = -1, rows = 0, levels = 0, kind = -1;
    int type;
    *h = (sgt_parquet_head){.level_encoding = RLE, .encoding = -1};
    for (int id = 0; (type = thrift_field(&t, &id));) {
        if (id >= 1 && id <= 4 && type == THRIFT_I32) {
            int64_t got = thrift_int(&t);
            if (id == 1) kind = got;
            if (id == 2) unpacked = got;
            if (id == 3) packed = got;
            if (id == 4) h->crc = (uint32_t)got;
            h->has_crc |= id == 4;
        } else if ((id == 5 || id == 7) && type == THRIFT_STRUCT) read_data(&t, h, &rows);
        else if (id == 8 && type == THRIFT_STRUCT) read_data2(&t, h, &rows, &levels);
        else thrift_skip(&t, type);
    }
    *more = t.cut;
    if (t.cut) return "cut off: the head of a page has no end";
    if (t.wrong || kind < 0 || kind > 1000 || packed < 0 || unpacked < 0 || rows < 0)
        return "damaged: this is no head of a page";
    h->kind = (int)kind;
    h->size = (size_t)(t.at - p);
    h->packed = (size_t)packed;
    h->unpacked = (size_t)unpacked;
    h->rows = (uint64_t)rows;
    h->levels = (size_t)levels;
    if (h->packed > SGT_PARQUET_PAGE || h->unpacked > SGT_PARQUET_PAGE)
        return "a page of more than 1 GiB (write smaller pages)";
    if (h->rows > SGT_PARQUET_PAGE_ROWS)
        return "a page of more than 4194304 rows (write smaller pages)";
    if (levels < 0 || h->levels > h->packed || h->levels > h->unpacked)
        return "damaged: more levels than bytes in a page";
    return NULL;
}

/* ---- the reader ---- */

struct sgt_parquet {
    sgt_parquet_request r;
    sgt_source *source;
    file_meta meta;
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

/* ---- the end of a file ---- */

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
    const where w = {p->r.file->path, at, p->r.field, p->r.kept};
    if ((rc = read_at(p, at, bytes, n, err)) == 0) rc = parse_meta(&p->meta, bytes, n, &w, err);
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
    free_meta(&p->meta);
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
    if (at < p->window_at || at - p->window_at > p->window_size ||
        p->window_size - (at - p->window_at) < n) {
        p->window_size = 0;
        const int rc = read_at(p, at, p->window, n, err);
        if (rc < 0) return rc;
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
        const char *why = parse_head(h, from, n, &more);
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
    return sgt_reserve(&u->pages, &u->page_room, u->page_count + 1, sizeof *u->pages,
                       "pages of a unit of work", err);
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
static int read_page(sgt_parquet *p, const row_group *g, sgt_unit *u, uint64_t *rows,
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
        const row_group *g = &p->meta.groups[p->group];
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
