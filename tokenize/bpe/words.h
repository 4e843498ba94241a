/* words.h: words to ids, some hundred at a time: the loop that nearly all text goes through. For
 * the files of tokenize/ and their tests.
 *
 * A word is a piece of split.h, or a part of one between two places that no token spans. Words of
 * up to 15 bytes are looked up in a table of an encoder's own. Those that are not there are merged,
 * several side by side, and put there.
 *
 *     count = w->level->encode(w, s, ends, n, ids);
 *
 * The table has two parts, for words up to 7 bytes and up to 15, of lines that a word's hash alone
 * selects. A line has two places, and a word is put in the first, what was there moves to the
 * second: only the first is looked at by the loop that has no branches, the second where that has
 * failed. */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

#include "long_words.h"
#include "vocab/vocab.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SGT_WORDS 320     /* words of a batch at most */
#define SGT_WORD_SHORT 7  /* bytes of a word of the table's first part, at most */
#define SGT_WORD_BYTES 15 /* bytes of a word of the table, at most */
#define SGT_WINDOW_STEP 7 /* bytes from a window to the next, of SGT_WORD_BYTES each */
#define SGT_WORD_LINES 17 /* log2 of the lines of either part */
#define SGT_WORD_SHORT_LINE 32
#define SGT_WORD_LONG_LINE 64
/* bytes */
#define SGT_WORD_TABLE (((size_t)SGT_WORD_SHORT_LINE + SGT_WORD_LONG_LINE) << SGT_WORD_LINES)

/* A word's bytes, zero-padded, and in the last byte (of `low` for up to 7 bytes, `high` is 0 then)
 * its length. In the table the upper half of that byte is the number of its ids, which follow: up
 * to 4 for a short word, whose place is `low` and 8 bytes of ids, up to 8 for a longer one. Nothing
 * has a length of 0, so an empty place equals no word. A word that is too long has a key that is
 * never in the table. */
typedef struct sgt_word_key {
    uint64_t low, high;
} sgt_word_key;

typedef struct sgt_word_ids {
    uint16_t ids[16];
} sgt_word_ids;

typedef struct sgt_words sgt_words;

/* The functions of one CPU level. All levels give the same ids. */
typedef struct sgt_words_level {
    const char *name;
    /* `count` words from s on, word i ending at ends[i], all of them at least 16 bytes before the
     * end of what may be read and of the room for ids. Returns how many ids. */
    size_t (*encode)(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count,
                     uint16_t *ids);
    /* Merges `count` windows from s on, a multiple of 4: their ids, and a bit for each byte where a
     * token starts, and for the end. One byte behind the last may be read. */
    void (*windows)(const sgt_vocab *v, const uint8_t *s, size_t count, sgt_word_ids *ids,
                    uint32_t *starts);
} sgt_words_level;

struct sgt_words {
    const sgt_vocab *v;
    const sgt_words_level *level;
    const sgt_long_words *longs; /* for words that are too long for the table */
    uint8_t *table;              /* SGT_WORD_TABLE bytes, and 16 that may be read */
    sgt_word_key keys[SGT_WORDS];
    uint32_t places[SGT_WORDS];       /* of the table, in bytes */
    const uint16_t *found[SGT_WORDS]; /* where its ids are: in the table, or in `merged` */
    uint16_t counts[SGT_WORDS];       /* of its ids; 0: the word is too long for the table */
    uint16_t missing[SGT_WORDS];      /* the words that were not found */
    sgt_word_ids merged[SGT_WORDS];   /* ids of missing[i] */
};

extern const sgt_words_level sgt_words_plain;
extern const sgt_words_level sgt_words_avx2;   /* x86-64 only */
extern const sgt_words_level sgt_words_avx512; /* x86-64 only */

#ifdef __cplusplus
}
#endif
#endif
