/* words.h: encodes words in batches of a few hundred. Nearly all text is encoded by this code. The
 * interface is internal to tokenize/ and its tests.
 *
 * A word is a pre-token, as the split rule produces it (split.h), or a section of a pre-token. (A
 * pre-token may be cut where no token can cross the cut, and its sections are then encoded
 * separately.) Each encoder has a table of encoded words of up to 15 bytes. Words that are not in
 * the table are encoded together, several at a time, and are then stored in the table.
 *
 *     count = w->encode(w, s, ends, n, ids);
 *
 * The table is a hash table with two parts: one for words of up to 7 bytes, one for words of 8 to
 * 15 bytes. The hash of a word selects a line (a bucket of two entries). A new word is written to
 * the first entry of the line, and the word that was there moves to the second entry. A branch-free
 * loop looks up all words of a batch in the first entries only. The second entry is checked only
 * for words that this loop did not find.
 *
 * A long word is a word that the table cannot hold: a word of 16 bytes or more, or a shorter word
 * with many ids, such as some runs of spaces. Long words are handled as follows:
 * - Long words of up to 256 bytes have a separate cache.
 * - A long word that is not in the cache is cut between any two adjacent bytes that no token
 *   contains next to each other, and its sections are encoded separately.
 * - A large vocabulary allows few such cuts in text that is not English. With 4-byte ids and vector
 *   instructions, a long word of up to 45 bytes that is not ASCII is therefore encoded together
 *   with the words that are not in the table, if it starts with at most 15 tokens, one per
 *   character.
 * - Words of more than 256 bytes are encoded in linear time, without cuts (pieces.c). */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

#include "tokenize/bpe/bpe.h"
#include "tokenize/text/pattern.h"

/* With 4-byte ids, an encoder's cache of long words has 2^SGT_UNIT_BITS units of 16 bytes. With
 * 2-byte ids, 2^16 units suffice: a vocabulary with 2-byte ids is small, so more pairs of bytes
 * occur in no token, words are cut at such pairs more often, and long words are rarer. */
#define SGT_UNIT_BITS 20
#define SGT_LONG_UNITS(width) ((size_t)1 << ((width) == 4 ? SGT_UNIT_BITS : 16))
#define SGT_LONG_SETS(width) (SGT_LONG_UNITS(width) / 8)
/* number of elements of sgt_words.marks, an array of offsets that cannot be a border between
 * tokens */
#define SGT_MARKS 4096
#define SGT_WORDS 320     /* most words in a batch */
#define SGT_WORD_SHORT 7  /* maximum length in bytes of a word in the first part of the table */
#define SGT_WORD_BYTES 15 /* most bytes of a word in the table */
#define SGT_WORD_LINES 17 /* each part of the table has 2^SGT_WORD_LINES lines (buckets) */
#define SGT_WORD_SHORT_LINE 32
#define SGT_WORD_LONG_LINE 64
/* bytes of the table */
#define SGT_WORD_TABLE (((size_t)SGT_WORD_SHORT_LINE + SGT_WORD_LONG_LINE) << SGT_WORD_LINES)

/* A key that identifies a word: the bytes of the word, padded with zeros, and the length of the
 * word. The key of a word of up to 7 bytes is in `low`, with the length in the last byte of `low`,
 * and `high` is 0. The bytes of a longer word fill `low` and continue in `high`, with the length in
 * the last byte of `high`. A length is never 0, so no key equals an empty table entry.
 *
 * A table entry is a key followed by the word's ids: up to 8 bytes of ids for a short word, 16 for
 * a longer one. In the byte that holds the length, the upper four bits of a table entry hold the
 * number of ids, or 0 if the ids do not fit into the entry. In the latter case, the word is treated
 * as a long word. A word that is too long for the table gets a key that no table entry has. */
typedef struct sgt_word_key {
    uint64_t low, high;
} sgt_word_key;

/* maximum size in bytes of the encoding of a word (struct word_found in words.c): 8 bytes for the
 * number of ids, then up to 16 ids of up to 4 bytes */
#define SGT_WORD_FOUND (8 + 16 * 4)

typedef struct sgt_words sgt_words;
typedef size_t sgt_encode_piece(sgt_words *w, const uint8_t *s, size_t n, void *ids);

/* Encode `count` consecutive words into `ids`, and return the number of ids. The first word starts
 * at s, and word i ends before s + ends[i]. At least 16 bytes must be readable from the start of
 * every word on. `ids` must have room for at least 16 ids from the first id of every word on,
 * because up to 16 are written, even if the word has fewer. */
typedef size_t sgt_words_encode(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count,
                                void *ids);

/* One function for each id width ("wide": 4-byte ids) and each supported instruction set. All give
 * the same ids. The functions for AVX2 and AVX-512 exist only on x86-64. */
sgt_words_encode sgt_words_plain, sgt_words_avx2, sgt_words_avx512;
sgt_words_encode sgt_words_wide_plain, sgt_words_wide_avx2, sgt_words_wide_avx512;

struct sgt_words {
    const sgt_vocab *v;
    sgt_words_encode *encode; /* the function for this CPU */
    /* Cache of long words. The array `long_words` is the memory of the cache, in units of 16 bytes.
     * The cached words are stored in it one after another (struct long_word in pieces.c), and
     * SGT_WORD_FOUND more bytes after the array can be read. `long_sets` is a hash table that finds
     * a cached word in `long_words`. The hash of the word selects a set of four entries. The lower
     * SGT_UNIT_BITS bits of an entry are the index of the word's first unit in `long_words`, and
     * the upper bits are a part of the word's hash. An entry that is 0 is empty. */
    uint64_t (*long_words)[2];
    uint32_t (*long_sets)[4];
    /* 1 plus the number of units of `long_words` that long words have needed since the cache was
     * last emptied, including words that were not stored because the cache was full. (Unit 0 is not
     * used.) */
    size_t long_used;
    /* table of encoded words: SGT_WORD_TABLE bytes, followed by 16 bytes that a read of 16 bytes at
     * the end of the table may touch */
    uint8_t *table;
    sgt_word_key keys[SGT_WORDS];
    /* for each word of the batch: offset in bytes, in `table`, of the word's line (a bucket of two
     * entries) */
    uint32_t places[SGT_WORDS];
    /* for each word of the batch: pointer to the encoding of the word, in `table` or in `merged`.
     * An encoding is an 8-byte integer, whose upper four bits are the number of ids, followed by
     * the ids. */
    const uint8_t *found[SGT_WORDS];
    /* for each word that was not found in the first entry of its table line: index of the word in
     * the batch */
    uint16_t missing[SGT_WORDS];
    /* encodings of the words in `missing`, in the same order (array of word_found; see words.c) */
    uint64_t merged[SGT_WORDS * SGT_WORD_FOUND / 8];
    /* Hash table of dead ends found while encoding a long piece (pre-token; see pieces.c). A dead
     * end is an offset at which the encoding was found to have no border between tokens, so no
     * token that ends there is tried again. Dead end x is stored as marks[x % SGT_MARKS] = x.
     * Offsets are counted over all long pieces, so a dead end of an earlier piece is never mistaken
     * for an offset in the current piece. */
    uint64_t *marks;
    /* offset of the first byte of the next long piece, counted over all long pieces (see `marks`);
     * starts at 1, because 0 in `marks` stands for an empty entry */
    uint64_t place;
};

/* Encode a long word, the n > 0 bytes at s, into `ids`, which must have room for n ids. Return the
 * number of ids. */
sgt_encode_piece sgt_encode_long_16, sgt_encode_long_32;

/* Look up the n bytes at s, a long word, in the cache. Return a pointer to its encoding (struct
 * word_found in words.c), or NULL if the word is not cached. If the word has more than 15 ids, the
 * encoding states their number as 0. */
typedef const void *sgt_find_long(const sgt_words *w, const uint8_t *s, size_t n);
sgt_find_long sgt_find_long_16, sgt_find_long_32;
/* Store a long word, the n bytes at s (at most SGT_BPE_SCAN_MAX), and its `count` ids in the cache
 * of long words. */
typedef void sgt_keep_long(sgt_words *w, const uint8_t *s, size_t n, const void *ids, size_t count);
sgt_keep_long sgt_keep_long_16, sgt_keep_long_32;

/* value that sgt_bpe.text returns, instead of the number of ids, if matching the PCRE2 split
 * pattern fails */
#define SGT_PATTERN_FAILED SIZE_MAX

/* The functions that encode with ids of one width (2 or 4 bytes).
 *
 * steps: encode a piece (pre-token) in linear time (pieces.c)
 * text: encode a text, and return the number of ids; return SGT_PATTERN_FAILED if matching the
 * split pattern e->pattern fails
 * cut: implements sgt_extent_cut */
typedef struct sgt_bpe {
    sgt_encode_piece *steps;
    size_t (*text)(sgt_encoder *e, const void *text, size_t n, void *ids);
    size_t (*cut)(sgt_encoder *e, const uint8_t *text, size_t n);
} sgt_bpe;
extern const sgt_bpe sgt_bpe_16, sgt_bpe_32;

struct sgt_encoder {
    sgt_words words;
    const sgt_bpe *by; /* functions for the width of the vocabulary's ids */
    /* memory for the tables and caches in `words`: huge pages, which the kernel allocates when they
     * are first accessed */
    sgt_arena memory;
    /* compiled PCRE2 pattern that splits the text; NULL if the vocabulary has a built-in split
     * rule */
    sgt_pattern *pattern;
    sgt_error failure; /* the last failure of `pattern` */
};

#endif
