/* parquet.c: reads the metadata at the end of a Parquet file and the headers of its pages, and goes
 * from page to page. The metadata and the headers are in Thrift's compact protocol; the field ids
 * here are those in parquet.thrift. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/input/parquet.h"
#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "tokenize/input/source.h"

#define DEPTH 64 /* maximum nesting depth of the schema and of skipped values */
/* the encoding RLE for definition levels, the only one supported; assumed if a page's header states
 * none */
#define RLE 3
#define LISTED 240    /* maximum size in bytes of the list of column names in an error message */
#define PATH 4096     /* maximum length in bytes of a column's path, "group.group.column" */
#define NONE SIZE_MAX /* index of no column */
#define ABSENT INT64_MIN
#define OPTIONAL 1
#define REPEATED 2
#define DECIMAL 5 /* converted type of decimals */
/* maximum number of digits after the decimal point in Parquet decimals that are stored in 64
 * bits */
#define MOST_SCALE 18
#define UINT_8 11 /* first of the converted types of unsigned integers, UINT_8 to UINT_64 */
#define UINT_64 14
#define LIST_HINT "--filter 'parquet=jsonl:COMMAND' can join the strings of a list"
#define MARK 4 /* size in bytes of the magic number PAR1 at both ends of a file */
/* size in bytes of a file's last fields: the length of the metadata, and the magic number */
#define TAIL 8
#define META ((uint64_t)256 << 20) /* maximum bytes of the metadata */
/* number of bytes that are read at first to parse a page's header; a longer header needs another
 * read */
#define HEAD ((size_t)4 << 10)
/* maximum size in bytes of a page's header, whose statistics may include long strings */
#define LONGEST_HEAD ((size_t)16 << 20)

/* A row group: consecutive rows of the file, whose columns are stored together. The fields say
 * where the group begins. It ends where the next group begins; the last element of `groups` has no
 * rows and begins at the metadata. */
typedef struct row_group {
    uint64_t row;    /* index in the file of the group's first row */
    uint64_t before; /* total size in bytes of the requested column in all earlier row groups */
    uint64_t at;     /* offset in the file of the column's first page in this group */
    int codec;
} row_group;

struct sgt_parquet {
    sgt_parquet_request r;
    sgt_source *source;
    uint64_t meta_at; /* offset of the metadata in the file */
    row_group *groups;
    /* count: number of row groups, not counting the last element, which marks the end; room: number
     * of elements allocated for `groups` */
    size_t count, room;
    sgt_parquet_column column;
    /* group: index of the current row group; end: index of the row group after the last one to
     * read */
    size_t group, end;
    uint64_t at;  /* offset in the file of the next page of the column */
    uint64_t row; /* index in the file of the first row of the page at `at` */
    /* number of rows of the page at `at` that were already delivered */
    uint64_t taken;
    sgt_parquet_shared *dictionary; /* the group's dictionary */
    /* average size in bytes of a string in the dictionary, for estimates; 0 without a dictionary */
    double word;
    sgt_parquet_shared *whole; /* the page at `at`, if it is shared */
    /* Hashes of what was read. hash: sum of the hashes of the metadata and of all pages before row
     * `covered` (sgt_parquet_hash); dictionary_hash: hash of the row group's dictionary; page_hash:
     * hash of the page at `at`; head_hash: hash of that page's header. */
    uint64_t hash, covered, dictionary_hash, page_hash, head_hash;
};

/* ---- Thrift's compact protocol ----
 *
 * After a failure, every read returns 0 and no further field is found, so callers check for failure
 * only once. A struct is read by a table of its fields. Nothing is copied: for a string, a list or
 * a struct in it, `place` is set to the position at which it begins, and it can be read later from
 * there.
 *
 *     int64_t rows = -1;
 *     thrift t = {.at = bytes, .end = bytes + n}, name = {0};
 *     const field fields[] = {{.id = 3, .number = &rows}, {4, THRIFT_BYTES, .place = &name}};
 *     read_struct(&t, fields, 2);
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
    int cut;   /* 1: the bytes end too early */
    int wrong; /* 1: the bytes violate the protocol or are nested too deeply */
} thrift;

typedef struct field {
    int id;
    /* type that the value must have, if `place` is set; a value of another type is skipped */
    int type;
    int64_t *number; /* where to store an integer or a boolean */
    thrift *place;
} field;

static uint64_t fail(thrift *t, int *why)
{
    *why = 1;
    t->at = t->end;
    return 0;
}

static uint8_t read_byte(thrift *t)
{
    return t->at < t->end ? *t->at++ : (uint8_t)fail(t, &t->cut);
}

static uint64_t read_varint(thrift *t)
{
    int bad = 0;
    const uint64_t n = sgt_parquet_varint(&t->at, t->end, &bad);
    return bad ? fail(t, t->at == t->end ? &t->cut : &t->wrong) : n;
}

static int64_t read_int(thrift *t)
{
    uint64_t n = read_varint(t);
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

/* Return the type of the next field, or 0 if the struct has ended. Set *id to the field's id. On
 * entry, *id is the id of the previous field, or 0 before the first field. */
static int next_field(thrift *t, int *id)
{
    uint8_t b = read_byte(t);
    if (t->cut || t->wrong || !b) return 0;
    int64_t next = b >> 4 ? *id + (b >> 4) : read_int(t);
    if (t->cut) return 0;
    if (next < 0 || next > INT16_MAX || !(b & 15) || (b & 15) > THRIFT_STRUCT)
        return (int)fail(t, &t->wrong);
    *id = (int)next;
    return b & 15;
}

/* Return the number of elements of a list, and set *type to their type. The number never exceeds
 * the number of bytes left. */
static size_t read_list(thrift *t, int *type)
{
    uint8_t b = read_byte(t);
    uint64_t n = b >> 4 == 15 ? read_varint(t) : b >> 4;
    *type = b & 15;
    return n > (uint64_t)(t->end - t->at) ? (size_t)fail(t, &t->cut) : (size_t)n;
}

/* Advance past n bytes. */
static void pass(thrift *t, uint64_t n)
{
    if ((uint64_t)(t->end - t->at) < n) fail(t, &t->cut);
    else t->at += n;
}

/* Return the bytes of a string, and set *n to their number, or to 0 if the string is cut off. */
static const uint8_t *read_bytes(thrift *t, size_t *n)
{
    const uint64_t length = read_varint(t);
    const uint8_t *bytes = t->at;
    pass(t, length);
    *n = t->cut || t->wrong ? 0 : (size_t)length;
    return bytes;
}

/* Skip a value of any type that Parquet's structs use (maps are not among them). in_list: 1 if the
 * value is an element of a list. A boolean takes one byte there; in a struct, it is part of the
 * field's type. */
static void skip(thrift *t, int type, int in_list, int depth)
{
    int id = 0, of = 0;
    uint64_t n;
    if (depth == DEPTH) type = 0;
    switch (type) {
    case THRIFT_TRUE:
    case THRIFT_FALSE: pass(t, (uint64_t)in_list); break;
    case THRIFT_BYTE: pass(t, 1); break;
    case THRIFT_I16:
    case THRIFT_I32:
    case THRIFT_I64: read_varint(t); break;
    case THRIFT_DOUBLE: pass(t, 8); break;
    case THRIFT_BYTES: pass(t, read_varint(t)); break;
    case THRIFT_LIST:
    case THRIFT_SET:
        for (n = read_list(t, &of); n-- && !t->cut && !t->wrong;) skip(t, of, 1, depth + 1);
        break;
    case THRIFT_STRUCT:
        while ((of = next_field(t, &id))) skip(t, of, 0, depth + 1);
        break;
    default: fail(t, &t->wrong);
    }
}

/* Read a struct: store the fields that `fields` lists, and skip all others. The `number` or `place`
 * of a field that is missing stays unchanged. */
static void read_struct(thrift *t, const field *fields, size_t count)
{
    int type;
    for (int id = 0; (type = next_field(t, &id));) {
        const int is_bool = type <= THRIFT_FALSE,
                  is_number = is_bool || type == THRIFT_I32 || type == THRIFT_I64;
        const field *f = fields;
        while (f < fields + count && (f->id != id || (f->number ? !is_number : type != f->type)))
            f++;
        if (f < fields + count && f->number) {
            *f->number = is_bool ? type == THRIFT_TRUE : read_int(t);
            continue;
        }
        if (f < fields + count) *f->place = *t;
        skip(t, type, 0, 0);
    }
}

#define FIELDS(fields) fields, sizeof fields / sizeof *fields

/* ---- the schema: a tree, stored as a list of elements in depth-first order ---- */

typedef struct walk {
    thrift *t;
    const char *field;
    size_t left;   /* elements of the list not read yet */
    size_t leaf;   /* number of columns read so far */
    size_t column; /* index of the requested column; NONE if it is not found */
    int64_t type, converted, scale;
    unsigned levels;
    /* list: 1 if the column's path includes a repeated element; group: 1 if the requested name is
     * the name of a group */
    int list, group;
    int twice;          /* 1 if several columns have the requested name */
    char names[LISTED]; /* names of the string columns, for an error message */
    size_t used;
    /* path of the element being read: names of its groups and its own name, joined by dots */
    char path[PATH];
} walk;

/* Append the column name, the n bytes at w->path, to the names for an error message. */
static void list_name(walk *w, size_t n)
{
    const size_t comma = w->used ? 2 : 0;
    if (w->used + comma + n + 1 > LISTED) return;
    memcpy(w->names + w->used, ", ", comma);
    memcpy(w->names + w->used + comma, w->path, n);
    w->used += comma + n;
    w->names[w->used] = 0;
}

/* Read the schema element at `depth`, and all elements below it. levels: number of optional or
 * repeated elements above it; list: 1 if an element above it is repeated; n: length of the parent's
 * path in w->path. */
static void read_tree(walk *w, size_t depth, unsigned levels, int list, size_t n)
{
    int64_t type = -1, repetition = 0, children = 0, converted = 0, scale = 0;
    thrift name = {0};
    const field fields[] = {
        {1, .number = &type},     {3, .number = &repetition}, {4, THRIFT_BYTES, .place = &name},
        {5, .number = &children}, {6, .number = &converted},  {7, .number = &scale}};
    if (!w->left || depth > DEPTH) w->t->wrong = 1;
    if (w->t->wrong || w->t->cut) return;
    w->left--;
    read_struct(w->t, FIELDS(fields));
    if (depth) {
        size_t length = 0;
        const uint8_t *bytes = name.at ? read_bytes(&name, &length) : NULL;
        /* truncate a name that does not fit; a column with such a long name is not found */
        if (length >= PATH - 1 - n) length = PATH - 1 - n;
        if (length) memcpy(w->path + n, bytes, length);
        n += length;
        levels += repetition == OPTIONAL || repetition == REPEATED;
        list |= repetition == REPEATED;
    }
    const int found = depth && n == strlen(w->field) && !memcmp(w->path, w->field, n);
    if (children > 0 || !depth) {
        w->group |= found;
        if (depth) w->path[n] = '.';
        n += depth && n < PATH - 1;
        for (int64_t i = 0; i < children && !w->t->wrong && !w->t->cut; i++)
            read_tree(w, depth + 1, levels, list, n);
        return;
    }
    if (!list && type == SGT_PARQUET_BYTES) list_name(w, n);
    w->twice |= found && w->column != NONE;
    if (found && w->column == NONE) {
        w->column = w->leaf;
        w->type = type;
        w->converted = converted;
        w->scale = converted == DECIMAL ? scale : 0;
        w->levels = levels;
        w->list = list;
    }
    w->leaf++;
}

/* Find the requested column. If the metadata are damaged, return SGT_OK; the caller checks w->t. */
static int find_column(walk *w, const sgt_parquet *p, sgt_error *err)
{
    const char *path = p->r.file->path, *name = p->r.field;
    const int kept = p->r.kept;
    int type;
    w->left = read_list(w->t, &type);
    if (type != THRIFT_STRUCT) w->t->wrong = 1;
    read_tree(w, 0, 0, 0, 0);
    if (w->t->wrong || w->t->cut) return SGT_OK;
    /* byte columns hold strings, unless they store decimals */
    const int there = w->column != NONE, good = w->type == SGT_PARQUET_BYTES
                                                    ? !(kept && w->converted == DECIMAL)
                                                    : kept && sgt_parquet_width((int)w->type) &&
                                                          w->scale >= 0 && w->scale <= MOST_SCALE;
    if (w->twice)
        return sgt_fail(err, SGT_EFORMAT, "%s: two columns are named \"%s\" (rename one of them)",
                        path, name);
    if (there && !w->list && good) return SGT_OK;
    if (kept)
        return sgt_fail(err, SGT_EFORMAT, "%s: --keep-fields: column \"%s\" %s", path, name,
                        there || w->group ? "does not hold one string or number per row"
                                          : "is missing");
    if (w->group || (there && w->list))
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: column \"%s\" holds lists or groups, not one string per row (--field "
                        "A.B names a column in a group; " LIST_HINT ")",
                        path, name);
    return sgt_fail(err, SGT_EFORMAT,
                    "%s: %s \"%s\"%s (--field NAME selects the column with the text: %s)", path,
                    there ? "column" : "no column", name, there ? " does not hold strings" : "",
                    w->used ? w->names : "no column of this file holds strings");
}

static int damaged(const sgt_parquet *p, uint64_t offset, const char *why, sgt_error *err)
{
    sgt_fail(err, SGT_EFORMAT, "%s: offset %" PRIu64 ": %s", p->r.file->path, offset, why);
    sgt_fail_hint(err, SGT_EFORMAT, "fetch the file again");
    return SGT_EFORMAT;
}

/* ---- row groups ---- */

/* What the metadata say about the pages of the column in one row group. */
typedef struct chunk {
    int64_t type, codec, bytes, data, dictionary;
    thrift meta, elsewhere, encrypted;
} chunk;

static void read_chunk(thrift *t, chunk *c)
{
    const field meta[] = {{1, .number = &c->type},
                          {4, .number = &c->codec},
                          {7, .number = &c->bytes},
                          {9, .number = &c->data},
                          {11, .number = &c->dictionary}};
    const field fields[] = {{1, THRIFT_BYTES, .place = &c->elsewhere},
                            {3, THRIFT_STRUCT, .place = &c->meta},
                            {8, THRIFT_STRUCT, .place = &c->encrypted},
                            {9, THRIFT_BYTES, .place = &c->encrypted}};
    read_struct(t, FIELDS(fields));
    if (c->meta.at) read_struct(&c->meta, FIELDS(meta));
}

/* Append a row group of `rows` rows; c describes the column's pages in it. */
static int add_group(sgt_parquet *p, chunk *c, int64_t rows, sgt_error *err)
{
    const char *path = p->r.file->path, *name = p->r.field;
    const char *remedy, *codec = sgt_parquet_codec_lacks(c->codec, &remedy);
    /* a dictionary offset of 0 means that there is no dictionary, or that the dictionary is the
     * first page */
    const int64_t at = c->dictionary > 0 && c->dictionary < c->data ? c->dictionary : c->data;
    size_t elsewhere = 0;
    if (!rows) return SGT_OK; /* an empty row group may lack pages */
    if (c->encrypted.at)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: column \"%s\" is encrypted (write it without encryption)", path, name);
    if (c->elsewhere.at) read_bytes(&c->elsewhere, &elsewhere);
    if (elsewhere)
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: row group %zu is stored in a separate file (write the data as one file)", path,
            p->count);
    if (c->meta.at && c->codec >= 0 && c->codec < 100 && codec)
        return sgt_fail(err, SGT_EFORMAT, "%s: column \"%s\" is compressed with %s (%s)", path,
                        name, codec, remedy);
    if (!c->meta.at || codec || c->type != p->column.type || at < MARK || c->bytes < 0 ||
        (uint64_t)at > p->meta_at || (uint64_t)c->bytes > p->meta_at - (uint64_t)at || rows < 0 ||
        (uint64_t)rows > (uint64_t)INT64_MAX - p->groups[p->count].row)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: offset %" PRIu64 ": damaged: row group %zu states impossible sizes "
                        "for column \"%s\" (fetch the file again)",
                        path, p->meta_at, p->count, name);
    int rc = sgt_reserve(&p->groups, &p->room, p->count + 2, sizeof *p->groups, path, err);
    if (rc < 0) return rc;
    row_group *g = &p->groups[p->count++];
    g->at = (uint64_t)at;
    g->codec = (int)c->codec;
    g[1] = (row_group){g->row + (uint64_t)rows, g->before + (uint64_t)c->bytes, p->meta_at, 0};
    return SGT_OK;
}

static int read_groups(sgt_parquet *p, thrift *t, size_t column, sgt_error *err)
{
    int type, rc = sgt_reserve(&p->groups, &p->room, 1, sizeof *p->groups, p->r.file->path, err);
    if (!rc) p->groups[0] = (row_group){.at = p->meta_at};
    for (size_t n = read_list(t, &type); n-- && !rc && !t->cut && !t->wrong;) {
        chunk c = {.type = -1, .codec = -1};
        int64_t rows = -1;
        thrift chunks = {0};
        const field fields[] = {{1, THRIFT_LIST, .place = &chunks}, {3, .number = &rows}};
        read_struct(t, FIELDS(fields));
        const size_t count = chunks.at ? read_list(&chunks, &type) : 0;
        for (size_t i = 0; i < column && i < count; i++) skip(&chunks, type, 1, 0);
        if (column < count) read_chunk(&chunks, &c);
        t->wrong |= chunks.cut || chunks.wrong;
        if (!t->cut && !t->wrong) rc = add_group(p, &c, rows, err);
    }
    return rc;
}

/* Parse the metadata, the n bytes at `bytes`. Return SGT_EFORMAT if the metadata is damaged, or if
 * the column is missing, is encrypted, is compressed by an unsupported codec, or does not have one
 * string per row. */
static int parse_meta(sgt_parquet *p, const uint8_t *bytes, size_t n, sgt_error *err)
{
    thrift t = {.at = bytes, .end = bytes + n}, schema = {0}, groups = {0};
    int64_t rows = -1;
    const field fields[] = {{2, THRIFT_LIST, .place = &schema},
                            {3, .number = &rows},
                            {4, THRIFT_LIST, .place = &groups}};
    int rc = SGT_OK;
    read_struct(&t, FIELDS(fields));
    walk found = {.t = &schema, .field = p->r.field, .column = NONE};
    int bad = t.cut || t.wrong || !schema.at || !groups.at;
    if (!bad) rc = find_column(&found, p, err);
    bad |= schema.cut || schema.wrong;
    p->column =
        (sgt_parquet_column){.type = (int)found.type,
                             .is_unsigned = found.converted >= UINT_8 && found.converted <= UINT_64,
                             .scale = (int)found.scale,
                             .levels = found.levels};
    if (!bad && !rc) rc = read_groups(p, &groups, found.column, err);
    bad |= groups.cut || groups.wrong;
    if (rc < 0 || !(bad || (uint64_t)rows != p->groups[p->count].row)) return rc;
    return damaged(p, p->meta_at, "damaged: invalid Parquet metadata", err);
}

/* ---- heads of pages ---- */

/* Parse the header of a page in the n bytes at p. Return NULL if it is valid, or else a text that
 * says what is wrong. Set *more to 1 if the header only ends too early, so that the caller should
 * try again with more bytes. */
static const char *parse_head(sgt_parquet_head *h, const uint8_t *p, size_t n, int *more)
{
    thrift t = {.at = p, .end = p + n}, data = {0}, data2 = {0};
    int64_t kind = -1, unpacked = -1, packed = -1, crc = ABSENT;
    int64_t rows = 0, encoding = -1, level_encoding = RLE, levels = 0, repeats = 0, is_packed = 1;
    const field head[] = {{1, .number = &kind},
                          {2, .number = &unpacked},
                          {3, .number = &packed},
                          {4, .number = &crc},
                          {5, THRIFT_STRUCT, .place = &data},
                          {7, THRIFT_STRUCT, .place = &data}, /* the header of a dictionary page */
                          {8, THRIFT_STRUCT, .place = &data2}};
    /* the headers of data pages and dictionary pages use the same ids for the fields needed here */
    const field fields[] = {
        {1, .number = &rows}, {2, .number = &encoding}, {3, .number = &level_encoding}};
    const field fields2[] = {{1, .number = &rows},
                             {4, .number = &encoding},
                             {5, .number = &levels},
                             {6, .number = &repeats},
                             {7, .number = &is_packed}};
    read_struct(&t, FIELDS(head));
    if (data.at) read_struct(&data, FIELDS(fields));
    if (data2.at) read_struct(&data2, FIELDS(fields2));
    *more = t.cut;
    if (t.cut) return "truncated: a page header has no end";
    if (t.wrong || kind < 0 || kind > 1000 || packed < 0 || unpacked < 0 || rows < 0)
        return "damaged: invalid page header";
    if ((uint64_t)packed > SGT_PARQUET_PAGE || (uint64_t)unpacked > SGT_PARQUET_PAGE)
        return "a page of more than 1 GiB (write smaller pages)";
    if ((uint64_t)rows > SGT_PARQUET_PAGE_ROWS)
        return "a page of more than 4194304 rows (write smaller pages)";
    if (levels < 0 || levels > packed || levels > unpacked)
        return "damaged: the levels of a page are longer than the page";
    *h = (sgt_parquet_head){.kind = (int)kind,
                            .size = (size_t)(t.at - p),
                            .packed = (size_t)packed,
                            .unpacked = (size_t)unpacked,
                            .rows = (uint64_t)rows,
                            .encoding = (int)encoding,
                            .level_encoding = (int)level_encoding,
                            .levels = (size_t)levels,
                            .repeats = repeats != 0,
                            .is_packed = is_packed != 0,
                            .has_crc = crc != ABSENT,
                            .crc = (uint32_t)crc};
    return NULL;
}

/* ---- the reader ---- */

/* Read n bytes into `to`, starting at offset `at` of the file. */
static int read_at(sgt_parquet *p, uint64_t at, uint8_t *to, size_t n, sgt_error *err)
{
    size_t got = 0;
    int end = 0, rc = SGT_OK;
    if (sgt_source_raw(p->source) != at) rc = sgt_source_seek(p->source, at, err);
    if (!rc) rc = sgt_source_read(p->source, to, &got, n, &end, err);
    if (!rc && got < n) rc = damaged(p, at + got, "truncated: the file ends here", err);
    return rc;
}

/* ---- the end of a file ---- */

/* Find the metadata: set p->meta_at to its offset and *n to its size. */
static int read_tail(sgt_parquet *p, size_t *n, sgt_error *err)
{
    const sgt_corpus_file *f = p->r.file;
    uint8_t mark[MARK] = {0}, tail[TAIL];
    uint32_t length;
    int rc = f->size < MARK + TAIL ? SGT_OK : read_at(p, 0, mark, MARK, err);
    if (rc < 0) return rc;
    if (memcmp(mark, "PAR1", MARK) && memcmp(mark, "PARE", MARK))
        return damaged(p, 0,
                       "not a Parquet file: it does not begin with PAR1, or has fewer than 12 "
                       "bytes (--format text reads it as text)",
                       err);
    if ((rc = read_at(p, f->size - TAIL, tail, TAIL, err)) < 0) return rc;
    if (!memcmp(mark, "PARE", MARK) || !memcmp(tail + 4, "PARE", MARK))
        return sgt_fail(err, SGT_EFORMAT, "%s: encrypted (write it without encryption)", f->path);
    if (memcmp(tail + 4, "PAR1", MARK))
        return damaged(p, f->size - MARK,
                       "truncated: a Parquet file ends with PAR1, but this one does not", err);
    memcpy(&length, tail, sizeof length);
    if (length > META || length > f->size - MARK - TAIL)
        return damaged(p, f->size - TAIL,
                       "damaged: the metadata exceed 256 MiB or the size of the file (fetch the "
                       "file again, or write fewer row groups and columns)",
                       err);
    *n = length;
    p->meta_at = f->size - TAIL - length;
    return SGT_OK;
}

static int read_meta(sgt_parquet *p, sgt_error *err)
{
    size_t n = 0;
    int rc = read_tail(p, &n, err);
    if (rc < 0) return rc;
    uint8_t *bytes = malloc(n + 1);
    if (!bytes) return sgt_fail_memory(err, p->r.file->path);
    if ((rc = read_at(p, p->meta_at, bytes, n, err)) == 0) rc = parse_meta(p, bytes, n, err);
    if (!rc && !p->r.file->from) p->hash = XXH3_64bits(bytes, n);
    free(bytes);
    return rc;
}

/* Go to the beginning of row group i, which may be the sentinel after the last group. */
static void begin_group(sgt_parquet *p, size_t i)
{
    sgt_parquet_shared_drop(&p->dictionary);
    sgt_parquet_shared_drop(&p->whole);
    p->dictionary_hash = 0;
    p->word = 0;
    p->group = i;
    p->at = p->groups[i].at;
    p->row = p->groups[i].row;
    p->taken = 0;
}

/* Return the number of row groups whose middle is before byte `at` of the file. Only one column is
 * used to estimate the middle of a group: if the middle of the column's pages in the group is at x
 * % of the column's bytes, the middle of the group is taken to be at x % of the file. */
static size_t groups_before(const sgt_parquet *p, uint64_t at)
{
    const double all = (double)p->groups[p->count].before, twice = 2 * (double)at;
    const row_group *g = p->groups;
    while (g < p->groups + p->count &&
           (double)(g->before + g[1].before) / all * (double)p->r.file->size < twice)
        g++;
    return (size_t)(g - p->groups);
}

/* Go to the first row group of the file's range. Then skip the groups that the hash of an earlier
 * run covers, because that run has read all of them. */
static void begin_range(sgt_parquet *p)
{
    const sgt_corpus_file *f = p->r.file;
    const int all = p->r.kept;
    p->end = f->end && !all ? groups_before(p, f->end) : p->count;
    begin_group(p, all ? 0 : groups_before(p, f->from));
    p->covered = all ? p->r.row : p->row;
    if (p->r.hashed > p->covered) {
        p->covered = p->r.hashed;
        p->hash = p->r.hash;
    }
    while (p->group < p->end && p->groups[p->group + 1].row <= p->covered)
        begin_group(p, p->group + 1);
}

int sgt_parquet_open(sgt_parquet **out, const sgt_parquet_request *r, sgt_error *err)
{
    sgt_parquet *p = calloc(1, sizeof *p);
    if (!p) return sgt_fail_memory(err, r->file->path);
    p->r = *r;
    int rc = sgt_source_open(&p->source, r->file, r->stop, r->cancel, err);
    if (!rc) rc = read_meta(p, err);
    if (!rc && r->row > p->groups[p->count].row)
        rc = sgt_fail(err, SGT_EFORMAT,
                      "%s: has %" PRIu64 " rows, but the interrupted run had read %" PRIu64
                      " (--force starts over)",
                      r->file->path, p->groups[p->count].row, r->row);
    if (rc < 0) sgt_parquet_close(p);
    else {
        begin_range(p);
        *out = p;
    }
    return rc;
}

void sgt_parquet_close(sgt_parquet *p)
{
    if (!p) return;
    sgt_source_close(p->source);
    sgt_parquet_shared_drop(&p->dictionary);
    sgt_parquet_shared_drop(&p->whole);
    free(p->groups);
    free(p);
}

void sgt_parquet_size(const sgt_parquet *p, uint64_t *rows, uint64_t *bytes)
{
    *rows = p->groups[p->count].row;
    *bytes = p->groups[p->count].before;
}

uint64_t sgt_parquet_hash(const sgt_parquet *p, uint64_t *covered)
{
    *covered = p->covered;
    return p->hash;
}

uint64_t sgt_parquet_raw(const sgt_parquet *p)
{
    const uint64_t all = sgt_corpus_share(p->r.file), from = p->r.file->from,
                   done = p->at > from ? p->at - from : 0;
    return p->group == p->end || done > all ? all : done;
}

/* ---- pages ---- */

/* Read the header of the page at p->at into *h. Its bytes are needed only briefly, so they are read
 * into the free space after u's text, where the next read overwrites them. */
static int read_head(sgt_parquet *p, uint64_t end, sgt_unit *u, sgt_parquet_head *h, sgt_error *err)
{
    const uint64_t left = end - p->at;
    for (size_t n = HEAD;; n *= 2) {
        if (n > left) n = (size_t)left;
        int more, rc = sgt_unit_reserve(u, u->used + n, err);
        if (!rc) rc = read_at(p, p->at, u->text + u->used, n, err);
        if (rc < 0) return rc;
        const uint8_t *bytes = u->text + u->used;
        const char *why = parse_head(h, bytes, n, &more);
        if (!why && h->packed > left - h->size) why = "damaged: a page is longer than its column";
        if (!why) {
            p->head_hash = XXH3_64bits_withSeed(bytes, h->size, p->at);
            return SGT_OK;
        }
        if (!more || n == left || n >= LONGEST_HEAD) return damaged(p, p->at, why, err);
    }
}

/* Read the compressed bytes of the page at p->at into `to`, and set *hash to their hash. */
static int read_packed(sgt_parquet *p, const sgt_parquet_head *h, uint8_t *to, uint64_t *hash,
                       sgt_error *err)
{
    const int rc = read_at(p, p->at + h->size, to, h->packed, err);
    if (!rc) *hash = XXH3_64bits_withSeed(to, h->packed, p->head_hash);
    return rc;
}

static int read_dictionary(sgt_parquet *p, const sgt_parquet_head *h, sgt_error *err)
{
    if (p->dictionary) return damaged(p, p->at, "damaged: the column has a second dictionary", err);
    sgt_parquet_page page = {.head = *h, .codec = p->groups[p->group].codec, .column = p->column};
    /* a dictionary contains no null strings, so it has no definition levels */
    page.column.levels = 0;
    uint8_t *packed;
    int rc = sgt_parquet_shared_new(&p->dictionary, &page, &packed, err);
    if (h->rows) p->word = (double)h->unpacked / (double)h->rows;
    return rc < 0 ? rc : read_packed(p, h, packed, &p->dictionary_hash, err);
}

/* Estimate the uncompressed size in bytes of `rows` rows of a page. */
static size_t text_bytes(const sgt_parquet *p, const sgt_parquet_head *h, uint64_t rows)
{
    const double word = sgt_parquet_has_indices(h) ? p->word : 0;
    return (size_t)(((double)h->unpacked / (double)h->rows + word) * (double)rows);
}

/* Read the compressed bytes of a page to the end of u's text, and reserve room after them for
 * decompressing the unit's rows. text: estimated uncompressed size in bytes of this page's rows. */
static int read_behind(sgt_parquet *p, const sgt_parquet_head *h, sgt_unit *u, size_t text,
                       sgt_error *err)
{
    /* a damaged header may state any size, so if the estimate is implausibly large, do not reserve
     * it */
    const size_t all = u->unpacked + text, likely = all < SGT_PARQUET_LIKELY ? all : 0;
    /* reserve a quarter more, in case the rows are larger than estimated: growing the buffer later
     * would copy it */
    const int rc = sgt_unit_reserve(u, u->used + h->packed + likely + likely / 4, err);
    return rc < 0 ? rc : read_packed(p, h, u->text + u->used, &p->page_hash, err);
}

/* Add the next rows of the page at p->at to u, at most SGT_PARQUET_ROWS of them. A page with more
 * rows becomes a shared page: it is read only once, and this call and the next ones take rows from
 * it. */
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
                             .codec = p->groups[p->group].codec,
                             .column = p->column,
                             .dictionary = p->dictionary};
    uint8_t *to;
    int rc = sgt_reserve(&u->pages, &u->page_room, u->page_count + 1, sizeof *u->pages,
                         "pages of a unit of work", err);
    if (!rc && h->rows <= SGT_PARQUET_ROWS) {
        rc = read_behind(p, h, u, page.text, err);
        u->used += h->packed;
    } else if (!rc && !p->whole) {
        rc = sgt_parquet_shared_new(&p->whole, &page, &to, err);
        if (!rc) rc = read_packed(p, h, to, &p->page_hash, err);
    }
    if (rc < 0) return rc;
    page.whole = sgt_parquet_shared_use(p->whole);
    sgt_parquet_shared_use(p->dictionary);
    u->pages[u->page_count++] = page;
    p->taken += *rows = n;
    return SGT_OK;
}

/* Advance past the page at p->at, which has the header *h and `rows` rows. Add its hash to p->hash,
 * unless the hash of an earlier run covers the page. */
static void pass_page(sgt_parquet *p, const sgt_parquet_head *h, uint64_t rows)
{
    p->at += h->size + h->packed;
    if (p->row + rows > p->covered) {
        p->hash += p->page_hash;
        if (p->row == p->groups[p->group].row) p->hash += p->dictionary_hash;
        p->covered = p->row + rows;
    }
    p->row += rows;
    p->taken = 0;
    sgt_parquet_shared_drop(&p->whole);
}

/* Add the next rows of the page at p->at to u, at most SGT_PARQUET_ROWS of them. Advance past the
 * page after its last rows. Set *rows to the number of rows added. A page without rows, such as a
 * dictionary, leaves *rows unchanged. */
static int read_page(sgt_parquet *p, const row_group *g, sgt_unit *u, uint64_t *rows,
                     sgt_error *err)
{
    const uint64_t end = g->at + g[1].before - g->before;
    sgt_parquet_head h;
    if (p->at >= end)
        return damaged(p, p->at, "damaged: the row group has more rows than its pages", err);
    int rc = read_head(p, end, u, &h, err);
    if (rc < 0) return rc;
    if (h.kind != SGT_PARQUET_DATA && h.kind != SGT_PARQUET_DATA2) {
        if (h.kind == SGT_PARQUET_DICTIONARY) rc = read_dictionary(p, &h, err);
        if (!rc) pass_page(p, &h, 0);
        return rc;
    }
    if (h.rows > g[1].row - p->row)
        return damaged(p, p->at, "damaged: the row group has fewer rows than its pages", err);
    if (p->row + p->taken < p->r.row)
        p->taken = p->row + h.rows <= p->r.row ? h.rows : p->r.row - p->row;
    if (p->taken < h.rows) rc = add_page(p, &h, u, rows, err);
    /* An earlier run delivered all rows of this page, but the hash it saved does not include the
     * page. Read the page again only to hash it. */
    else if (p->row + h.rows > p->covered) rc = read_behind(p, &h, u, 0, err);
    if (rc < 0) return rc;
    if (p->taken == h.rows) pass_page(p, &h, h.rows);
    return SGT_OK;
}

/* Skip the rest of the current row group, because its next page cannot be found. Return the number
 * of rows skipped. */
static uint64_t pass_rest(sgt_parquet *p)
{
    const uint64_t row = p->row + p->taken, from = row < p->r.row ? p->r.row : row;
    begin_group(p, p->group + 1);
    if (p->covered < p->row) p->covered = p->row;
    return p->row - from;
}

int sgt_parquet_next(sgt_parquet *p, sgt_unit *u, uint64_t *rows, sgt_error *err)
{
    const int skip = p->r.file->skip_bad && !p->r.kept;
    sgt_error why;
    int rc = SGT_OK;
    *rows = 0;
    while (!rc && !*rows && p->group < p->end) {
        const row_group *g = &p->groups[p->group];
        if (p->row == g[1].row) begin_group(p, p->group + 1);
        else if ((rc = read_page(p, g, u, rows, &why)) == SGT_EFORMAT && skip) {
            *rows = pass_rest(p);
            rc = SGT_OK;
        }
    }
    if (rc < 0 && err) *err = why;
    if (rc < 0 || *rows) return rc;
    /* After the last row, go to the end of the file. Reading no bytes there still checks that the
     * file has not changed since it was listed. */
    rc = read_at(p, p->r.file->size, u->text, 0, err);
    return rc < 0 ? rc : 1;
}
