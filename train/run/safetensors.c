/* safetensors.c: reads and writes safetensors files. Opening a file checks the entire header, so
 * that later reads can trust the header. */
#include "train/run/safetensors.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "loader/base/file.h"
#include "loader/base/json.h"

struct sgt_safetensors {
    int fd;
    char *path;
    json_t *header; /* parsed header; it owns the names */
    uint64_t data;  /* byte offset of the first number */
    uint64_t size;  /* bytes of data */
    sgt_safetensor *tensors;
    size_t count;
};

static const struct {
    const char *name;
    uint32_t bytes;
} dtypes[] = {{"F64", 8}, {"F32", 4}, {"F16", 2},  {"BF16", 2},    {"I64", 8},
              {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
              {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

static uint32_t dtype_bytes(const char *name)
{
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(name, dtypes[i].name) == 0) return dtypes[i].bytes;
    return 0;
}

/* ---- reading the header ---- */

static int read_shape(sgt_safetensor *t, const json_t *shape, const char *path, sgt_error *err)
{
    size_t dims = json_array_size(shape);
    if (!json_is_array(shape) || dims > SGT_SAFETENSORS_MAX_DIMS)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: tensor %s: its shape is missing or has more than %d dimensions", path,
                        t->name, SGT_SAFETENSORS_MAX_DIMS);
    t->dims = (uint32_t)dims;
    t->count = 1;
    for (size_t i = 0; i < dims; i++) {
        const json_t *d = json_array_get(shape, i);
        if (!json_is_integer(d) || json_integer_value(d) < 0)
            return sgt_fail(err, SGT_EFORMAT, "%s: tensor %s: dimension %zu is not a size", path,
                            t->name, i);
        t->dim[i] = (uint64_t)json_integer_value(d);
        if (__builtin_mul_overflow(t->count, t->dim[i], &t->count))
            return sgt_fail(err, SGT_EFORMAT, "%s: tensor %s: its shape overflows", path, t->name);
    }
    return SGT_OK;
}

static int read_range(sgt_safetensor *t, const json_t *range, uint64_t size, const char *path,
                      sgt_error *err)
{
    const json_t *b = json_array_get(range, 0), *e = json_array_get(range, 1);
    if (json_array_size(range) != 2 || !json_is_integer(b) || !json_is_integer(e) ||
        json_integer_value(b) < 0 || json_integer_value(e) < json_integer_value(b))
        return sgt_fail(err, SGT_EFORMAT, "%s: tensor %s: data_offsets are not [begin, end]", path,
                        t->name);
    t->begin = (uint64_t)json_integer_value(b);
    t->end = (uint64_t)json_integer_value(e);
    if (t->end > size)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: tensor %s ends at byte %llu, but there are only %llu bytes of data "
                        "(was it cut short?)",
                        path, t->name, (unsigned long long)t->end, (unsigned long long)size);
    uint64_t want;
    if (__builtin_mul_overflow(t->count, (uint64_t)dtype_bytes(t->dtype), &want) ||
        want != t->end - t->begin)
        return sgt_fail(err, SGT_EFORMAT,
                        "%s: tensor %s: %llu bytes do not fit %llu numbers of type %s", path,
                        t->name, (unsigned long long)(t->end - t->begin),
                        (unsigned long long)t->count, t->dtype);
    return SGT_OK;
}

static int read_tensor(sgt_safetensors *s, sgt_safetensor *t, const char *name, const json_t *v,
                       sgt_error *err)
{
    int rc;
    t->name = name;
    t->dtype = json_string_value(json_object_get(v, "dtype"));
    if (!t->dtype || !dtype_bytes(t->dtype))
        return sgt_fail(err, SGT_EFORMAT, "%s: tensor %s: unknown type '%s'", s->path, name,
                        t->dtype ? t->dtype : "");
    if ((rc = read_shape(t, json_object_get(v, "shape"), s->path, err)) < 0) return rc;
    return read_range(t, json_object_get(v, "data_offsets"), s->size, s->path, err);
}

static int by_offset(const void *a, const void *b)
{
    const sgt_safetensor *x = a, *y = b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}

static int check_cover(const sgt_safetensors *s, sgt_error *err)
{
    uint64_t at = 0;
    for (size_t i = 0; i < s->count; i++) {
        const sgt_safetensor *t = &s->tensors[i];
        if (t->begin != at)
            return sgt_fail(err, SGT_EFORMAT, "%s: tensor %s begins at byte %llu, %s byte %llu",
                            s->path, t->name, (unsigned long long)t->begin,
                            t->begin < at ? "inside the one that ends at" : "after a gap from",
                            (unsigned long long)at);
        at = t->end;
    }
    if (at != s->size)
        return sgt_fail(err, SGT_EFORMAT, "%s: %llu bytes of data, but its tensors cover %llu",
                        s->path, (unsigned long long)s->size, (unsigned long long)at);
    return SGT_OK;
}

static int read_header(sgt_safetensors *s, sgt_error *err)
{
    const char *name;
    json_t *v;
    int rc;
    s->tensors = calloc(json_object_size(s->header) + 1, sizeof *s->tensors);
    if (!s->tensors) return sgt_fail_memory(err, s->path);
    json_object_foreach(s->header, name, v)
    {
        if (strcmp(name, "__metadata__") == 0) continue;
        if ((rc = read_tensor(s, &s->tensors[s->count], name, v, err)) < 0) return rc;
        s->count++;
    }
    qsort(s->tensors, s->count, sizeof *s->tensors, by_offset);
    return check_cover(s, err);
}

static int load_header(sgt_safetensors *s, sgt_error *err)
{
    uint64_t n; /* little-endian, like this machine */
    struct stat st;
    json_error_t why;
    int rc;
    if (fstat(s->fd, &st) < 0) return sgt_fail_errno(err, "%s", s->path);
    if (!S_ISREG(st.st_mode)) return sgt_fail(err, SGT_EFORMAT, "%s: not a regular file", s->path);
    if (st.st_size < 8)
        return sgt_fail(err, SGT_EFORMAT, "%s: %lld bytes: too short for a safetensors file",
                        s->path, (long long)st.st_size);
    if ((rc = sgt_pread_all(s->fd, &n, sizeof n, 0, s->path, err)) < 0) return rc;
    const uint64_t all = (uint64_t)st.st_size - 8;
    if (n > SGT_SAFETENSORS_MAX_HEADER || n > all)
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: a header of %llu bytes in a file of %lld bytes (at most %llu are supported)",
            s->path, (unsigned long long)n, (long long)st.st_size,
            (unsigned long long)SGT_SAFETENSORS_MAX_HEADER);
    char *text = malloc((size_t)n + 1);
    if (!text) return sgt_fail_memory(err, s->path);
    if ((rc = sgt_pread_all(s->fd, text, (size_t)n, 8, s->path, err)) == SGT_OK &&
        (rc = sgt_json_fits(text, (size_t)n, SGT_SAFETENSORS_MAX_VALUES, s->path, err)) == SGT_OK) {
        s->header = json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &why);
        if (!json_is_object(s->header))
            rc = sgt_fail(err, SGT_EFORMAT, "%s: its header is not a JSON object: %s at byte %d",
                          s->path, s->header ? "another value" : why.text,
                          8 + (s->header ? 0 : why.position));
    }
    free(text);
    s->data = 8 + n;
    s->size = all - n;
    return rc;
}

int sgt_safetensors_open(sgt_safetensors **out, const char *path, sgt_error *err)
{
    int rc;
    sgt_safetensors *s = calloc(1, sizeof *s);
    if (!s) return sgt_fail_memory(err, path);
    s->path = strdup(path);
    /* O_NONBLOCK: opening a named pipe must not block */
    s->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (s->fd < 0) rc = sgt_fail_errno(err, "%s", path);
    else if (!s->path) rc = sgt_fail_memory(err, path);
    else if ((rc = load_header(s, err)) == SGT_OK) rc = read_header(s, err);
    *out = s;
    if (rc == SGT_OK) return SGT_OK;
    *out = NULL;
    sgt_safetensors_close(s);
    return sgt_fail_hint(err, rc, "damaged or cut short: copy it again, or use another checkpoint");
}

void sgt_safetensors_close(sgt_safetensors *s)
{
    if (!s) return;
    if (s->fd >= 0) close(s->fd);
    json_decref(s->header);
    free(s->tensors);
    free(s->path);
    free(s);
}

size_t sgt_safetensors_count(const sgt_safetensors *s) { return s->count; }

const sgt_safetensor *sgt_safetensors_at(const sgt_safetensors *s, size_t i)
{
    return &s->tensors[i];
}

const sgt_safetensor *sgt_safetensors_find(const sgt_safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->tensors[i].name, name) == 0) return &s->tensors[i];
    return NULL;
}

/* ---- reading numbers ---- */

static float from_bits(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

static float from_half(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 1023;
    if (exponent == 31) return from_bits(sign | 0x7f800000 | fraction << 13);
    /* with exponent 0, the number is zero or subnormal, and its value is fraction * 2^-24 */
    if (exponent == 0) return (sign ? -1.0f : 1.0f) * (float)fraction * 0x1p-24f;
    return from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

typedef enum kind { F64, F32, F16, BF16 } kind;

static void convert(float *out, const uint8_t *in, size_t n, kind from)
{
    for (size_t i = 0; i < n; i++) {
        uint16_t h;
        double d;
        if (from == F32) memcpy(&out[i], in + 4 * i, 4);
        if (from == F64) memcpy(&d, in + 8 * i, 8), out[i] = (float)d;
        if (from == F16) memcpy(&h, in + 2 * i, 2), out[i] = from_half(h);
        if (from == BF16) memcpy(&h, in + 2 * i, 2), out[i] = from_bits((uint32_t)h << 16);
    }
}

int sgt_safetensors_read(const sgt_safetensors *s, const sgt_safetensor *t, uint64_t first,
                         size_t count, float *out, sgt_error *err)
{
    uint8_t bytes[16384];
    size_t k = 0, size = dtype_bytes(t->dtype);
    while (k <= BF16 && strcmp(t->dtype, dtypes[k].name) != 0) k++;
    if (k > BF16)
        return sgt_fail(err, SGT_EUNSUPPORTED, "%s: tensor %s is %s, not F32, F16, BF16 or F64",
                        s->path, t->name, t->dtype);
    if (first > t->count || count > t->count - first)
        return sgt_fail(err, SGT_EUSAGE, "%s: tensor %s has %llu numbers", s->path, t->name,
                        (unsigned long long)t->count);
    if (k == F32)
        return sgt_pread_all(s->fd, out, count * 4, s->data + t->begin + first * 4, s->path, err);
    for (size_t done = 0; done < count;) {
        size_t n = count - done < sizeof bytes / size ? count - done : sizeof bytes / size;
        int rc = sgt_pread_all(s->fd, bytes, n * size, s->data + t->begin + (first + done) * size,
                               s->path, err);
        if (rc < 0) return rc;
        convert(out + done, bytes, n, (kind)k);
        done += n;
    }
    return SGT_OK;
}

/* ---- writing ---- */

/* Data is written in blocks of ROOM bytes, with O_DIRECT if the file system supports it. Without
 * O_DIRECT, writing takes seven times as much CPU time, which training needs, and evicts the
 * training data from the page cache. */
#define ROOM SGT_SAFETENSORS_ROOM
/* O_DIRECT requires that the memory address, the file offset and the size of each write are
 * multiples of the file system's block size. The block size is a power of 2 and at most ALIGN
 * bytes. */
#define ALIGN 4096

struct sgt_safetensors_writer {
    sgt_file file;
    /* buffer of ROOM bytes, of which the first `filled` bytes have not been written to the file
     * yet */
    uint8_t *room;
    size_t filled;
    int direct; /* 1: O_DIRECT is on */
    json_t *header;
    /* declared: total size of the tensors declared so far, in bytes; written: total size of the
     * data passed to sgt_safetensors_write so far, in bytes */
    uint64_t declared, written;
    uint64_t bytes;     /* number of bytes put into the file or buffer so far, with the header */
    XXH3_state_t *hash; /* running checksum of the bytes written to the file so far */
};

static void set_direct(sgt_safetensors_writer *w, int on)
{
    int fd = fileno(w->file.stream), flags = fcntl(fd, F_GETFL);
    w->direct =
        flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0 && on;
}

int sgt_safetensors_begin(sgt_safetensors_writer **out, const char *path, sgt_error *err)
{
    int rc;
    sgt_safetensors_writer *w = calloc(1, sizeof *w);
    if (!w) return sgt_fail_memory(err, path);
    /* transformers requires this member */
    w->header = json_pack("{s:{s:s}}", "__metadata__", "format", "pt");
    w->hash = XXH3_createState();
    w->room = aligned_alloc(ALIGN, ROOM);
    if (!w->header || !w->hash || !w->room) rc = sgt_fail_memory(err, path);
    else rc = sgt_file_begin(&w->file, path, err);
    if (rc < 0) {
        sgt_safetensors_abandon(w);
        return rc;
    }
    XXH3_64bits_reset(w->hash);
    set_direct(w, 1);
    *out = w;
    return SGT_OK;
}

int sgt_safetensors_declare(sgt_safetensors_writer *w, const char *name, const uint32_t *dim,
                            uint32_t dims, sgt_error *err)
{
    uint64_t count = 1, begin = w->declared;
    json_t *shape = json_array();
    int bad = 0;
    for (uint32_t i = 0; i < dims; i++) {
        bad |= json_array_append_new(shape, json_integer(dim[i]));
        count *= dim[i];
    }
    w->declared += 4 * count;
    json_t *t = json_pack("{s:s, s:o, s:[I, I]}", "dtype", "F32", "shape", shape, "data_offsets",
                          (json_int_t)begin, (json_int_t)w->declared);
    bad |= json_object_set_new(w->header, name, t);
    if (bad) return sgt_fail_memory(err, w->file.path);
    return SGT_OK;
}

/* Write the buffered bytes to the file. If the buffer is only partly filled, as at the end of a
 * file, write it without O_DIRECT, which requires a size that is a multiple of ALIGN. */
static int flush(sgt_safetensors_writer *w, sgt_error *err)
{
    const uint8_t *from = w->room;
    XXH3_64bits_update(w->hash, from, w->filled);
    if (w->direct && w->filled < ROOM) set_direct(w, 0);
    while (w->direct && w->filled) {
        ssize_t n = write(fileno(w->file.stream), from, w->filled);
        if (n < 0 && errno == EINTR) continue;
        /* O_DIRECT can reject this write, for example if an incomplete earlier write has left the
         * file at an unaligned offset. In that case, write through the page cache. */
        if (n < 0 && errno == EINVAL) set_direct(w, 0);
        else if (n < 0) return sgt_fail_errno(err, "%s: cannot write", w->file.path);
        if (n > 0) from += n, w->filled -= (size_t)n;
    }
    size_t left = w->filled;
    w->filled = 0;
    return left ? sgt_file_write(&w->file, from, left, err) : SGT_OK;
}

static int put(sgt_safetensors_writer *w, const void *p, size_t n, sgt_error *err)
{
    const uint8_t *from = p;
    w->bytes += n;
    while (n) {
        size_t fits = ROOM - w->filled < n ? ROOM - w->filled : n;
        memcpy(w->room + w->filled, from, fits);
        w->filled += fits;
        from += fits;
        n -= fits;
        int rc = w->filled == ROOM ? flush(w, err) : SGT_OK;
        if (rc < 0) return rc;
    }
    return SGT_OK;
}

/* Write the header, padded with spaces to a multiple of 8 bytes, so that the data begins at a
 * multiple of 8 bytes, as the format requires. */
static int write_header(sgt_safetensors_writer *w, sgt_error *err)
{
    int rc;
    char *text = sgt_json_dumps(w->header, JSON_COMPACT);
    if (!text) return sgt_fail_memory(err, w->file.path);
    const size_t n = strlen(text);
    const uint64_t padded = (n + 7) / 8 * 8;
    if ((rc = put(w, &padded, sizeof padded, err)) == SGT_OK &&
        (rc = put(w, text, n, err)) == SGT_OK)
        rc = put(w, "        ", padded - n, err);
    free(text);
    json_decref(w->header);
    w->header = NULL;
    return rc;
}

int sgt_safetensors_write(sgt_safetensors_writer *w, const float *x, size_t count, sgt_error *err)
{
    int rc;
    if (w->header && (rc = write_header(w, err)) < 0) return rc;
    w->written += 4 * (uint64_t)count;
    if (w->written > w->declared)
        return sgt_fail(err, SGT_EUSAGE, "%s: more numbers than were declared", w->file.path);
    return put(w, x, 4 * count, err);
}

int sgt_safetensors_commit(sgt_safetensors_writer *w, uint64_t *bytes, uint64_t *xxh3,
                           sgt_error *err)
{
    int rc = SGT_OK;
    if (w->header) rc = write_header(w, err);
    if (rc == SGT_OK && w->written != w->declared)
        rc = sgt_fail(err, SGT_EUSAGE, "%s: %llu bytes of %llu were written", w->file.path,
                      (unsigned long long)w->written, (unsigned long long)w->declared);
    if (rc == SGT_OK) rc = flush(w, err);
    *bytes = w->bytes;
    *xxh3 = XXH3_64bits_digest(w->hash);
    if (rc == SGT_OK) rc = sgt_file_commit(&w->file, err);
    sgt_safetensors_abandon(w);
    return rc;
}

void sgt_safetensors_abandon(sgt_safetensors_writer *w)
{
    if (!w) return;
    sgt_file_abandon(&w->file);
    json_decref(w->header);
    XXH3_freeState(w->hash);
    free(w->room);
    free(w);
}
