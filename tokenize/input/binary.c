/* binary.c: magic numbers, and bytes that no text has. */
#include "tokenize/input/binary.h"

#include <string.h>

#include "tokenize/text/utf8.h"

#define KEEP "--binary keep takes its bytes"
#define UNPACK "unpack it, or --filter reads it through a command"
#define CONVERT "iconv -f UTF-16 -t UTF-8 converts it"

typedef struct magic {
    const char *bytes;
    size_t count;
    sgt_binary is;
} magic;

static const magic magics[] = {
    {"%PDF", 4, {"a PDF", "--filter 'pdf=pdftotext {} -' reads its text"}},
    {"\177ELF", 4, {"an ELF program", KEEP}},
    {"\211PNG", 4, {"a PNG picture", KEEP}},
    {"\377\330\377", 3, {"a JPEG picture", KEEP}},
    {"PK\3\4", 4, {"a ZIP archive", UNPACK}},
    {"PK\5\6", 4, {"a ZIP archive", UNPACK}},
    {"PAR1", 4, {"a Parquet file", "--format auto reads whole ones"}},
};

static const magic marks[] = {{"\377\376", 2, {"UTF-16", CONVERT}},
                              {"\376\377", 2, {"UTF-16", CONVERT}}};

static const sgt_binary bytes_of_no_text = {"binary data", KEEP};

static const sgt_binary *find(const magic *table, size_t count, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (n >= table[i].count && !memcmp(p, table[i].bytes, table[i].count)) return &table[i].is;
    return NULL;
}

/* Return whether p[n] has bytes that are not UTF-8. A character cut by the end of the prefix does
 * not count. */
static int is_ill_formed(const uint8_t *p, size_t n, int whole)
{
    size_t valid = sgt_utf8_valid(p, n);
    uint32_t cp;
    if (valid == n) return 0;
    if (whole || n - valid > 3) return 1;
    /* An ill-formed unit at the end of the prefix may be the beginning of a character that later
     * bytes complete. */
    return sgt_utf8_unit(p + valid, n - valid, &cp) < n - valid || p[valid] < 0xC2 ||
           p[valid] > 0xF4;
}

const sgt_binary *sgt_binary_of(const uint8_t *p, size_t n, int whole, int lines)
{
    const sgt_binary *known = find(magics, sizeof magics / sizeof *magics, p, n);
    if (known || lines) return known;
    /* a whole file with an odd number of bytes is not UTF-16 */
    if (!(whole && n % 2)) known = find(marks, sizeof marks / sizeof *marks, p, n);
    if (known) return known;
    return memchr(p, 0, n) && is_ill_formed(p, n, whole) ? &bytes_of_no_text : NULL;
}
