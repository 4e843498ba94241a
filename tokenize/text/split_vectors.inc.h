/* split_vectors.inc.h: what the levels with vectors share (split_blocks.h). A level defines before it
 * bytes64, the bytes of a block; for these load(p), equal(v, x) and within(v, from, count), which
 * give masks; and last_bytes with last_of and add_classes. Behind it, it defines look_two and
 * look_three. */

/* Classify characters of two or three bytes. p: the block; valid: their first bytes; v: the block,
 * and the block moved by 1 to 3 bytes. */
SPLIT_INLINE void look_two(const uint8_t *p, uint64_t valid, const bytes64 v[4],
                           first_classes *found);
SPLIT_INLINE void look_three(const uint8_t *p, uint64_t valid, const bytes64 v[4],
                             first_classes *found);

/* Look up classes group by group. Characters that share all bytes but the last form a group of 64,
 * whose classes are 16 bytes of unicode.h's table. All characters of one group are looked up at
 * once; a block rarely has more than a few groups. r: first bytes to look up; more: bytes that
 * follow a first byte. */
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

/* Give every byte of a character the class of its first byte. three, four: first bytes of
 * characters of at least that many bytes. in: bits carried over from the previous block. Return the
 * bits to carry over to the next. */
SPLIT_INLINE uint64_t spread(uint64_t *class, uint64_t first, uint64_t three, uint64_t four,
                             uint64_t in)
{
    three &= first;
    four &= first;
    *class |= first | first << 1 | three << 2 | four << 3 | in;
    return first >> 63 | three >> 62 | four >> 61;
}

/* Classify the non-ASCII characters. A first byte with the right bytes behind it is a character;
 * all other bytes are ill-formed. */
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
    if (three) look_three(p, three, v, &found);
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
