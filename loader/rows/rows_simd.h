/* rows_simd.h: the functions of rows.h with vector instructions, in a form that rows_avx2.c,
 * rows_avx512.c and rows_neon.c share. The file that includes this header defines the type vec and
 * the functions load and store. It also defines three functions for ids that are `width` bytes
 * wide, where `width` is a constant:
 * - max: returns a vector whose lanes are the larger ids of two vectors
 * - top_of: returns the largest id in a vector
 * - put: writes the ids of a vector as integers of `size` bytes, and returns the ids
 *
 * The first vector is stored at the beginning of the row, and the second one at the next address
 * that is a multiple of the vector size. The second overlaps the first, but both write the same ids
 * where they overlap. As a result, all stores except the first and the last are aligned. (In
 * streams, so are the stores to the targets.) If a row has fewer ids than a vector, the plain C
 * functions are used. */

/* Write the vector of ids that begins at id i of a row. If the output has targets, also write the
 * vector of targets, which begins at id i + 1. Return the vector that was written last, from which
 * the caller finds the largest id of the row. */
SGT_ROWS_INLINE vec put_ids(size_t width, sgt_output o, char *first, char *second, const char *src,
                            size_t i)
{
    const size_t size = sgt_output_bytes(o);
    vec ids = put(first + i * size, src + i * width, width, size);
    if (!sgt_output_pairs(o)) return ids;
    return put(second + i * size, src + (i + 1) * width, width, size);
}

SGT_ROWS_INLINE uint32_t put_row(size_t width, sgt_output o, void *first, void *second,
                                 const void *src, size_t n)
{
    const size_t bytes = sizeof(vec), ids = bytes / width, size = sgt_output_bytes(o),
                 lead = bytes - ((uintptr_t)first & (bytes - 1));
    if (n < ids) return sgt_rows_plain.write(width, o, first, second, src, n);
    vec top = max(load(src), put_ids(width, o, first, second, src, 0), width);
    size_t i = lead / size;
    /* a faster loop for ids that are only copied, because the output has the same width and no
     * targets: four loads, followed by four stores */
    for (; size == width && !sgt_output_pairs(o) && i + 4 * ids <= n; i += 4 * ids) {
        const char *from = (const char *)src + i * width;
        char *to = (char *)first + i * width;
        vec a = load(from), b = load(from + bytes);
        vec c = load(from + 2 * bytes), d = load(from + 3 * bytes);
        store(to, a);
        store(to + bytes, b);
        store(to + 2 * bytes, c);
        store(to + 3 * bytes, d);
        top = max(top, max(max(a, b, width), max(c, d, width), width), width);
    }
    for (; i + ids <= n; i += ids) top = max(top, put_ids(width, o, first, second, src, i), width);
    return top_of(max(top, put_ids(width, o, first, second, src, n - ids), width), width);
}

static uint32_t write_row(size_t width, sgt_output o, void *first, void *second, const void *src,
                          size_t n)
{
    return sgt_rows_write(put_row, width, o, first, second, src, n);
}

SGT_ROWS_INLINE uint32_t largest_of(size_t width, const char *src, size_t n)
{
    const size_t ids = sizeof(vec) / width;
    if (n < ids) return sgt_rows_plain.largest(width, src, n);
    vec top = load(src + (n - ids) * width);
    for (size_t i = 0; i + ids <= n; i += ids) top = max(top, load(src + i * width), width);
    return top_of(top, width);
}

static uint32_t largest(size_t width, const void *src, size_t n)
{
    return width == 2 ? largest_of(2, src, n) : largest_of(4, src, n);
}
