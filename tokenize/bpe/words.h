/* words.h: encodes words, a few hundred at a time: the loop that nearly all text goes through. For
 * the files of tokenize/ and their tests.
 *
 * A word is a piece of split.h (a pre-token), or a part of one between two cuts that no token
 * spans. Words of up to 15 bytes are looked up in a table that each encoder owns. Words not found
 * are merged, several at a time, and stored in the table.
 *
 *     count = w->encode(w, s, ends, n, ids);
 *
 * The table has two parts: for words of up to 7 bytes, and of up to 15. A word's hash selects a
 * line of two entries. A new word is written to the first entry, and the word that was there moves
 * to the second. The branch-free loop reads only the first entry; the second is checked after a
 * miss.
 *
 * Long words are those that the table cannot hold: words of 16 bytes or more, and shorter ones with
 * many ids, such as runs of spaces. Up to 256 bytes they have a cache of their own. With 4-byte ids
 * and vector instructions, long words of up to 45 bytes that are not ASCII are merged together with
 * the missing words, starting from up to 15 tokens of complete characters, since a large vocabulary
 * leaves few cuts in text of many scripts. Any other long word of up to 256 bytes is cut between
 * any two bytes that no token spans, and its parts are merged separately. Longer words are encoded
 * uncut, by steps (pieces.c). */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

#include "tokenize/bpe/bpe.h"
#include "tokenize/text/pattern.h"

/* Each cached long word takes a number of units of 16 bytes. Vocabularies with 4-byte ids get more
 * units, because they leave fewer cuts, and so more long words. */
#define SGT_UNIT_BITS 20
#define SGT_LONG_UNITS(width) ((size_t)1 << ((width) == 4 ? SGT_UNIT_BITS : 16))
#define SGT_LONG_SETS(width) (SGT_LONG_UNITS(width) / 8)
#define SGT_MARKS 4096    /* number of dead ends that an encoder remembers (pieces.c) */
#define SGT_WORDS 320     /* most words in a batch */
#define SGT_WORD_SHORT 7  /* most bytes of a word in the table's first part */
#define SGT_WORD_BYTES 15 /* most bytes of a word in the table */
#define SGT_WORD_LINES 17 /* log2 of the number of lines in each part */
#define SGT_WORD_SHORT_LINE 32
#define SGT_WORD_LONG_LINE 64
/* bytes of the table */
#define SGT_WORD_TABLE (((size_t)SGT_WORD_SHORT_LINE + SGT_WORD_LONG_LINE) << SGT_WORD_LINES)

/* A word's bytes, padded with zeros, with its length in the last byte: that of `low` for a word of
 * up to 7 bytes, whose `high` is 0; else that of `high`. In the table, the upper half of that byte
 * is the number of its ids, and the ids follow: 8 bytes of them after `low` of a short word, 16
 * bytes after a longer one. A word with more ids than that has the number 0 and is treated as a
 * long word. No word has length 0, so an empty entry equals no word. A word that is too long has a
 * key that is never in the table. */
typedef struct sgt_word_key {
    uint64_t low, high;
} sgt_word_key;

#define SGT_WORD_FOUND (8 + 16 * 4) /* most bytes of a word's number of ids, with the ids */

typedef struct sgt_words sgt_words;
typedef size_t sgt_encode_piece(sgt_words *w, const uint8_t *s, size_t n, void *ids);

/* Encode `count` words from s on; word i ends at ends[i]. Every word must start at least 16 bytes
 * before the end of the readable text, and its ids 16 entries before the end of `ids`. Returns the
 * number of ids. */
typedef size_t sgt_words_encode(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count,
                                void *ids);

/* One function for each CPU level and id width; all give the same ids. Those for AVX exist on
 * x86-64 only. */
sgt_words_encode sgt_words_plain, sgt_words_avx2, sgt_words_avx512;
sgt_words_encode sgt_words_wide_plain, sgt_words_wide_avx2, sgt_words_wide_avx512;

struct sgt_words {
    const sgt_vocab *v;
    sgt_words_encode *encode; /* the function for this CPU */
    /* Cached long words, one after another (pieces.c), followed by SGT_WORD_FOUND bytes that may be
     * read; and a hash table of the units at which they begin, in sets of four. An entry holds the
     * unit in its lower SGT_UNIT_BITS bits and bits of the hash above them; 0 is an empty entry. */
    uint64_t (*long_words)[2];
    uint32_t (*long_sets)[4];
    size_t long_used; /* units requested so far, including unit 0, which stays empty */
    uint8_t *table;   /* SGT_WORD_TABLE bytes, and 16 more that may be read */
    sgt_word_key keys[SGT_WORDS];
    uint32_t places[SGT_WORDS]; /* (word): byte offset of the word's line in the table */
    /* (word): pointer to its number of ids and the ids, laid out as they follow a key, in the table
     * or in `merged` */
    const uint8_t *found[SGT_WORDS];
    uint16_t missing[SGT_WORDS]; /* indices of the words that the first entries do not hold */
    /* (missing word): its number of ids and the ids (words.c) */
    uint64_t merged[SGT_WORDS * SGT_WORD_FOUND / 8];
    /* Positions from which no tokens lead to the end of a piece. Positions count the bytes of all
     * pieces that this encoder has encoded by steps. */
    uint64_t *marks;
    uint64_t place; /* position of the first byte of the next piece; begins at 1 */
};

/* Encode a long word s[0..n), n > 0, into ids, which has room for n. Returns the number of ids. */
sgt_encode_piece sgt_encode_long_16, sgt_encode_long_32;

/* Return a pointer to the number of ids and the ids of a cached long word, laid out as they follow
 * a key; NULL if it is not cached. If it has more than 15 ids, that number is 0. */
typedef const void *sgt_find_long(const sgt_words *w, const uint8_t *s, size_t n);
sgt_find_long sgt_find_long_16, sgt_find_long_32;
/* Cache a long word of at most SGT_BPE_SCAN_MAX bytes. */
typedef void sgt_keep_long(sgt_words *w, const uint8_t *s, size_t n, const void *ids, size_t count);
sgt_keep_long sgt_keep_long_16, sgt_keep_long_32;

#define SGT_PATTERN_FAILED SIZE_MAX /* returned instead of a number of ids */

/* The functions of one id width: encode a piece in linear time by steps (pieces.c); encode a text,
 * which returns SGT_PATTERN_FAILED if e->pattern fails; and sgt_extent_cut. */
typedef struct sgt_bpe {
    sgt_encode_piece *steps;
    size_t (*text)(sgt_encoder *e, const void *text, size_t n, void *ids);
    size_t (*cut)(sgt_encoder *e, const uint8_t *text, size_t n);
} sgt_bpe;
extern const sgt_bpe sgt_bpe_16, sgt_bpe_32;

struct sgt_encoder {
    sgt_words words;
    const sgt_bpe *by; /* functions for the vocabulary's id width */
    /* memory of the tables, in huge pages that are faulted in on first use */
    sgt_arena memory;
    sgt_pattern *pattern; /* pattern to split text by; NULL: the vocabulary's rule */
    sgt_error failure;    /* the last failure of `pattern` */
};

#endif
