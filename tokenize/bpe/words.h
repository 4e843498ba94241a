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
 * Long words are those that the table cannot hold: of 16 bytes or more, and shorter ones of many ids,
 * such as runs of spaces. Up to 256 bytes they are cached apart, with their ids. With 4-byte ids and
 * vectors, those of up to 45 bytes that are not ASCII are merged beside the missing ones, from up to
 * 15 tokens of whole characters, since a large vocabulary leaves few cuts in text of many scripts.
 * Any other one of up to 256 bytes is cut wherever no token spans the cut, and its parts are merged
 * separately. Longer words are encoded whole, by steps (pieces.c). */
#ifndef SGT_WORDS_H
#define SGT_WORDS_H

#include "tokenize/bpe/bpe.h"
#include "tokenize/text/pattern.h"

/* Long words take whole units of 16 bytes. Large vocabularies have more of them: fewer cuts. */
#define SGT_UNIT_BITS 20
#define SGT_LONG_UNITS(width) ((size_t)1 << ((width) == 4 ? SGT_UNIT_BITS : 16))
#define SGT_LONG_SETS(width) (SGT_LONG_UNITS(width) / 8)
#define SGT_MARKS 4096    /* places of dead ends that an encoder remembers */
#define SGT_WORDS 320     /* most words in a batch */
#define SGT_WORD_SHORT 7  /* most bytes of a word in the table's first part */
#define SGT_WORD_BYTES 15 /* most bytes of a word in the table */
#define SGT_WORD_LINES 17 /* log2 of the number of lines in each part */
#define SGT_WORD_SHORT_LINE 32
#define SGT_WORD_LONG_LINE 64
/* bytes of the table */
#define SGT_WORD_TABLE (((size_t)SGT_WORD_SHORT_LINE + SGT_WORD_LONG_LINE) << SGT_WORD_LINES)

/* A word's bytes, zero-padded, with its length in the last byte (of `low` for up to 7 bytes, and
 * `high` is 0 then). In the table, the upper half of that byte is the number of its ids, which
 * follow. A short word has `low` and 8 bytes of ids, a longer one 16 bytes of ids. A word with more
 * ids has the number 0: it is a long one. No word has length 0, so an empty place equals no word. A
 * word that is too long has a key that is never in the table. */
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
    /* Long words, one behind the other (pieces.c), with SGT_WORD_FOUND bytes after them that may be
     * read; and a hash table of their units, in sets of four. Its entries have upper bits of the hash
     * above SGT_UNIT_BITS of the unit; 0: empty. */
    uint64_t (*long_words)[2];
    uint32_t (*long_sets)[4];
    size_t long_used; /* units that were asked for, with unit 0, which is empty */
    uint8_t *table;   /* SGT_WORD_TABLE bytes, and 16 more that may be read */
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

/* Encode a long word s[0..n), n > 0, into ids, which has room for n. Returns the number of ids. */
sgt_encode_piece sgt_encode_long_16, sgt_encode_long_32;

/* Return where the number of ids and the ids of a long word are, as they follow a key, if it is
 * cached; else NULL. Of more than 15 ids the number is 0 there. */
typedef const void *sgt_find_long(const sgt_words *w, const uint8_t *s, size_t n);
sgt_find_long sgt_find_long_16, sgt_find_long_32;
/* Cache a long word of at most SGT_BPE_SCAN_MAX bytes. */
typedef void sgt_keep_long(sgt_words *w, const uint8_t *s, size_t n, const void *ids, size_t count);
sgt_keep_long sgt_keep_long_16, sgt_keep_long_32;

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
