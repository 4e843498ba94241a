/* words.h: encodes words in batches of a few hundred. Nearly all text goes through this loop. The
 * interface is internal to tokenize/ and its tests.
 *
 * A word is a piece of split.h (a pre-token), or a section of a piece between two cuts. No token
 * crosses a cut, so sections can be encoded separately. Each encoder has a table of words of up to
 * 15 bytes. A word that is not in the table is merged, together with other missing words, and then
 * stored in the table.
 *
 *     count = w->encode(w, s, ends, n, ids);
 *
 * The table has two parts: one for words of up to 7 bytes, one for words of 8 to 15. A word's hash
 * selects a line of two entries. A new word is written to the first entry, and the word that was
 * there moves to the second. The branch-free loop reads only the first entry; the second is checked
 * after a miss.
 *
 * Long words are those that the table cannot hold: words of 16 bytes or more, and shorter ones with
 * many ids, such as runs of spaces. They are handled as follows:
 * - Long words of up to 256 bytes have a separate cache.
 * - Those that are not in the cache are cut between any two bytes that no token spans, and their
 *   sections are merged separately.
 * - But a large vocabulary leaves few cuts in text of many scripts. With 4-byte ids and vector
 *   instructions, a long word of up to 45 bytes that is not ASCII is therefore merged together with
 *   the missing words. It starts as up to 15 tokens, one per character.
 * - Words of more than 256 bytes are encoded in linear time, without cuts (pieces.c). */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

#include "tokenize/bpe/bpe.h"
#include "tokenize/text/pattern.h"

/* log2 of the size of an encoder's long-word cache, in units of 16 bytes, for 4-byte ids. With
 * 2-byte ids, 2^16 units suffice: a small vocabulary has more byte pairs that no token contains, so
 * words are cut more often, and long words are rarer. */
#define SGT_UNIT_BITS 20
#define SGT_LONG_UNITS(width) ((size_t)1 << ((width) == 4 ? SGT_UNIT_BITS : 16))
#define SGT_LONG_SETS(width) (SGT_LONG_UNITS(width) / 8)
/* number of elements of sgt_words.marks, which lists offsets that lead to no encoding */
#define SGT_MARKS 4096
#define SGT_WORDS 320     /* most words in a batch */
#define SGT_WORD_SHORT 7  /* maximum length in bytes of the words in the table's first part */
#define SGT_WORD_BYTES 15 /* most bytes of a word in the table */
#define SGT_WORD_LINES 17 /* log2 of the number of lines (buckets) in each part of the table */
#define SGT_WORD_SHORT_LINE 32
#define SGT_WORD_LONG_LINE 64
/* bytes of the table */
#define SGT_WORD_TABLE (((size_t)SGT_WORD_SHORT_LINE + SGT_WORD_LONG_LINE) << SGT_WORD_LINES)

/* A key that identifies a word: its bytes, padded with zeros, and its length. The key of a word of
 * up to 7 bytes is in `low`, and `high` is 0. A longer word fills `low` and continues in `high`.
 * The length is in the last byte of `low` or `high`, respectively. It is never 0, so no key equals
 * an empty table entry.
 *
 * A table entry is a key followed by the word's ids: up to 8 bytes of ids for a short word, 16 for
 * a longer one. The upper half of the entry's length byte holds the number of ids, or 0 if they do
 * not fit. In that case, the word is treated as a long word. A word that is too long for the table
 * gets a key that is never stored there. */
typedef struct sgt_word_key {
    uint64_t low, high;
} sgt_word_key;

/* maximum size in bytes of a word's result (word_found in words.c): the number of ids, then the
 * ids */
#define SGT_WORD_FOUND (8 + 16 * 4)

typedef struct sgt_words sgt_words;
typedef size_t sgt_encode_piece(sgt_words *w, const uint8_t *s, size_t n, void *ids);

/* Encode `count` consecutive words, and return the number of ids. The first word starts at s, and
 * word i ends at s + ends[i]. At least 16 bytes must be readable from the start of every word.
 * Whenever a word is encoded, `ids` must have room for at least 16 more elements. */
typedef size_t sgt_words_encode(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count,
                                void *ids);

/* One function for each CPU level and id width. All give the same ids. The AVX functions exist only
 * on x86-64. */
sgt_words_encode sgt_words_plain, sgt_words_avx2, sgt_words_avx512;
sgt_words_encode sgt_words_wide_plain, sgt_words_wide_avx2, sgt_words_wide_avx512;

struct sgt_words {
    const sgt_vocab *v;
    sgt_words_encode *encode; /* the function for this CPU */
    /* Cache of long words. long_words: memory of the cache, in units of 16 bytes, in which the
     * words are stored one after another (long_word in pieces.c); SGT_WORD_FOUND readable bytes
     * follow them. long_sets: hash table that gives a word's first unit. A word's hash selects a
     * set of four entries. The lower SGT_UNIT_BITS bits of an entry are the index of a first unit,
     * and the bits above them are bits of the word's hash. An entry of 0 is empty. */
    uint64_t (*long_words)[2];
    uint32_t (*long_sets)[4];
    /* number of 16-byte units used since the cache was last emptied, including units that were only
     * counted, for words that did not fit; starts at 1, because unit 0 is not used */
    size_t long_used;
    /* table of encoded words: SGT_WORD_TABLE bytes, then 16 bytes of padding for wide reads */
    uint8_t *table;
    sgt_word_key keys[SGT_WORDS];
    /* byte offset in `table` of each word's line, a bucket of two entries */
    uint32_t places[SGT_WORDS];
    /* pointer to each word's result, in `table` or in `merged`: an 8-byte integer whose upper four
     * bits are the number of ids, then the ids */
    const uint8_t *found[SGT_WORDS];
    /* batch indices of the words that were not found in the first entry of their table line */
    uint16_t missing[SGT_WORDS];
    /* results of the words in `missing`, in the same order; each is a word_found (words.c) */
    uint64_t merged[SGT_WORDS * SGT_WORD_FOUND / 8];
    /* Dead ends found while encoding a long piece (pieces.c). A dead end is an offset from which no
     * sequence of tokens leads to the end of the piece, so it need not be tried again. Dead end x
     * is stored as marks[x % SGT_MARKS] = x. Offsets are counted over all pieces, so a mark of an
     * earlier piece never equals an offset in this piece. */
    uint64_t *marks;
    /* offset of the next long piece's first byte, counted over all long pieces (see `marks`);
     * starts at 1, because a mark of 0 stands for none */
    uint64_t place;
};

/* Encode a long word, the n > 0 bytes at s, into `ids`, which must have room for n ids. Return the
 * number of ids. */
sgt_encode_piece sgt_encode_long_16, sgt_encode_long_32;

/* Look up a long word in the cache. Return a pointer to its result (word_found in words.c), or NULL
 * if the word is not cached. If the word has more than 15 ids, the result gives their number as
 * 0. */
typedef const void *sgt_find_long(const sgt_words *w, const uint8_t *s, size_t n);
sgt_find_long sgt_find_long_16, sgt_find_long_32;
/* Store a long word of at most SGT_BPE_SCAN_MAX bytes, and its ids, in the cache. */
typedef void sgt_keep_long(sgt_words *w, const uint8_t *s, size_t n, const void *ids, size_t count);
sgt_keep_long sgt_keep_long_16, sgt_keep_long_32;

/* return value of sgt_bpe.text, instead of the number of ids, if the split pattern fails */
#define SGT_PATTERN_FAILED SIZE_MAX

/* Functions for one id width.
 *
 * steps: encode a piece in linear time (pieces.c)
 * text: encode a text; return SGT_PATTERN_FAILED if e->pattern fails
 * cut: implements sgt_extent_cut */
typedef struct sgt_bpe {
    sgt_encode_piece *steps;
    size_t (*text)(sgt_encoder *e, const void *text, size_t n, void *ids);
    size_t (*cut)(sgt_encoder *e, const uint8_t *text, size_t n);
} sgt_bpe;
extern const sgt_bpe sgt_bpe_16, sgt_bpe_32;

struct sgt_encoder {
    sgt_words words;
    const sgt_bpe *by; /* functions for the vocabulary's id width */
    /* memory for the tables: huge pages that the kernel allocates on first access */
    sgt_arena memory;
    /* user-defined pattern to split text by; NULL if the vocabulary has a built-in rule */
    sgt_pattern *pattern;
    sgt_error failure; /* the last failure of `pattern` */
};

#endif
