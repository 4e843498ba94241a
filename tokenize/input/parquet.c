/* parquet.c: reads the metadata at the end of a Parquet file and the headers of its pages, and
 * advances from page to page. The metadata and the headers are encoded in Thrift's compact
 * protocol. The field ids in this file are those of parquet.thrift. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/input/parquet.h"
#include "loader/base/file.h"
#include "loader/base/memory.h"
#include "tokenize/input/source.h"

#define DEPTH 64 /* maximum nesting depth of the schema, and of values that are skipped */
/* the encoding RLE, which is the only supported encoding of definition levels, and is assumed if
 * the header of a page states no encoding */
#define RLE 3
#define LISTED 240 /* maximum size in bytes of a list of column names in an error message */
/* maximum length in bytes of the path of a column, such as "group.group.column" */
#define PATH 4096
#define NONE SIZE_MAX /* index of no column */
#define ABSENT INT64_MIN
#define OPTIONAL 1
#define REPEATED 2
#define DECIMAL 5 /* converted type of decimals */
/* maximum number of digits after the decimal point of a Parquet decimal that is stored in 64
 * bits */
#define MOST_SCALE 18
#define UINT_8 11 /* the converted types of unsigned integers are UINT_8 to UINT_64 */
#define UINT_64 14
#define LIST_HINT "--filter 'parquet=jsonl:COMMAND' can join the strings of a list"
#define MARK 4 /* size in bytes of the magic number PAR1, which is at both ends of a file */
/* size in bytes of the end of a file, which consists of the length of the metadata and the magic
 * number */
#define TAIL 8
#define META ((uint64_t)256 << 20) /* maximum bytes of the metadata */
/* number of bytes that are read first to parse the header of a page; if the header is longer, twice
 * as many bytes are read next */
#define HEAD ((size_t)4 << 10)
/* maximum size in bytes of the header of a page; it may be large, because it may contain long
 * strings as statistics */
#define LONGEST_HEAD ((size_t)16 << 20)

/* A row group: consecutive rows of the file, whose columns are stored together. The fields say
 * where the row group begins. A row group ends where the next one begins. For this reason, the
 * array `groups` has an additional last element, which has no rows and begins at the metadata. */
typedef struct row_group {
    uint64_t row; /* index, in the file, of the first row of the group */
    /* total size in bytes of the column's pages in all row groups before this one */
    uint64_t before;
    uint64_t at; /* offset, in the file, of the column's first page in this row group */
    int codec;
} row_group;

struct sgt_parquet {
    sgt_parquet_request r;
    sgt_source *source;
    uint64_t meta_at; /* offset of the metadata in the file */
    row_group *groups;
    /* count: number of row groups, without the last element of `groups`, which marks the end. room:
     * number of elements for which `groups` has memory. */
    size_t count, room;
    sgt_parquet_column column;
    /* index of the current row group, and index of the row group before which reading ends */
    size_t group, end;
    uint64_t at;  /* offset, in the file, of the next page of the column */
    uint64_t row; /* index, in the file, of the first row of the page at `at` */
    /* number of rows of the page at `at` that have been delivered */
    uint64_t taken;
    sgt_parquet_shared *dictionary; /* the group's dictionary */
    /* average size in bytes of a string in the dictionary, for estimates; 0 if there is no
     * dictionary */
    double word;
    /* the page at `at` if it is a shared page (see parquet.h); otherwise NULL */
    sgt_parquet_shared *whole;
    /* Hashes with which a resumed run checks that the file has not changed. hash: sum of the hashes
     * of the metadata and of all pages before the row with index `covered` (sgt_parquet_hash).
     * dictionary_hash: hash of the dictionary of the current row group. page_hash: hash of the page
     * at `at`. head_hash: hash of the header of this page. */
    uint64_t hash, covered, dictionary_hash, page_hash, head_hash;
};

/* ---- Thrift's compact protocol ----
 *
 * After a failure, every read returns 0, and no further field is found, so callers need to check
 * for a failure only once. A struct is read with a table that lists the fields that the caller
 * wants. Integers are stored in variables of the caller. Strings, lists and structs inside the
 * struct are not copied: `place` of the field is set to the position at which the value begins,
 * from which the caller can read the value later.
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
    int wrong; /* 1: the bytes violate the protocol, or values are nested too deeply */
} thrift;

typedef struct field {
    int id;
    /* type that the value must have if `place` is set; a value of a different type is skipped */
    int type;
    int64_t *number; /* variable in which the value is stored, if it is an integer or a boolean */
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

/* Return the type of the next field of a struct, and set *id to the id of this field. Return 0 at
 * the end of the struct or after a failure. Before the call, *id must be the id of the previous
 * field, or 0 before the first field. */
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

/* Read the header of a list: return the number of elements, and set *type to the type of the
 * elements. The number never exceeds the number of bytes that are left to read. */
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

/* Read a string: return a pointer to its bytes, and set *n to their number, or to 0 after a
 * failure. */
static const uint8_t *read_bytes(thrift *t, size_t *n)
{
    const uint64_t length = read_varint(t);
    const uint8_t *bytes = t->at;
    pass(t, length);
    *n = t->cut || t->wrong ? 0 : (size_t)length;
    return bytes;
}

/* Skip a value of type `type`. All types that Parquet uses are supported; maps are not among these
 * types. in_list: 1 if the value is an element of a list, 0 if it is a field of a struct. A boolean
 * takes one byte in a list, but no byte in a struct, where it is stored in the type of the
 * field. */
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

/* Read a struct: store the values of the `count` fields listed in `fields`, and skip all other
 * fields. If the struct lacks a listed field, the variable to which `number` or `place` points is
 * unchanged. */
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

/* ---- the schema ----
 *
 * The schema is a tree of columns and groups, stored as a list of elements in depth-first order. */

typedef struct walk {
    thrift *t;
    const char *field;
    size_t left;   /* elements of the list not read yet */
    size_t leaf;   /* number of columns read so far */
    size_t column; /* index of the requested column, or NONE if it has not been found */
    int64_t type, converted, scale;
    unsigned levels;
    /* list: 1 if the requested column, or a group that contains it, is repeated. group: 1 if the
     * requested name is the name of a group. */
    int list, group;
    int twice;          /* 1 if more than one column has the requested name */
    char names[LISTED]; /* names of the columns that hold strings, for an error message */
    size_t used;
    /* path of the element that is being read: the names of the groups that contain it, and its
     * name, joined with dots */
    char path[PATH];
} walk;

/* Append the path of a column, the n bytes at w->path, to w->names, the list for an error message.
 * Do nothing if the list has no room for it. */
static void list_name(walk *w, size_t n)
{
    const size_t comma = w->used ? 2 : 0;
    if (w->used + comma + n + 1 > LISTED) return;
    memcpy(w->names + w->used, ", ", comma);
    memcpy(w->names + w->used + comma, w->path, n);
    w->used += comma + n;
    w->names[w->used] = 0;
}

/* Read the next element of the schema, whose depth in the tree is `depth`, and all elements below
 * it. levels: number of optional or repeated elements above the element. list: 1 if an element
 * above the element is repeated. n: length of the path of the element's parent, which is in
 * w->path. */
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
        /* truncate the name if the path would be too long; a column with such a long path is not
         * found */
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

/* Find the requested column in the schema at w->t, and store the result in *w. Return an error if
 * the column is missing or unsuitable. If the metadata is damaged, return SGT_OK, because the
 * caller checks w->t for damage. */
static int find_column(walk *w, const sgt_parquet *p, sgt_error *err)
{
    const char *path = p->r.file->path, *name = p->r.field;
    const int kept = p->r.kept;
    int type;
    w->left = read_list(w->t, &type);
    if (type != THRIFT_STRUCT) w->t->wrong = 1;
    read_tree(w, 0, 0, 0, 0);
    if (w->t->wrong || w->t->cut) return SGT_OK;
    /* a column of the type BYTE_ARRAY holds strings, unless its converted type is DECIMAL */
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

/* What the metadata states about the pages of the column in a row group. */
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

/* Append a row group of `rows` rows to p->groups. *c describes the pages of the column in this row
 * group. */
static int add_group(sgt_parquet *p, chunk *c, int64_t rows, sgt_error *err)
{
    const char *path = p->r.file->path, *name = p->r.field;
    const char *remedy, *codec = sgt_parquet_codec_lacks(c->codec, &remedy);
    /* if the offset of the dictionary is 0 or not stated, there is no dictionary, or the dictionary
     * is the first page at the offset of the data */
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

/* Parse the metadata of the file, the n bytes at `bytes`. Return SGT_EFORMAT if the metadata is
 * damaged, or if the requested column is missing, is encrypted, is compressed with an unsupported
 * codec, or does not hold one string per row (for --keep-fields, one string or number). */
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

/* Parse the header of a page, which begins at p, into *h. n bytes can be read at p. Return NULL if
 * the header is valid; otherwise return an error message. Set *more to 1 if the header does not end
 * within the n bytes, so that the caller should try again with more bytes; otherwise set it to
 * 0. */
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
    /* the ids of these fields are the same in the headers of data pages and of dictionary pages */
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

/* Read n bytes of the file, from offset `at` on, into `to`. If the file ends earlier, return an
 * error. */
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

/* Find the metadata in the file: set p->meta_at to the offset of the metadata, and *n to its size
 * in bytes. */
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

/* Set the reader to the beginning of the row group with index i. i may be p->count, which stands
 * for the end of the column. */
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

/* Return the number of row groups whose middle is before offset `at` of the file. The middle of a
 * row group is estimated from the column that is read: if x % of the bytes of the column are before
 * the middle of the column's pages in the row group, the middle of the row group is assumed to be
 * at x % of the file. */
static size_t groups_before(const sgt_parquet *p, uint64_t at)
{
    const double all = (double)p->groups[p->count].before, twice = 2 * (double)at;
    const row_group *g = p->groups;
    while (g < p->groups + p->count &&
           (double)(g->before + g[1].before) / all * (double)p->r.file->size < twice)
        g++;
    return (size_t)(g - p->groups);
}

/* Set the reader to the first row group of the range of the file that this rank reads. Then skip
 * those row groups that the hash of an earlier run covers completely, because the earlier run has
 * delivered all of their rows. */
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

/* Read the header of the page at p->at into *h. The header must end before offset `end` of the
 * file. The bytes of the header are needed only to parse it, so they are read into the unused
 * memory after the text of the unit u, where later reads overwrite them. */
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

/* Read the compressed bytes of the page at p->at, which has the header *h, into `to`, and set *hash
 * to their hash. */
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
    /* the strings of a dictionary are never null, so a dictionary has no definition levels */
    page.column.levels = 0;
    uint8_t *packed;
    int rc = sgt_parquet_shared_new(&p->dictionary, &page, &packed, err);
    if (h->rows) p->word = (double)h->unpacked / (double)h->rows;
    return rc < 0 ? rc : read_packed(p, h, packed, &p->dictionary_hash, err);
}

/* Estimate the uncompressed size in bytes of `rows` rows of the page with the header *h. */
static size_t text_bytes(const sgt_parquet *p, const sgt_parquet_head *h, uint64_t rows)
{
    const double word = sgt_parquet_has_indices(h) ? p->word : 0;
    return (size_t)(((double)h->unpacked / (double)h->rows + word) * (double)rows);
}

/* Read the compressed bytes of the page at p->at into the memory after the text of the unit u, and
 * allocate room after them in which the rows of the unit can be decompressed. text: estimated
 * uncompressed size in bytes of the rows of this page. */
static int read_behind(sgt_parquet *p, const sgt_parquet_head *h, sgt_unit *u, size_t text,
                       sgt_error *err)
{
    /* if the estimate is implausibly large, do not allocate that much, because the header of a
     * damaged page may state any size */
    const size_t all = u->unpacked + text, likely = all < SGT_PARQUET_LIKELY ? all : 0;
    /* allocate a quarter more than estimated: if the estimate is too low, the buffer must be
     * enlarged later, which copies it */
    const int rc = sgt_unit_reserve(u, u->used + h->packed + likely + likely / 4, err);
    return rc < 0 ? rc : read_packed(p, h, u->text + u->used, &p->page_hash, err);
}

/* Add the next rows of the page at p->at, but at most SGT_PARQUET_ROWS, to the pages of the unit u,
 * and set *rows to their number. A page with more than SGT_PARQUET_ROWS rows becomes a shared page:
 * it is read only once, and this call and later calls take rows from it. */
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

/* Advance past the page at p->at, which has the header *h and `rows` rows. Add the hash of the page
 * to p->hash, unless the hash that an earlier run computed already covers the page. */
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

/* Read the header of the page at p->at, and add the next rows of the page, but at most
 * SGT_PARQUET_ROWS, to the unit u. Set *rows to the number of rows added. If no rows of the page
 * are left after that, advance past the page. If the page has no rows to add, as a dictionary,
 * leave *rows unchanged. */
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
    /* An earlier run has delivered all rows of this page, but the hash that it saved does not cover
     * the page. Read the page again, only to hash it. */
    else if (p->row + h.rows > p->covered) rc = read_behind(p, &h, u, 0, err);
    if (rc < 0) return rc;
    if (p->taken == h.rows) pass_page(p, &h, h.rows);
    return SGT_OK;
}

/* Skip the rest of the current row group, because its next page cannot be read. Return the number
 * of rows that are skipped, without rows that an earlier run delivered. */
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
    /* After the last row, read zero bytes at the end of the file: the source then checks that the
     * file has not changed since the inputs were listed. */
    rc = read_at(p, p->r.file->size, u->text, 0, err);
    return rc < 0 ? rc : 1;
}
