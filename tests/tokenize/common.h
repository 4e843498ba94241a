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

SCOPED_POINTER(sgt_vocab, sgt_vocab_free)
SCOPED_POINTER(sgt_encoder, sgt_encoder_free)
SCOPED_POINTER(json_t, json_decref)
SCOPED_POINTER(sgt_pattern, sgt_pattern_free)

#define VECTORS "tests/data/tokenize/"

/* Return GPT-2's vocabulary, a file's with this rule (NULL: its own), and an encoder for a vocabulary; the
 * caller frees all. */
sgt_vocab *gpt2(void);
sgt_vocab *load_vocab(const char *path, const char *rule);
sgt_encoder *new_encoder(const sgt_vocab *v);
/* Return a vocabulary of 100,001 tokens, whose ids take 4 bytes, with this rule (NULL: GPT-2's). Ids are
 * numbered as GPT-2's are, or by the trainer: the end of text is 0. The caller frees it. */
sgt_vocab *wide_vocab(const char *rule, int eot_first);
/* Encode a text with no more room than sgt_encode asks for, and return the number of ids. */
size_t encode(sgt_encoder *e, const void *text, size_t n, void *ids);
/* Encode a piece by the definition, or by steps (bpe.h), to ids of the vocabulary's width. Return their
 * number. */
size_t bpe_scan(const sgt_vocab *v, const uint8_t *s, size_t n, void *ids);
size_t bpe_steps(sgt_encoder *e, const uint8_t *s, size_t n, void *ids);
/* Return the vocabulary of a text of merges, or NULL with *err if it is refused. */
sgt_vocab *vocab_of_merges(const char *text, sgt_error *err);

/* Fill in GPT-2's vocabulary with its own rule and with each other rule of split.h, and an encoder for
 * each. Return their number. free_rules frees all of them. */
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

/* Return what Python's zlib.crc32(p, crc) returns, by zlib. */
uint32_t crc32_of(uint32_t crc, const void *p, size_t n);
/* Decode hex digits, up to the first other character. Return the number of bytes. */
size_t from_hex(const char *hex, uint8_t *out);
char *whole_file(const char *path, size_t *n); /* returns malloc'd text with a NUL after it */
void sha256_hex(const void *p, size_t n, char hex[65]);
/* Write a code point as UTF-8, even a surrogate. Return its length. */
size_t put_utf8(uint8_t *out, uint32_t cp);
/* Write a text in which each @ stands for the code point. Return its length. */
size_t put_context(uint8_t *out, const char *context, uint32_t cp);

/* Cut a table that is written as one text where it has a byte of `between`, and store its strings in
 * list[], which has room for `room`. Return their number. */
size_t strings_of(char **list, size_t room, char *text, const char *between);

/* Write a random text of at most `max` bytes to `out`, and return its length. It consists of what
 * is difficult to split: white space of every kind, contractions, many scripts, marks. If
 * ill_formed is set, it also has ill-formed bytes. */
size_t hard_text(rng *r, uint8_t *out, size_t max, int ill_formed);

#endif
