/* parquet_thrift.h: read Thrift's compact protocol, in which Parquet writes its metadata. Nothing
 * is copied. After a failure every read returns 0 and no field follows, so callers check once.
 *
 *     sgt_thrift t = {bytes, bytes + n, 0, 0};
 *     int type;
 *     for (int id = 0; (type = sgt_thrift_field(&t, &id));)
 *         if (id == 3) rows = sgt_thrift_int(&t);
 *         else sgt_thrift_skip(&t, type);
 *     if (t.cut || t.wrong) ...; */
#ifndef SGT_PARQUET_THRIFT_H
#define SGT_PARQUET_THRIFT_H

#include <stddef.h>
#include <stdint.h>

enum {
    SGT_THRIFT_TRUE = 1,
    SGT_THRIFT_FALSE,
    SGT_THRIFT_BYTE,
    SGT_THRIFT_I16,
    SGT_THRIFT_I32,
    SGT_THRIFT_I64,
    SGT_THRIFT_DOUBLE,
    SGT_THRIFT_BYTES,
    SGT_THRIFT_LIST,
    SGT_THRIFT_SET,
    SGT_THRIFT_MAP,
    SGT_THRIFT_STRUCT
};

typedef struct sgt_thrift {
    const uint8_t *at, *end;
    int cut;   /* the bytes ended too early */
    int wrong; /* the bytes are not of the protocol, or nest too deep */
} sgt_thrift;

uint64_t sgt_thrift_varint(sgt_thrift *t);
int64_t sgt_thrift_int(sgt_thrift *t);
/* Return the type of the next field, whose id becomes *id; 0: the struct has ended. *id is the id
 * of the field before, and 0 at first. */
int sgt_thrift_field(sgt_thrift *t, int *id);
/* Return the number of elements of a list, which is at most the number of bytes left. */
size_t sgt_thrift_list(sgt_thrift *t, int *type);
/* Return the bytes of a string. */
const uint8_t *sgt_thrift_bytes(sgt_thrift *t, size_t *n);
/* Skip a value of a field. */
void sgt_thrift_skip(sgt_thrift *t, int type);

#endif
