/* magic.c: recognize file formats by their first bytes. */
#include "loader/base/magic.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define KEEP "--binary keep tokenizes its bytes"
#define UNPACK "unpack it, or read it through a command with --filter"
#define UNTAR "unpack it, or --filter 'EXT=tar -xOf {}' reads its files as one document"
#define TO_PARQUET "convert it with Dataset.to_parquet, and read that with --format auto"
#define PRINTED "read it through a command that prints its text, with --filter 'EXT=COMMAND'"
#define CONVERT(name)                                                  \
    {                                                                  \
        name, "iconv -f " name " -t UTF-8 converts it", SGT_MAGIC_WIDE \
    }

typedef struct number {
    const char *bytes;
    size_t count;
    sgt_magic is;
} number;

static const number numbers[] = {
    {"\037\213\b", 3, {"gzip data", UNPACK, SGT_MAGIC_GZIP}},
    {"\050\265\057\375", 4, {"Zstandard data", UNPACK, SGT_MAGIC_ZSTD}},
    {"PAR1", 4, {"a Parquet file", "--format auto reads complete ones", SGT_MAGIC_PARQUET}},
    {"\223NUMPY", 6, {"an array with the header of numpy.save", KEEP, SGT_MAGIC_ARRAY}},
    {"ARROW1\0\0", 8, {"an Arrow file", TO_PARQUET, SGT_MAGIC_OTHER}},
    {"\377\377\377\377", 4, {"an Arrow stream", TO_PARQUET, SGT_MAGIC_OTHER}},
    {"%PDF", 4, {"a PDF", "--filter 'pdf=pdftotext {} -' reads its text", SGT_MAGIC_OTHER}},
    {"\177ELF", 4, {"an ELF program", KEEP, SGT_MAGIC_OTHER}},
    {"\211PNG", 4, {"a PNG picture", KEEP, SGT_MAGIC_OTHER}},
    {"\377\330\377", 3, {"a JPEG picture", KEEP, SGT_MAGIC_OTHER}},
    {"PK\3\4", 4, {"a ZIP archive", UNPACK, SGT_MAGIC_OTHER}},
    {"PK\5\6", 4, {"a ZIP archive", UNPACK, SGT_MAGIC_OTHER}},
    {"7z\274\257'\034", 6, {"a 7z archive", UNPACK, SGT_MAGIC_OTHER}},
    {"\3757zXZ", 6, {"xz data", "--filter 'xz=xzcat {}' reads its text", SGT_MAGIC_OTHER}},
    {"!<arch>\n", 8, {"an ar archive", UNPACK, SGT_MAGIC_OTHER}},
    {"WARC/0.", 7, {"a WARC archive", PRINTED, SGT_MAGIC_OTHER}},
    {"WARC/1.", 7, {"a WARC archive", PRINTED, SGT_MAGIC_OTHER}},
};

/* byte order marks. Those of UTF-32 must come first, because the little-endian mark of UTF-32
 * begins with the bytes of the mark of UTF-16 */
static const number marks[] = {{"\377\376\0\0", 4, CONVERT("UTF-32")},
                               {"\0\0\376\377", 4, CONVERT("UTF-32")},
                               {"\377\376", 2, CONVERT("UTF-16")},
                               {"\376\377", 2, CONVERT("UTF-16")}};

static const sgt_magic tar = {"a tar archive", UNTAR, SGT_MAGIC_OTHER},
                       cpio = {"a cpio archive", UNPACK, SGT_MAGIC_OTHER},
                       bzip2 = {"bzip2 data", "--filter 'bz2=bzcat {}' reads its text",
                                SGT_MAGIC_OTHER},
                       tensors = {"a safetensors file", KEEP, SGT_MAGIC_OTHER};

static const sgt_magic *find(const number *table, size_t count, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (n >= table[i].count && !memcmp(p, table[i].bytes, table[i].count)) return &table[i].is;
    return NULL;
}

/* Return 1 if the n bytes at p begin with the header of a tar archive, otherwise 0. Old archives
 * have no magic number, so check the header's checksum: eight bytes of octal digits whose value is
 * the sum of all bytes of the header. In that sum, each of the eight checksum bytes counts as a
 * space. */
static int is_tar(const uint8_t *p, size_t n)
{
    unsigned sum = 0;
    char digits[9] = {0};
    if (n < 512 || !p[0]) return 0;
    memcpy(digits, p + 148, 8);
    for (size_t i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? ' ' : p[i];
    return strtoul(digits, NULL, 8) == sum;
}

/* Return 1 if the n bytes at p begin with the header of a cpio archive in one of its ASCII formats,
 * otherwise 0. Such a header begins with 07070 and consists of at least 76 digits, or at least 110
 * in the formats whose sixth digit is not 7. */
static int is_cpio(const uint8_t *p, size_t n)
{
    size_t digits = 0;
    while (digits < n && isxdigit(p[digits])) digits++;
    return digits >= 76 && !memcmp(p, "07070", 5) && (p[5] == '7' || digits >= 110);
}

/* Return 1 if the n bytes at p begin like a safetensors file, otherwise 0. Such a file begins with
 * the length of its header, as a 64-bit little-endian number, followed by the header in JSON. */
static int is_tensors(const uint8_t *p, size_t n)
{
    return n > 9 && !memcmp(p + 4, "\0\0\0", 4) && p[8] == '{' && (p[9] == '"' || p[9] == '}');
}

const sgt_magic *sgt_magic_of(const uint8_t *p, size_t n)
{
    const sgt_magic *known = find(numbers, sizeof numbers / sizeof *numbers, p, n);
    if (known) return known;
    if (is_tar(p, n)) return &tar;
    if (is_cpio(p, n)) return &cpio;
    if (n >= 10 && !memcmp(p, "BZh", 3) && !memcmp(p + 4, "1AY&SY", 6)) return &bzip2;
    return is_tensors(p, n) ? &tensors : NULL;
}

/* ---- UTF-16 and UTF-32 without a byte order mark ---- */

/* Statistics of the beginning of a file that may be UTF-16 or UTF-32. The bytes are read as
 * unsigned integers of 16 or 32 bits. Each field is the number of integers in a certain range. */
typedef struct wide {
    size_t count, zeros; /* count: number of integers; zeros: number of those that are 0 */
    /* number of integers from 1 to 255, such as ASCII characters */
    size_t narrow;
    /* number of nonzero integers whose low byte is 0: in 16-bit text with the opposite byte order,
     * these would be from 1 to 255 */
    size_t swapped;
    /* number of integers from 256 to 0x20ff, the range of punctuation and of the letters of most
     * alphabets besides ASCII */
    size_t close;
    /* number of integers that do not occur in text: control characters and, in UTF-32,
     * surrogates */
    size_t odd;
    size_t large; /* number of integers above 0x10ffff, the last code point of Unicode */
} wide;

static int is_odd(uint32_t c)
{
    if (c < 0x20) return c && !(c >= '\t' && c <= '\r' && c != '\v');
    return c >= 0x7F && c < 0xA0;
}

static wide count_units(const uint8_t *p, size_t n, size_t width, int big)
{
    wide w = {.count = n / width};
    for (size_t i = 0; i < w.count; i++, p += width) {
        uint32_t c = 0;
        for (size_t k = 0; k < width; k++) c = c << 8 | p[big ? k : width - 1 - k];
        w.zeros += !c;
        w.narrow += c && c < 256;
        w.swapped += c && !(c & 0xFF);
        w.close += c >= 256 && c < 0x2100;
        w.odd += is_odd(c) || (width == 4 && c >= 0xD800 && c < 0xE000);
        w.large += c > 0x10FFFF;
    }
    return w;
}

/* Return the format of the n bytes at p if they look like text in UTF-16 or UTF-32, or like an
 * array of 16-bit or 32-bit integers that are mostly small. Otherwise return NULL. To decide, read
 * the bytes as integers of both sizes. The bytes are an array rather than text if some integers are
 * 0 or do not occur in text. The bytes are not 32-bit data if more than half of the 32-bit integers
 * are 0. `whole` is 1 if the n bytes are the entire file, otherwise 0. */
static const sgt_magic *find_wide(const uint8_t *p, size_t n, int whole)
{
    static const sgt_magic texts[] = {CONVERT("UTF-16LE"), CONVERT("UTF-16BE"), CONVERT("UTF-32LE"),
                                      CONVERT("UTF-32BE")},
                           figures[] = {{"16-bit numbers", KEEP, SGT_MAGIC_NUMBERS},
                                        {"32-bit numbers", KEEP, SGT_MAGIC_NUMBERS}};
    for (int big = 0; big < 2 && n >= 8 && !(whole && n % 4); big++) {
        const wide w = count_units(p, n, 4, big);
        if (!w.large && 2 * w.zeros <= w.count)
            return w.odd || w.zeros ? &figures[1] : &texts[2 + big];
    }
    for (int big = 0; big < 2 && n >= 4 && !(whole && n % 2); big++) {
        const wide w = count_units(p, n, 2, big);
        /* ASCII: every second byte is NUL */
        if (4 * w.narrow >= 3 * w.count) return w.odd || w.zeros ? &figures[0] : &texts[big];
        /* text in a non-Latin alphabet. In such text, at least one character in 16 is ASCII, for
         * example a space or a line end */
        if (!w.zeros && !w.odd && w.narrow >= 16 && 16 * w.narrow >= w.count &&
            8 * w.swapped <= w.narrow && 8 * (w.narrow + w.close) >= 7 * w.count)
            return &texts[big];
    }
    return NULL;
}

const sgt_magic *sgt_magic_wide(const uint8_t *p, size_t n, int whole)
{
    /* An entire file with an odd number of bytes cannot be UTF-16 or UTF-32, so ignore its byte
     * order mark. */
    const sgt_magic *marked =
        whole && n % 2 ? NULL : find(marks, sizeof marks / sizeof *marks, p, n);
    return marked || !memchr(p, 0, n) ? marked : find_wide(p, n, whole);
}
