/* split_vectors.inc.h: code shared by the instruction sets with vectors that split_blocks.h uses
 * (AVX2, AVX-512, NEON). A mask has one bit for each byte of a block of 64 bytes.
 *
 * The file of an instruction set includes this file after it has defined the type bytes64, a vector
 * of 64 bytes, and these functions:
 *     load(p)                the 64 bytes at p
 *     table(p)               the 16 bytes at p, four times
 *     look_up(table, index)  for each byte of `index`, the byte of `table` with that index, 0 to 15
 *     with(v, x)             each byte of v ANDed with x
 *     halved(v, n)           each byte of v shifted right by n; the bits shifted in are undefined
 *     twice(v)               each byte of v times two
 *     top_bits(v)            mask of the bytes of v whose top bit is set
 *     equal(v, x)            mask of the bytes of v that equal x
 *     within(v, from, count) mask of the bytes of v between `from` and `from + count - 1`, unsigned
 *     has(v, bit)            mask of the bytes of v that have the one bit set that is set in the
 *                            same byte of `bit`
 *     look_two(p, valid, v, found)   classify the two-byte characters and add their classes to
 *                            *found. p: address of the block; valid: mask of the characters' first
 *                            bytes; v[i]: the 64 bytes at p + i
 *
 * After the #include, the file of the instruction set defines `classify` (see split_level), unless
 * it uses classify_ranges. */

SPLIT_INLINE void classify_ranges(const uint8_t *p, split_block *b)
{
    const bytes64 v = load(p);
    b->blank = equal(v, ' ');
    b->narrow_space = b->blank | within(v, '\t', 5);
    b->low = within(with(v, 0xDF), 'A', 26) | b->narrow_space;
    b->high = within(v, '0', 10) | b->narrow_space;
    b->quote = equal(v, '\'');
    b->wide = top_bits(v);
}

/* Position of a character's class in a table of classes, as determined by the last byte of the
 * character's UTF-8 encoding. A group is the 64 characters that differ only in this last byte. A
 * group's classes take 16 bytes, two bits per class. The fields contain a position for each byte of
 * a block, which is used only if the byte is the last byte of a character. */
typedef struct last_bytes {
    /* index: which of the group's 16 bytes contains the class; low: byte in which only the class's
     * low bit is set */
    bytes64 index, low;
} last_bytes;

SPLIT_INLINE last_bytes last_of(bytes64 v)
{
    static const uint8_t lows[16] = {1, 4, 16, 64};
    return (last_bytes){with(halved(v, 2), 15), look_up(table(lows), with(v, 3))};
}

/* Add the classes of the block's characters that belong to one group to *found. A group is the 64
 * characters that differ only in the last byte of their UTF-8 encoding. classes: the group's table
 * of classes, 16 bytes. last: positions in this table. same: mask of the first bytes of the
 * characters. */
SPLIT_INLINE void add_classes(const uint8_t *classes, last_bytes last, uint64_t same,
                              first_classes *found)
{
    const bytes64 t = look_up(table(classes), last.index);
    found->low |= same & has(t, last.low);
    found->high |= same & has(t, twice(last.low));
}

/* Look up the classes of those non-ASCII characters in the block at p whose first bytes are in the
 * mask r, and add them to *found. Each of these characters has `more` bytes after its first byte.
 * Each iteration of the loop looks up one group: the characters that differ only in their last
 * byte. A block rarely has more than a few groups. */
SPLIT_INLINE void look_up_groups(const uint8_t *p, uint64_t r, const bytes64 v[4], int more,
                                 first_classes *found)
{
    const last_bytes last = last_of(v[more]);
    while (r) {
        unsigned at = (unsigned)__builtin_ctzll(r), group;
        uint64_t same = r & equal(v[0], p[at]);
        if (more == 1) {
            group = p[at] & 0x1Fu;
        } else {
            same &= equal(v[1], p[at + 1]);
            group = (p[at] & 0xFu) << 6 | (p[at + 1] & 0x3Fu);
        }
        if (more == 3) {
            same &= equal(v[2], p[at + 2]);
            group = group << 6 | (p[at + 2] & 0x3Fu);
        }
        add_classes(sgt_unicode_classes[sgt_unicode_block[group >> 2]] + (size_t)16 * (group & 3),
                    last, same, found);
        r &= ~same;
    }
}

/* Return the mask of the three-byte characters whose first two bytes already show that they are
 * letters. This finds most Chinese and Korean characters without many table look-ups
 * (look_up_groups).
 *
 * The characters with the same first byte are 4,096 code points, which bits 3 to 5 of the second
 * byte divide into eighths of 512 code points. The table `eighths` is indexed by the low four bits
 * of the first byte. Each entry has one bit per eighth: 1 if all 512 code points are letters. */
SPLIT_INLINE uint64_t all_letters(bytes64 first, bytes64 second)
{
    static const uint8_t eighths[16] = {0,    0,    0,    0xFC, 0xBF, 0xFF, 0xFF, 0xFF,
                                        0xFF, 0xFF, 0xC3, 0xFF, 0xFF, 0x07, 0,    0},
                         bits[16] = {1, 2, 4, 8, 16, 32, 64, 128};
    return has(look_up(table(eighths), with(first, 15)),
               look_up(table(bits), with(halved(second, 3), 7)));
}

/* For one bit of the class: add all bytes of the non-ASCII characters whose class has this bit to
 * the mask *class. Return the mask of the bytes that are in the next block.
 *
 * first: mask of the first bytes of the characters whose class has this bit set
 * three: mask of the first bytes of 3-byte and 4-byte characters
 * four: mask of the first bytes of 4-byte characters
 * in: result of this function for the previous block */
SPLIT_INLINE uint64_t spread(uint64_t *class, uint64_t first, uint64_t three, uint64_t four,
                             uint64_t in)
{
    three &= first;
    four &= first;
    *class |= first | first << 1 | three << 2 | four << 3 | in;
    return first >> 63 | three >> 62 | four >> 61;
}

/* Implement split_level.classify_wide, which classifies non-ASCII characters. A first byte followed
 * by the continuation bytes that it requires begins a character. Bytes outside such characters are
 * ill-formed, and keep class "other", which is 0. */
static __attribute__((noinline)) void classify_wide(const uint8_t *p, uint64_t in[2],
                                                    split_block *b)
{
    bytes64 v[4] = {load(p), load(p + 1), load(p + 2), load(p + 3)};
    first_classes found = {0, 0};
    uint64_t next = within(v[1], 0x80, 0x40), next2 = next & within(v[2], 0x80, 0x40);
    uint64_t two = within(v[0], 0xC2, 0xE0 - 0xC2) & next, three = within(v[0], 0xE0, 0x10) & next2,
             four = 0;
    uint64_t beyond = within(v[0], 0xF0, 5) & next2;
    if (two) look_two(p, two, v, &found);
    if (three) {
        const uint64_t letters = three & all_letters(v[0], v[1]),
                       overlong = equal(v[0], 0xE0) & within(v[1], 0x80, 0x20);
        found.low |= letters;
        look_up_groups(p, three & ~letters & ~overlong, v, 2, &found);
    }
    if (beyond) {
        four = beyond & within(v[3], 0x80, 0x40);
        four &= ~(equal(v[0], 0xF0) & within(v[1], 0x80, 0x10)) &
                ~(equal(v[0], 0xF4) & within(v[1], 0x90, 0x30));
        look_up_groups(p, four, v, 3, &found);
    }
    three |= four;
    in[0] = spread(&b->low, found.low, three, four, in[0]);
    in[1] = spread(&b->high, found.high, three, four, in[1]);
    b->wide_space = found.low & found.high;
}

SPLIT_INLINE void contractions(const uint8_t *p, uint64_t quotes, uint64_t *two, uint64_t *three)
{
    bytes64 a = load(p + 1), b = load(p + 2);
    *two = (equal(a, 's') | equal(a, 't') | equal(a, 'd') | equal(a, 'm')) & quotes;
    *three = ((equal(a, 'l') & equal(b, 'l')) | ((equal(a, 'v') | equal(a, 'r')) & equal(b, 'e'))) &
             quotes;
}

SPLIT_INLINE uint64_t equal_bytes(const uint8_t *p, char x) { return equal(load(p), x); }

SPLIT_INLINE uint64_t upper(const uint8_t *p) { return within(load(p), 'A', 26); }
