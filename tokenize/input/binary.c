/* binary.c: magic numbers, and bytes that no text has. */
#include "tokenize/input/binary.h"

#include <ctype.h>
#include <string.h>

#include "tokenize/text/utf8.h"

#define KEEP "--binary keep takes its bytes"
#define UNPACK "unpack it, or --filter reads it through a command"
#define UNTAR "unpack it, or --filter 'EXT=tar -xOf {}' reads its files as one document"
#define PRINTED "--filter 'EXT=COMMAND' reads it through a command that prints its text"
#define CONVERT(name)                                  \
    {                                                  \
        name, "iconv -f " name " -t UTF-8 converts it" \
    }

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
    {"7z\274\257'\034", 6, {"a 7z archive", UNPACK}},
    {"\3757zXZ", 6, {"xz data", "--filter 'xz=xzcat {}' reads its text"}},
    {"!<arch>\n", 8, {"an ar archive", UNPACK}},
    {"WARC/0.", 7, {"a WARC archive", PRINTED}},
    {"WARC/1.", 7, {"a WARC archive", PRINTED}},
    {"PAR1", 4, {"a Parquet file", "--format auto reads whole ones"}},
};

/* UTF-32 comes first: its little-endian mark begins with that of UTF-16. */
static const magic marks[] = {{"\377\376\0\0", 4, CONVERT("UTF-32")},
                              {"\0\0\376\377", 4, CONVERT("UTF-32")},
                              {"\377\376", 2, CONVERT("UTF-16")},
                              {"\376\377", 2, CONVERT("UTF-16")}};

static const sgt_binary tar = {"a tar archive", UNTAR}, cpio = {"a cpio archive", UNPACK},
                        bzip2 = {"bzip2 data", "--filter 'bz2=bzcat {}' reads its text"},
                        tensors = {"a safetensors file", KEEP},
                        bytes_of_no_text = {"binary data", KEEP};

static const sgt_binary *find(const magic *table, size_t count, const uint8_t *p, size_t n)
{
    for (size_t i = 0; i < count; i++)
        if (n >= table[i].count && !memcmp(p, table[i].bytes, table[i].count)) return &table[i].is;
    return NULL;
}

/* Return whether p[n] begins with the header of a tar archive, which holds the sum of its own
 * bytes as octal digits; the digits themselves count as blanks. */
static int is_tar(const uint8_t *p, size_t n)
{
    unsigned sum = 0, noted = 0;
    if (n < 512 || !p[0]) return 0;
    for (size_t i = 0; i < 512; i++) sum += i >= 148 && i < 156 ? ' ' : p[i];
    for (size_t i = 148; i < 156 && (p[i] == ' ' || (p[i] >= '0' && p[i] <= '7')); i++)
        if (p[i] != ' ') noted = 8 * noted + (p[i] - '0');
    return noted == sum;
}

/* Return whether p[n] begins with the header of a cpio archive: so many hex digits, and a name. */
static int is_cpio(const uint8_t *p, size_t n)
{
    size_t digits = 0;
    while (digits < n && isxdigit(p[digits])) digits++;
    return digits >= 76 && !memcmp(p, "07070", 5) && (p[5] == '7' || digits >= 110);
}

/* Return whether p[n] begins with the length of a JSON header, as 64 little-endian bits, and with
 * that header. */
static int is_tensors(const uint8_t *p, size_t n)
{
    return n > 9 && !memcmp(p + 4, "\0\0\0", 4) && p[8] == '{' && (p[9] == '"' || p[9] == '}');
}

static const sgt_binary *find_archive(const uint8_t *p, size_t n)
{
    if (is_tar(p, n)) return &tar;
    if (is_cpio(p, n)) return &cpio;
    if (n >= 10 && !memcmp(p, "BZh", 3) && !memcmp(p + 4, "1AY&SY", 6)) return &bzip2;
    return is_tensors(p, n) ? &tensors : NULL;
}

/* ---- UTF-16 and UTF-32 without a mark ---- */

/* The units of `width` bytes at the beginning of a file. */
typedef struct wide {
    size_t count, zeros; /* units, and those that are 0 */
    size_t narrow;       /* units of 1 to 255, such as ASCII has */
    size_t swapped;      /* units that would be narrow in the other byte order */
    size_t close;        /* other units below 0x2100: most alphabets, and punctuation */
    size_t odd;          /* control characters, and surrogates of 32 bits */
    size_t large;        /* units beyond the last character */
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

/* Return what p[n] is if it consists of numbers of 16 or 32 bits, most of which are small or are
 * characters; else NULL. At most one unit in two may be 0, because text may hold NUL bytes. */
static const sgt_binary *find_wide(const uint8_t *p, size_t n, int whole)
{
    static const sgt_binary texts[] = {CONVERT("UTF-16LE"), CONVERT("UTF-16BE"),
                                       CONVERT("UTF-32LE"), CONVERT("UTF-32BE")},
                            numbers[] = {{"16-bit numbers", KEEP}, {"32-bit numbers", KEEP}};
    for (int big = 0; big < 2 && n >= 8 && !(whole && n % 4); big++) {
        const wide w = count_units(p, n, 4, big);
        if (!w.large && 2 * w.zeros <= w.count)
            return w.odd || w.zeros ? &numbers[1] : &texts[2 + big];
    }
    for (int big = 0; big < 2 && n >= 4 && !(whole && n % 2); big++) {
        const wide w = count_units(p, n, 2, big);
        /* ASCII: NUL at every second place */
        if (4 * w.narrow >= 3 * w.count) return w.odd || w.zeros ? &numbers[0] : &texts[big];
        /* another alphabet, with blanks and line ends in ASCII */
        if (!w.zeros && !w.odd && w.narrow >= 16 && 16 * w.narrow >= w.count &&
            8 * w.swapped <= w.narrow && 8 * (w.narrow + w.close) >= 7 * w.count)
            return &texts[big];
    }
    return NULL;
}

/* ---- UTF-8 ---- */

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
    if (!known) known = find_archive(p, n);
    if (known || lines) return known;
    /* a whole file with an odd number of bytes is not UTF-16 */
    if (!(whole && n % 2)) known = find(marks, sizeof marks / sizeof *marks, p, n);
    if (known || !memchr(p, 0, n)) return known;
    known = find_wide(p, n, whole);
    return known ? known : is_ill_formed(p, n, whole) ? &bytes_of_no_text : NULL;
}
