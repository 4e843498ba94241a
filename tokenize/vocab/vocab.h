/* vocab.h: the parts of a vocabulary, for the files of tokenize/ (users have sgt_tokenize.h).
 *
 * Ids are in merge order: 0-255 are the single bytes in GPT-2's order, and 256 + n is the token
 * that merge n makes. The end of text is made by no merge. So the id of a merged pair is also its
 * rank: of two possible merges, the one with the lower id is done first. GPT-2's own ids are
 * already in this order. A vocabulary from a file may number its tokens differently, and may hold
 * tokens that no merge makes. The file's numbers are called public ids; they are used only when ids
 * are returned or read. */
#ifndef SGT_VOCAB_H
#define SGT_VOCAB_H

#include <pthread.h>

#include "loader/base/ids.h"
#include "loader/base/memory.h"
#include "loader/base/error.h"
#include "tokenize/sgt_tokenize.h"
#include "tokenize/text/split.h"
#include "tokenize/text/utf8.h"

/* ---- the byte alphabet ----
 *
 * Files write merges and vocabularies in GPT-2's byte alphabet, in which each byte is one printable
 * character: printable Latin-1 bytes stand for themselves, and the 68 other bytes are U+0100 to
 * U+0143, in order. */

/* Return the byte of token `id` < 256 in merge order: printable bytes have the lower ids. */
uint8_t sgt_alphabet_byte(uint32_t id);

/* Decode text[0..n), written in the byte alphabet, to out, which has room for n bytes. Return the
 * number of bytes, or 0 if a character is not in the alphabet. */
size_t sgt_alphabet_read(const char *text, size_t n, uint8_t *out);

/* Write the bytes s[0..n) in the byte alphabet, as UTF-8, to out, which has room for 2n bytes.
 * Return the number of bytes written. */
size_t sgt_alphabet_write(const uint8_t *s, size_t n, char *out);

/* ---- pairs ----
 *
 * One memory access finds which token two tokens merge to, by a perfect hash over all merges of a
 * vocabulary:
 *
 *     uint32_t merged = sgt_pair(&v->pairs, left, right);      // SGT_NO_TOKEN: no merge
 *
 * A pair's hash selects a group; there is one group for each 16 slots. The group's factor then
 * selects the slot. Factors are chosen so that each pair has a slot of its own (Fredman, Komlós,
 * Szemerédi 1984). Most of the pairs that are looked up have no merge, which is the slowest case of
 * an open-addressing table. */

#define SGT_NO_TOKEN UINT32_MAX
#define SGT_PAIR_GROUPS 8192 /* number of groups in GPT-2's table */

typedef struct sgt_pairs {
    /* memory of slots and factors: a huge page, because each look-up is a random access */
    sgt_arena memory;
    uint64_t *slots;   /* left id << 44 | right id << 24 | merged id; all bits set: empty slot */
    uint16_t *factors; /* (groups): odd numbers */
    unsigned shift;    /* 64 - log2(slots) */
} sgt_pairs;

static inline uint64_t sgt_pair_key(uint32_t left, uint32_t right)
{
    return (uint64_t)left << 20 | right;
}

static inline uint64_t sgt_pair_hash(uint64_t key) { return key * 0x9E3779B97F4A7C15u; }

static inline uint32_t sgt_pair(const sgt_pairs *p, uint32_t left, uint32_t right)
{
    const uint64_t key = sgt_pair_key(left, right), hash = sgt_pair_hash(key),
                   at = p->slots[hash * p->factors[hash >> (p->shift + 4)] >> p->shift] ^ key << 24;
    /* Without a branch, because that would be mispredicted about every second time. An empty slot
     * gives 0xFFFFFF even if both ids are NO_ID (width.h). */
    return (uint32_t)at | (0u - (at >= 0xFFFFFF));
}

/* Build the table: halves[i] merge to id i, for i = first ... end - 1; all pairs must differ.
 * factors (SGT_PAIR_GROUPS): factors known to give no collision among 2^17 slots, which saves the
 * search; NULL: search for them. The caller unmaps p->memory. Return 0 or SGT_ENOMEM. */
int sgt_pairs_make(sgt_pairs *p, const uint32_t (*halves)[2], uint32_t first, uint32_t end,
                   const uint16_t *factors, sgt_error *err);

/* ---- vocabularies ---- */

/* fingerprint of GPT-2's vocabulary. A file whose vocabulary has it is recognized as GPT-2's. A
 * test recomputes it */
#define SGT_GPT2_FINGERPRINT 0xD7F9B057243F9BE1u
/* the end-of-text token of GPT-2, and of vocabularies trained here */
#define SGT_EOT_TEXT "<|endoftext|>"

/* Slot of a hash table with open addressing. No value is 0, so a zeroed slot is empty. */
typedef struct sgt_vocab_slot {
    uint32_t key, value;
} sgt_vocab_slot;

/* Return the slot of `key`, or the empty slot where it belongs, in a table of 2^(64 - shift)
 * slots. */
static inline sgt_vocab_slot *sgt_vocab_slot_of(sgt_vocab_slot *slots, unsigned shift, uint32_t key)
{
    const size_t mask = ((size_t)1 << (64 - shift)) - 1;
    size_t i = (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> shift);
    while (slots[i].value && slots[i].key != key) i = (i + 1) & mask;
    return &slots[i];
}

/* A character of two or three bytes that is a token. The merges make the token before they join any
 * part of the character with something else, unless a mask has the byte next to the character. So
 * merging a piece may begin with this token instead of its bytes. (Proof: a merge's id is above
 * those of its halves, so merges happen in the order of ids. The merges inside the character are
 * done before any merge that crosses one of its ends, and they do not change what the merges
 * outside do.) */
typedef struct sgt_character {
    uint32_t id; /* id in merge order; 0: the character is no token */
    /* before: bit b & 63 is set if the token must not be used after byte b, a continuation byte;
     * after: the bit sgt_character_after(b) is set if it must not be used before byte b */
    uint64_t before, after;
} sgt_character;

/* Return the bit in sgt_character.after for a byte that follows a character and does not continue
 * one. All ASCII bytes share one bit, that of C0, which begins no character. */
static inline uint64_t sgt_character_after(uint8_t b)
{
    return (uint64_t)1 << (b < 0x80 ? 0 : b & 63);
}

struct sgt_vocab {
    char name[64];
    /* Tokens by public id. */
    uint32_t size, eot;
    size_t width;      /* bytes of an id: 2 or 4 */
    uint32_t *offsets; /* (size + 1): token `id` is bytes[offsets[id] .. offsets[id + 1]) */
    uint8_t *bytes;
    /* (size): 1: added token, which files write as it is; 0: files write it in the byte alphabet */
    uint8_t *added;

    /* Tokens in merge order: the bytes, and the tokens that merges make. */
    uint32_t made; /* number of tokens in merge order */
    uint32_t *ids; /* (made): public id of each token; NULL: the ids are equal */
    /* (made): the two tokens that merge to token `id`; for a byte, the byte twice */
    uint32_t (*halves)[2];

    sgt_rule rule; /* rule by which text is split */
    char *pattern; /* memory of rule.text; NULL: that is static */
    /* 1: GPT-2's rule is only assumed, because neither the file nor the caller names a rule */
    int assumed;
    int ignored;     /* 1: the file has settings for truncation or padding, which sgt ignores */
    uint64_t marker; /* as sgt_vocab_parts.marker */
    /* normal form of text before it is encoded; used for whole corpora, not by sgt_encode */
    sgt_normalize normalize;
    const char *eot_text; /* "<|endoftext|>", or the token's name in the file */
    /* setting of the end-of-text token in tokenizer.json that sgt does not apply: "lstrip"; NULL:
     * none */
    const char *eot_setting;
    uint64_t fingerprint;

    /* The encoder's tables, indexed by ids in merge order. */
    uint16_t byte_id[256];
    sgt_pairs pairs; /* two ids -> merged id */
    /* (65536, `width` bytes each): first byte | second byte << 8 -> merged id, or all bits set */
    void *byte_pairs;
    /* (1024): bit `first byte << 8 | second byte` is 1 if some token holds the two bytes next to
     * each other */
    uint64_t *joins;

    /* Tokens that no merges make: only a piece of exactly their bytes becomes such a token. A
     * vocabulary that has them allows no cuts inside pieces, so its words are pieces. */
    /* (whole_slots, a power of two): hash table with public id + 1; NULL: there are no such
     * tokens */
    uint32_t *wholes;
    size_t whole_slots;

    /* (65536): by code point; NULL for 2-byte ids, because words are cut into short ones then */
    sgt_character *characters;

    /* `joins`, reduced to the pairs whose second byte begins a non-ASCII character */
    sgt_cuts cuts;

    /* Trie of all tokens, which only long pieces need. Its memory is reserved at first, and it is
     * filled for the first such piece. */
    pthread_mutex_t trie_lock;
    /* atomic: stored with release by the thread that fills the trie under trie_lock, loaded with
     * acquire by readers */
    int trie_ready;
    sgt_vocab_slot *trie; /* hash table: node << 8 | byte -> next node */
    unsigned trie_shift;
    uint32_t *trie_token; /* (node): id + 1 of the token that ends at the node, or 0 */
    uint32_t *trie_end;   /* (made): the node at which the token ends */
    sgt_arena trie_memory;
};

/* Return the public id of the token with this id in merge order. */
static inline uint32_t sgt_vocab_public_id(const sgt_vocab *v, uint32_t id)
{
    return v->ids ? v->ids[id] : id;
}

/* Return the bytes of the token with this id in merge order. */
static inline const uint8_t *sgt_vocab_bytes(const sgt_vocab *v, uint32_t id)
{
    return v->bytes + v->offsets[sgt_vocab_public_id(v, id)];
}

static inline size_t sgt_vocab_length(const sgt_vocab *v, uint32_t id)
{
    const uint32_t *at = v->offsets + sgt_vocab_public_id(v, id);
    return at[1] - at[0];
}

/* Return whether some token holds p[-1] and p[0] next to each other. */
static inline int sgt_vocab_joins_at(const sgt_vocab *v, const uint8_t *p)
{
    unsigned pair = (unsigned)p[-1] << 8 | p[0];
    return v->joins[pair >> 6] >> (pair & 63) & 1;
}

/* Return the token that the merges make of the character at s[i], in a piece s[0..n), before they
 * join it with anything else, and set *len to its length. If no such token is known, return 0 and
 * set *len to 1. */
static inline uint32_t sgt_vocab_character(const sgt_vocab *v, const uint8_t *s, size_t i, size_t n,
                                           size_t *len)
{
    const uint8_t *p = s + i;
    const size_t bytes = p[0] < 0xE0 ? 2 : 3;
    *len = 1;
    if (p[0] < 0xC2 || p[0] >= 0xF0 || n - i < bytes) return 0;
    const unsigned b = p[1] ^ 0x80u, c = p[bytes - 1] ^ 0x80u;
    const uint32_t cp = bytes == 2 ? (p[0] & 0x1Fu) << 6 | b : (p[0] & 0xFu) << 12 | b << 6 | c;
    if ((b | c) > 0x3F || (bytes == 3 && cp < 0x800)) return 0;
    const sgt_character *known = &v->characters[cp];
    if (i && ((p[-1] & 0xC0) != 0x80 || known->before >> (p[-1] & 63) & 1)) return 0;
    if (bytes < n - i &&
        ((p[bytes] & 0xC0) == 0x80 || (known->after & sgt_character_after(p[bytes]))))
        return 0;
    if (known->id) *len = bytes;
    return known->id;
}

/* Return the public id of the token that a piece s[0..n) becomes without merges, or
 * SGT_NO_TOKEN. */
uint32_t sgt_vocab_whole(const sgt_vocab *v, const uint8_t *s, size_t n);

/* Return the longest token with which s[0..n), n >= 1, starts, and set *len to its length. Call
 * sgt_vocab_need_trie first; any thread may call that, any number of times. */
uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len);
void sgt_vocab_need_trie(const sgt_vocab *v);

/* Return whether two adjacent tokens stay as they are: no merge crosses the border between them.
 * merged(pairs, left, right) is the id that two tokens merge to, or SGT_NO_TOKEN.
 *
 * The merges of the two tokens are undone, the last one first, again and again. The last merge is
 * the one with the higher id; of equal ids, the right one. The two tokens that then touch at the
 * border must not merge to an id lower than that of the merge undone: such a merge would happen
 * before it, and would cross the border. */
static inline int sgt_stay_apart(const uint32_t (*halves)[2],
                                 uint32_t (*merged)(const void *pairs, uint32_t l, uint32_t r),
                                 const void *pairs, uint32_t left, uint32_t right)
{
    for (uint32_t limit = SGT_NO_TOKEN;;) {
        if (merged(pairs, left, right) < limit) return 0;
        if (left > right) {
            if (left < 256) return 1; /* both tokens are single bytes: nothing is left to undo */
            limit = left;
            left = halves[left][1];
        } else {
            if (right < 256) return 1;
            /* if the pair at the border merges to the same id as right's halves, it is merged
             * first, because it is further left */
            limit = right + 1;
            right = halves[right][0];
        }
    }
}

/* Return a vocabulary that has only a name, the last component of `path`; NULL if out of memory. */
sgt_vocab *sgt_vocab_new(const char *path);

/* Build the encoder's tables of a vocabulary that has all its tokens. The merges must make each
 * token from its own bytes: they make both halves, and no earlier merge crosses the border between
 * the halves (sgt_vocab_from_parts checks that). factors: as in sgt_pairs_make. Return 0 or
 * SGT_ENOMEM. */
int sgt_vocab_make_tables(sgt_vocab *v, const uint16_t *factors, sgt_error *err);

/* Let pieces become the tokens with these public ids, which no merges make. Return 0 or
 * SGT_ENOMEM. */
int sgt_vocab_add_wholes(sgt_vocab *v, const uint32_t *ids, size_t count, sgt_error *err);

/* Set the rule by which v splits text, by its name or pattern; NULL: GPT-2's. Return 0 or
 * SGT_ENOMEM. */
int sgt_vocab_split_by(sgt_vocab *v, const char *rule, sgt_error *err);

/* Create GPT-2's vocabulary, which is built in. The caller frees *out. Return 0 or SGT_ENOMEM. */
int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err);

/* Load the vocabulary that these options name, and determine the normal form. The caller frees
 * *out. Return SGT_EFORMAT if, with special_eot, the settings in the vocabulary's file would find
 * other literals than sgt does. */
int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err);

/* Compute v->fingerprint. It covers the tokens in the order of the ids in files of tokens, and the
 * split rule; if the ids do not imply the merges, it covers the merges as well. Ids in merge order
 * imply them: a token's bytes, encoded with lower ids only, become exactly two tokens, which are
 * its merge (vocab_file.h). */
int sgt_vocab_set_fingerprint(sgt_vocab *v, sgt_error *err);

/* Notify the user of settings in the vocabulary's file that sgt ignores, of a split rule that is
 * only assumed, and of constructs that Hugging Face's library cannot express in the files that sgt
 * writes. */
void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n);

/* Set bytes[id], for each id below n, to the number of bytes of the id's text. It is 0 for the end
 * of text, which has no text, and for ids that the vocabulary lacks. */
void sgt_vocab_text_bytes(const sgt_vocab *v, uint32_t *bytes, uint32_t n);

#endif
