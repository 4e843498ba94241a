/* words.h: encodes words, a few hundred at a time: the loop that nearly all text goes through. For
 * the files of tokenize/ and their tests.
 *
 * A word is a piece of split.h, or a part of one between two places that no token spans. Words of
 * up to 15 bytes are looked up in a table that each encoder owns. Words not found are merged,
 * several side by side, and stored in the table.
 *
 *     count = w->encode(w, s, ends, n, ids);
 *
 * The table has two parts, for words of up to 7 bytes and of up to 15. A word's hash selects a line
 * of two places. A new word goes to the first place, and the word that was there moves to the
 * second. The branch-free loop looks at the first place only; the second is checked when that
 * fails.
 *
 * Words that the table cannot hold are those of 16 bytes or more, and shorter ones of many ids,
 * such as runs of spaces. Up to 126 bytes they are cached in a table of their own, with their ids.
 * With 4-byte ids and vectors, those of up to 45 bytes that are not ASCII are not: they are merged
 * beside the missing ones, from up to 15 tokens of whole characters, since a large vocabulary leaves
 * few cuts in text of many scripts.
 * Up to 512 bytes, a word that is not there is cut wherever no token spans the cut, and its parts
 * are merged separately. Longer words are encoded whole, by steps (pieces.c). */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

#include "tokenize/bpe/bpe.h"
#include "tokenize/text/pattern.h"

#define SGT_LONG_WORDS_BYTES ((size_t)1 << 20) /* size of the table of long words */
#define SGT_MARKS 4096                         /* places of dead ends that an encoder remembers */
#define SGT_WORDS 320                          /* most words in a batch */
#define SGT_WORD_SHORT 7                       /* most bytes of a word in the table's first part */
#define SGT_WORD_BYTES 15                      /* most bytes of a word in the table */
#define SGT_WORD_LINES 17                      /* log2 of the number of lines in each part */
#define SGT_WORD_SHORT_LINE 32
#define SGT_WORD_LONG_LINE 64
/* bytes of the table */
#define SGT_WORD_TABLE (((size_t)SGT_WORD_SHORT_LINE + SGT_WORD_LONG_LINE) << SGT_WORD_LINES)

/* A word's bytes, zero-padded, with its length in the last byte (of `low` for up to 7 bytes, and
 * `high` is 0 then). In the table, the upper half of that byte is the number of its ids, which
 * follow. A short word has `low` and 8 bytes of ids, a longer one 16 bytes of ids. A word with more
 * ids has the number 0: the table of long words has them. No word has length 0, so an empty
 * place equals no word. A word that is too long has a key that is never in the table. */
typedef struct sgt_word_key {
    uint64_t low, high;
} sgt_word_key;

#define SGT_WORD_FOUND (8 + 16 * 4) /* most bytes of a word's number of ids and the ids */

typedef struct sgt_words sgt_words;
typedef size_t sgt_encode_piece(sgt_words *w, const uint8_t *s, size_t n, void *ids);

/* Encode `count` words from s on; word i ends at ends[i]. Every word starts at least 16 bytes before
 * the end of the readable text and of the room for ids. Returns the number of ids. */
typedef size_t sgt_words_encode(sgt_words *w, const uint8_t *s, const uint32_t *ends, size_t count,
                                void *ids);

/* One for each CPU level and width; all give the same ids. Those of AVX are for x86-64 only. */
sgt_words_encode sgt_words_plain, sgt_words_avx2, sgt_words_avx512;
sgt_words_encode sgt_words_wide_plain, sgt_words_wide_avx2, sgt_words_wide_avx512;

struct sgt_words {
    const sgt_vocab *v;
    sgt_words_encode *encode; /* of the CPU at hand */
    void *long_words;         /* SGT_LONG_WORDS_BYTES bytes, zeroed */
    uint8_t *table;           /* SGT_WORD_TABLE bytes, and 16 more that may be read */
    sgt_word_key keys[SGT_WORDS];
    uint32_t places[SGT_WORDS]; /* (word): byte offset of its line in the table */
    /* (word): its number of ids and the ids, as they follow a key, in the table or in `merged` */
    const uint8_t *found[SGT_WORDS];
    uint16_t missing[SGT_WORDS]; /* indices of the words that the table does not hold */
    /* the same of each of the words `missing` (words.c) */
    uint64_t merged[SGT_WORDS * SGT_WORD_FOUND / 8];
    /* Places from which no tokens lead to the end of a piece. Places count the bytes of all pieces
     * that this encoder has encoded by steps. */
    uint64_t *marks;
    uint64_t place; /* place of the first byte of the next piece; the first is 1 */
};

/* Encode s[0..n), n > 0, a word that the table cannot hold, into ids, which has room for n.
 * Returns the number of ids. */
sgt_encode_piece sgt_encode_long_16, sgt_encode_long_32;

#define SGT_PATTERN_FAILED SIZE_MAX /* instead of a number of ids */

/* For one width: encoding of a piece in linear time by steps (pieces.c), of a text, which returns
 * SGT_PATTERN_FAILED if e->pattern fails, and sgt_extent_cut. */
typedef struct sgt_bpe {
    sgt_encode_piece *steps;
    size_t (*text)(sgt_encoder *e, const void *text, size_t n, void *ids);
    size_t (*cut)(sgt_encoder *e, const uint8_t *text, size_t n);
} sgt_bpe;
extern const sgt_bpe sgt_bpe_16, sgt_bpe_32;

struct sgt_encoder {
    sgt_words words;
    const sgt_bpe *by; /* of the vocabulary's width */
    /* memory of the tables, in huge pages that are faulted in on first use */
    sgt_arena memory;
    sgt_pattern *pattern; /* if set, what to split by */
    sgt_error failure;    /* the last failure of `pattern` */
};

#endif
