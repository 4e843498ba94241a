/* gemm_cache.c: stores chosen algorithms as text: timings in a file of lines, and the choices of a
 * run in a JSON object, for a run that must make the same ones. An algorithm is the library's 64
 * opaque bytes in hexadecimal, valid only for the same library version.
 *
 * A line of FOLDER/gemm.txt has these fields, separated by tabs: device, library, shape, algorithm,
 * milliseconds, check (FNV-1a, 32 bits, of everything before its tab). Files are replaced as a
 * whole, so two programs that write at once can only lose each other's lines. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "kernels/cuda/gemm_parts.h"

#define CACHE_NAME "gemm.txt"
#define CACHE_MOST ((size_t)4 << 20) /* most bytes; a larger file is replaced by a new one */
#define HEX (2 * sizeof(sgt_lt_algo))
#define LINE (GEMM_KEY + HEX + 256)

static void to_hex(char out[HEX + 1], const sgt_lt_algo *algo)
{
    unsigned char bytes[sizeof *algo];
    memcpy(bytes, algo, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Read an algorithm from `text`. Return 1 if exactly its hexadecimal digits are before `end`. */
static int from_hex(sgt_lt_algo *algo, const char *text, const char *end)
{
    unsigned char bytes[sizeof *algo];
    if (end - text != (ptrdiff_t)HEX) return 0;
    for (size_t i = 0; i < sizeof bytes; i++) {
        int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return 0;
        bytes[i] = (unsigned char)(high << 4 | low);
    }
    memcpy(algo, bytes, sizeof bytes);
    return 1;
}

/* ---- the file of lines ---- */

static uint32_t check_of(const char *text, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)text[i]) * 16777619u;
    return h;
}

/* Write "DEVICE\tLIBRARY\tSHAPE\t", the beginning of a shape's line. */
static size_t begin_line(char out[LINE], const sgt_cuda_gemms *g, const char *key)
{
    return (size_t)snprintf(out, LINE, "%s\t%s\t%s\t", g->device, g->library, key);
}

/* Return whether a line, without its end, is complete and undamaged. */
static int line_good(const char *line, size_t n)
{
    char check[16];
    if (n < 10 || line[n - 9] != '\t') return 0;
    snprintf(check, sizeof check, "%08x", check_of(line, n - 9));
    return memcmp(line + n - 8, check, 8) == 0;
}

/* Return the content of the folder's file, which the caller frees: an empty string if there is no
 * readable file, NULL if out of memory. */
static char *read_cache(const char *folder)
{
    char *path = sgt_join(folder, CACHE_NAME), *text = NULL;
    size_t n;
    if (path && sgt_file_get(&text, &n, path, CACHE_MOST, NULL) < 0) text = strdup("");
    free(path);
    return text;
}

/* Return the next line, with its length without the newline in *n, and move *at past it. Return
 * NULL at the end. */
static const char *next_line(const char **at, size_t *n)
{
    const char *line = *at;
    if (!*line) return NULL;
    *n = strcspn(line, "\n");
    *at = line + *n + (line[*n] == '\n');
    return line;
}

int gemm_cache_find(sgt_lt_algo *algo, float *ms, const sgt_cuda_gemms *g, const char *key)
{
    char begin[LINE];
    size_t head = begin_line(begin, g, key), n;
    char *text = g->cache ? read_cache(g->cache) : NULL;
    const char *at = text, *line;
    int found = 0;
    while (text && !found && (line = next_line(&at, &n)))
        if (n > head + HEX && memcmp(line, begin, head) == 0 && line_good(line, n) &&
            line[head + HEX] == '\t' && from_hex(algo, line + head, line + head + HEX)) {
            *ms = strtof(line + head + HEX + 1, NULL);
            found = *ms > 0 && *ms < 1e9f;
        }
    free(text);
    return found;
}

/* Write to `out` the valid lines of `old`, except those that start with the `head` bytes of
 * `begin`, then the line `added`. Return the length. */
static size_t merge(char *out, const char *old, const char *begin, size_t head, const char *added)
{
    size_t used = 0, n;
    const char *line;
    while ((line = next_line(&old, &n))) {
        if (!line_good(line, n) || (n > head && memcmp(line, begin, head) == 0)) continue;
        memcpy(out + used, line, n);
        out[used + n] = '\n';
        used += n + 1;
    }
    n = strlen(added);
    memcpy(out + used, added, n);
    return used + n;
}

int gemm_cache_put(const sgt_cuda_gemms *g, const char *key, const sgt_lt_algo *algo, float ms,
                   sgt_error *err)
{
    char begin[LINE], line[LINE], hex[HEX + 1];
    size_t head = begin_line(begin, g, key);
    to_hex(hex, algo);
    int n = snprintf(line, LINE, "%s%s\t%.6g", begin, hex, (double)ms);
    snprintf(line + n, LINE - (size_t)n, "\t%08x\n", check_of(line, (size_t)n));
    char *old = read_cache(g->cache), *path = sgt_join(g->cache, CACHE_NAME);
    /* with room for a newline after `old`, in case its last line has none */
    char *text = old ? malloc(strlen(old) + strlen(line) + 2) : NULL;
    int rc = SGT_OK;
    if (!text || !path) rc = sgt_fail_memory(err, g->cache);
    if (rc == SGT_OK && (rc = sgt_make_folders(g->cache, err)) == SGT_OK)
        rc = sgt_file_put(path, text, merge(text, old, begin, head, line), err);
    free(text);
    free(path);
    free(old);
    return rc;
}

/* ---- choices ---- */

static void append(char *out, size_t *used, size_t room, const char *name, const char *value,
                   int last)
{
    *used += (size_t)snprintf(out + *used, room - *used, "\"%s\": \"%s\"%s", name, value,
                              last ? "}" : ", ");
}

char *sgt_cuda_gemms_choices(const sgt_cuda_gemms *g)
{
    size_t room = 512, used = 1;
    for (const sgt_cuda_gemm *p = g->first; p; p = p->next) room += strlen(p->key) + HEX + 16;
    char *out = malloc(room), hex[HEX + 1];
    if (!out) return NULL;
    out[0] = '{';
    append(out, &used, room, "device", g->device, 0);
    append(out, &used, room, "library", g->library, !g->first);
    for (const sgt_cuda_gemm *p = g->first; p; p = p->next) {
        to_hex(hex, &p->algo);
        append(out, &used, room, p->key, hex, !p->next);
    }
    return out;
}

static const char *skip_space(const char *p)
{
    while (isspace((unsigned char)*p)) p++;
    return p;
}

/* Return the value of `name` in a JSON object, or NULL, and set *end to its end. All values are
 * strings without quotes and backslashes, as we write them; another program may have changed the
 * white space. */
static const char *find_string(const char *json, const char *name, const char **end)
{
    size_t n = strlen(name);
    for (const char *p = json; (p = strstr(p, name)); p++) {
        if (p == json || p[-1] != '"' || p[n] != '"') continue;
        const char *value = skip_space(p + n + 1);
        if (*value != ':' || *(value = skip_space(value + 1)) != '"') continue;
        *end = strchr(++value, '"');
        return *end ? value : NULL;
    }
    return NULL;
}

static int string_is(const char *json, const char *name, const char *wanted)
{
    const char *end, *value = find_string(json, name, &end);
    return value && (size_t)(end - value) == strlen(wanted) &&
           memcmp(value, wanted, strlen(wanted)) == 0;
}

int gemm_choice_find(sgt_lt_algo *algo, const sgt_cuda_gemms *g, const char *key)
{
    const char *end, *value;
    if (!g->choices || !string_is(g->choices, "device", g->device) ||
        !string_is(g->choices, "library", g->library))
        return 0;
    return (value = find_string(g->choices, key, &end)) && from_hex(algo, value, end);
}
