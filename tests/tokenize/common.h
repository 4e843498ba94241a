/* common.h: functions that the suites of tests/tokenize share. Test programs run in the project's
 * root folder, and paths are relative to it. */
#ifndef SGT_TESTS_TOKENIZE_H
#define SGT_TESTS_TOKENIZE_H

#include <criterion/criterion.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#include "tests/scoped.h"
#include "tokenize/sgt_tokenize.h"
#include "tokenize/text/pattern.h"
#include "tokenize/vocab/vocab_file.h"

SCOPED_POINTER(sgt_vocab, sgt_vocab_free)
SCOPED_POINTER(sgt_encoder, sgt_encoder_free)
SCOPED_POINTER(json_t, json_decref)
SCOPED_POINTER(sgt_pattern, sgt_pattern_free)

#define VECTORS "tests/data/tokenize/"

/* gpt2 returns GPT-2's vocabulary. load_vocab returns a file's vocabulary with this split rule
 * (NULL: the file's own). new_encoder returns an encoder for a vocabulary. The caller frees the
 * result. */
sgt_vocab *gpt2(void);
sgt_vocab *load_vocab(const char *path, const char *rule);
sgt_encoder *new_encoder(const sgt_vocab *v);
/* Return a vocabulary of 100,001 tokens, whose ids have 4 bytes, with this split rule (NULL:
 * GPT-2's). If eot_first is set, ids are numbered as the trainer numbers them, with 0 as the
 * end-of-text id; otherwise, as GPT-2's are. The caller frees it. */
sgt_vocab *wide_vocab(const char *rule, int eot_first);
/* Encode a text into `ids`, telling sgt_encode that it has only as much room as it requires. Return
 * the number of ids. */
size_t encode(sgt_encoder *e, const void *text, size_t n, void *ids);
/* Encode a pre-token by the definition (bpe_scan), or by the steps of bpe.h (bpe_steps), to ids of
 * the vocabulary's width. Return the number of ids. */
size_t bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);
size_t bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, void *ids);
/* Add all tokens of a vocabulary to *p, with their ids as ranks. */
void add_tokens(sgt_vocab_parts *p, const sgt_vocab *v);
/* Encode a pre-token of at most 512 bytes as tiktoken does: if it is a token, give its id;
 * otherwise merge the pair with the lowest rank until no pair can be merged. Return the number of
 * ids. */
size_t encode_by_ranks(const sgt_vocab_parts *p, const uint8_t *s, size_t n, uint32_t *ids);
/* Load a vocabulary from the content of a merges.txt. Return NULL, with *err set, if it is
 * refused. */
sgt_vocab *vocab_of_merges(const char *text, sgt_error *err);

/* Load GPT-2's vocabulary once with each rule of split.h, its own first, and make an encoder for
 * each. Return the number of rules. free_rules frees all vocabularies and encoders. */
enum { MOST_RULES = 16 };
int every_rule(sgt_vocab *vocabs[MOST_RULES], sgt_encoder *encoders[MOST_RULES]);
void free_rules(sgt_vocab **vocabs, sgt_encoder **encoders, int count);

/* Return the environment's SEED, or 1. `make torture` runs the tests with many seeds. Random tests
 * print the seed in every message. */
uint64_t test_seed(void);

typedef struct rng {
    uint64_t key, at;
} rng;
uint32_t below(rng *r, uint32_t n); /* returns a random number from 0 to n-1 */

/* Return the CRC-32 of p[0 .. n), continued from `crc`, like Python's zlib.crc32(p, crc). */
uint32_t crc32_of(uint32_t crc, const void *p, size_t n);
/* Decode hex digits up to the first other character. Return the number of bytes written. */
size_t from_hex(const char *hex, uint8_t *out);
char *whole_file(const char *path, size_t *n); /* returns malloc'd text with a NUL after it */
/* Write a code point as UTF-8, even a surrogate. Return its length. */
size_t put_utf8(uint8_t *out, uint32_t cp);
/* Write a text in which each @ stands for the code point. Return its length. */
size_t put_context(uint8_t *out, const char *context, uint32_t cp);

/* Split `text`, in place, at every byte that occurs in `between`. Store the strings in list[],
 * which has room for `room` of them. Return the number of strings. */
size_t strings_of(char **list, size_t room, char *text, const char *between);

/* Write a random text of at most `max` bytes to `out`, and return its length. The text consists of
 * strings that are difficult to split: white space of every kind, contractions, many scripts,
 * marks. If ill_formed is set, it also has ill-formed bytes. */
size_t hard_text(rng *r, uint8_t *out, size_t max, int ill_formed);

#endif
