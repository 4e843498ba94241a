/* parquet_head.c: heads of pages. The numbers of fields are those of parquet.thrift's
 * PageHeader. */
#include "tokenize/input/parquet_page.h"
#include "tokenize/input/parquet_thrift.h"

#define RLE 3

/* Read a DataPageHeader or a DictionaryPageHeader: the fields needed here have the same numbers in
 * both. */
static void read_data(sgt_thrift *t, sgt_parquet_head *h, int64_t *rows)
{
    int type;
    for (int id = 0; (type = sgt_thrift_field(t, &id));) {
        if (id == 1 && type == SGT_THRIFT_I32) *rows = sgt_thrift_int(t);
        else if (id == 2 && type == SGT_THRIFT_I32) h->encoding = (int)sgt_thrift_int(t);
        else if (id == 3 && type == SGT_THRIFT_I32) h->level_encoding = (int)sgt_thrift_int(t);
        else sgt_thrift_skip(t, type);
    }
}

static void read_data2(sgt_thrift *t, sgt_parquet_head *h, int64_t *rows, int64_t *levels)
{
    int type;
    h->is_packed = 1;
    for (int id = 0; (type = sgt_thrift_field(t, &id));) {
        if (id == 7 && type <= SGT_THRIFT_FALSE) h->is_packed = type == SGT_THRIFT_TRUE;
        else if (type != SGT_THRIFT_I32) sgt_thrift_skip(t, type);
        else {
            int64_t n = sgt_thrift_int(t);
            if (id == 1) *rows = n;
            if (id == 4) h->encoding = (int)n;
            if (id == 5) *levels = n;
            if (id == 6) h->repeats = n != 0;
        }
    }
}

const char *sgt_parquet_head_read(sgt_parquet_head *h, const uint8_t *p, size_t n, int *more)
{
    sgt_thrift t = {p, p + n, 0, 0};
    int64_t unpacked = -1, packed = -1, rows = 0, levels = 0, kind = -1;
    int type;
    *h = (sgt_parquet_head){.level_encoding = RLE, .encoding = -1};
    for (int id = 0; (type = sgt_thrift_field(&t, &id));) {
        if (id >= 1 && id <= 4 && type == SGT_THRIFT_I32) {
            int64_t got = sgt_thrift_int(&t);
            if (id == 1) kind = got;
            if (id == 2) unpacked = got;
            if (id == 3) packed = got;
            if (id == 4) h->crc = (uint32_t)got;
            h->has_crc |= id == 4;
        } else if ((id == 5 || id == 7) && type == SGT_THRIFT_STRUCT) read_data(&t, h, &rows);
        else if (id == 8 && type == SGT_THRIFT_STRUCT) read_data2(&t, h, &rows, &levels);
        else sgt_thrift_skip(&t, type);
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
