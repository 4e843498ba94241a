/* parquet_thrift.c: varints, fields, lists, and skipping what is not needed. */
#include "tokenize/input/parquet_thrift.h"

#define DEPTH 64 /* maximum nesting of what is skipped */

static uint64_t fail(sgt_thrift *t, int *why)
{
    *why = 1;
    t->at = t->end;
    return 0;
}

static uint8_t byte(sgt_thrift *t) { return t->at < t->end ? *t->at++ : (uint8_t)fail(t, &t->cut); }

uint64_t sgt_thrift_varint(sgt_thrift *t)
{
    uint64_t n = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t b = byte(t);
        n |= (uint64_t)(b & 0x7F) << shift;
        if (b < 0x80) return t->cut ? 0 : n;
    }
    return fail(t, &t->wrong);
}

int64_t sgt_thrift_int(sgt_thrift *t)
{
    uint64_t n = sgt_thrift_varint(t);
    return (int64_t)(n >> 1) ^ -(int64_t)(n & 1);
}

int sgt_thrift_field(sgt_thrift *t, int *id)
{
    uint8_t b = byte(t);
    if (t->cut || t->wrong || !b) return 0;
    int64_t next = b >> 4 ? *id + (b >> 4) : sgt_thrift_int(t);
    if (t->cut) return 0;
    if (next < 0 || next > INT16_MAX || !(b & 15) || (b & 15) > SGT_THRIFT_STRUCT)
        return (int)fail(t, &t->wrong);
    *id = (int)next;
    return b & 15;
}

size_t sgt_thrift_list(sgt_thrift *t, int *type)
{
    uint8_t b = byte(t);
    uint64_t n = b >> 4 == 15 ? sgt_thrift_varint(t) : b >> 4;
    *type = b & 15;
    return n > (uint64_t)(t->end - t->at) ? (size_t)fail(t, &t->cut) : (size_t)n;
}

const uint8_t *sgt_thrift_bytes(sgt_thrift *t, size_t *n)
{
    uint64_t length = sgt_thrift_varint(t);
    if (length > (uint64_t)(t->end - t->at)) length = fail(t, &t->cut);
    const uint8_t *bytes = t->at;
    t->at += length;
    *n = (size_t)length;
    return bytes;
}

static void skip_fixed(sgt_thrift *t, size_t n)
{
    if ((size_t)(t->end - t->at) < n) fail(t, &t->cut);
    else t->at += n;
}

static void skip(sgt_thrift *t, int type, int in_list, int depth);

static void skip_elements(sgt_thrift *t, int depth)
{
    int type;
    for (size_t n = sgt_thrift_list(t, &type); n-- && !t->cut && !t->wrong;)
        skip(t, type, 1, depth);
}

static void skip_map(sgt_thrift *t, int depth)
{
    uint64_t n = sgt_thrift_varint(t);
    uint8_t types = n ? byte(t) : 0;
    if (n > (uint64_t)(t->end - t->at)) fail(t, &t->cut);
    for (; n-- && !t->cut && !t->wrong;) {
        skip(t, types >> 4, 1, depth);
        skip(t, types & 15, 1, depth);
    }
}

/* Skip a value. in_list: 1 if it is an element of a list. There a boolean takes a byte; a boolean
 * field is part of the field's type. */
static void skip(sgt_thrift *t, int type, int in_list, int depth)
{
    size_t n;
    int id = 0, field;
    if (depth == DEPTH) type = 0;
    switch (type) {
    case SGT_THRIFT_TRUE:
    case SGT_THRIFT_FALSE:
        if (in_list) skip_fixed(t, 1);
        break;
    case SGT_THRIFT_BYTE: skip_fixed(t, 1); break;
    case SGT_THRIFT_I16:
    case SGT_THRIFT_I32:
    case SGT_THRIFT_I64: sgt_thrift_varint(t); break;
    case SGT_THRIFT_DOUBLE: skip_fixed(t, 8); break;
    case SGT_THRIFT_BYTES: sgt_thrift_bytes(t, &n); break;
    case SGT_THRIFT_LIST:
    case SGT_THRIFT_SET: skip_elements(t, depth + 1); break;
    case SGT_THRIFT_MAP: skip_map(t, depth + 1); break;
    case SGT_THRIFT_STRUCT:
        while ((field = sgt_thrift_field(t, &id))) skip(t, field, 0, depth + 1);
        break;
    default: fail(t, &t->wrong);
    }
}

void sgt_thrift_skip(sgt_thrift *t, int type) { skip(t, type, 0, 0); }
