/* vocab.h: the parts of a vocabulary, for the files of tokenize/ (users have sgt_tokenize.h).
 *
 * Ids are in merge order. 0-255 are the single bytes in GPT-2's order, and 256 + n is the token
 * that merge n makes. No merge makes the end of text. So the id of a merged
 * pair is also its rank: of two merges, the one with the lower id goes first. GPT-2's ids are in
 * this order already. A vocabulary from a file may number its tokens differently, and may hold
 * tokens that no merge makes. Its numbers are public ids, which are used only when ids are
 * returned or read. */
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
 * Files write merges and vocabularies in GPT-2's byte alphabet. Each byte is written as one printable
 * character: printable Latin-1 bytes stand for themselves, and the 68 other bytes are U+0100 to
 * U+0143 in order. */

/* Return the byte that is token `id` < 256 in merge order: the printable bytes have the lower
 * ids. */
uint8_t sgt_alphabet_byte(uint32_t id);

/* Write the characters of text[0..n) as bytes to out, which has room for n. Returns the number of
 * bytes, or 0 if a character is not in the alphabet. */
size_t sgt_alphabet_read(const char *text, size_t n, uint8_t *out);

/* Write the bytes s[0..n) as UTF-8 characters to out, which has room for 2n bytes. Returns the
 * number of bytes written. */
size_t sgt_alphabet_write(const uint8_t *s, size_t n, char *out);

/* ---- pairs ----
 *
 * Which token two tokens merge to is found in one memory access, by a perfect hash over all merges of
 * a vocabulary:
 *
 *     uint32_t merged = sgt_pair(&v->pairs, left, right);      // SGT_NO_TOKEN: no merge
 *
 * A pair's hash selects a group, of which there is one for each 16 slots, and the group's factor
 * selects the slot. Factors are chosen so that each pair has its own slot (Fredman, Komlós, Szemerédi
 * 1984). Most of the pairs that are looked up have no merge, the slowest case of an open-addressing
 * table. */

#define SGT_NO_TOKEN UINT32_MAX
#define SGT_PAIR_GROUPS 8192 /* of GPT-2's table */

typedef struct sgt_pairs {
    sgt_arena memory;  /* of slots and factors: a huge page, as each look-up is a random access */
    uint64_t *slots;   /* left id << 44 | right id << 24 | merged; all bits set: empty */
    uint16_t *factors; /* (groups): odd factors */
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
    /* No branch, because it would be mispredicted about every second time. An empty slot leaves 0xFFFFFF
     * if both ids are NO_ID (width.h). */
    return (uint32_t)at | (0u - (at >= 0xFFFFFF));
}

/* Build the table: halves[i] merge to id i, for i = first ... end - 1, and all pairs differ. factors
 * (SGT_PAIR_GROUPS): those that give no collision among 2^17 slots, which is faster; NULL: find
 * them. The caller unmaps p->memory. Returns 0, or SGT_ENOMEM. */
int sgt_pairs_make(sgt_pairs *p, const uint32_t (*halves)[2], uint32_t first, uint32_t end,
                   const uint16_t *factors, sgt_error *err);

/* ---- vocabularies ---- */

/* fingerprint of GPT-2's vocabulary, by which any file with it is recognized; a test recomputes
 * it */
#define SGT_GPT2_FINGERPRINT 0xD7F9B057243F9BE1u
#define SGT_EOT_TEXT "<|endoftext|>" /* the end of text of GPT-2, and of what is trained here */

/* Slot of a hash table with open addressing. No value is 0, so a zeroed slot is empty. */
typedef struct sgt_vocab_slot {
    uint32_t key, value;
} sgt_vocab_slot;

/* Return the slot of `key`, or the empty slot where it belongs, of 2^(64 - shift) slots. */
static inline sgt_vocab_slot *sgt_vocab_slot_of(sgt_vocab_slot *slots, unsigned shift, uint32_t key)
{
    const size_t mask = ((size_t)1 << (64 - shift)) - 1;
    size_t i = (size_t)((uint64_t)key * 0x9E3779B97F4A7C15u >> shift);
    while (slots[i].value && slots[i].key != key) i = (i + 1) & mask;
    return &slots[i];
}

/* A character of two or three bytes that is a token. The merges make it before they join a part of it
 * with anything else, unless a mask has the byte at its side; so a piece may begin with it instead
 * of its bytes. (Proof: a merge's id is above those of its halves, so that merges happen in the order
 * of ids. The merges inside are done before any that crosses an end, and what these do outside is
 * the same without them.) */
typedef struct sgt_character {
    uint32_t id; /* in merge order; 0: none */
    /* bit b & 63: not behind byte b, which continues a character; not before b, as
     * sgt_character_after has it */
    uint64_t before, after;
} sgt_character;

/* Return the bit of a byte that follows a character and does not continue one: ASCII has one bit,
 * that of C0, which begins no character. */
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
    uint8_t *added; /* (size): 1: added token, written as it is; 0: written in the byte alphabet */

    /* Tokens in merge order: the bytes, and what merges make. */
    uint32_t made; /* their number */
    uint32_t *ids; /* (made): public id; NULL: they are equal */
    /* (made): the two tokens that merge to token `id`; for a byte, the byte twice */
    uint32_t (*halves)[2];

    sgt_rule rule;   /* what splits text */
    char *pattern;   /* memory of rule.text; NULL: it is static */
    int assumed;     /* 1: neither the file nor the caller says that the rule is GPT-2's */
    int ignored;     /* 1: the file has truncation or padding, which sgt ignores */
    uint64_t marker; /* as in sgt_vocab_parts */
    /* normal form of text before encoding; applies to whole corpora, not to sgt_encode */
    sgt_normalize normalize;
    const char *eot_text; /* "<|endoftext|>", or the name in the file */
    /* setting of tokenizer.json that sgt does not apply to a literal end of text: "lstrip"; NULL:
     * none */
    const char *eot_setting;
    uint64_t fingerprint;

    /* The encoder's tables, by ids in merge order. */
    uint16_t byte_id[256];
    sgt_pairs pairs; /* two ids -> merged id */
    /* (65536, `width` bytes each): first byte | second byte << 8 -> merged id, or all bits set */
    void *byte_pairs;
    /* (1024): bit `first byte << 8 | second byte`: some token holds the two side by side */
    uint64_t *joins;

    /* Tokens that no merges make, but which a piece of exactly their bytes becomes. Such a vocabulary
     * has no cuts, so that words are pieces. */
    uint32_t *wholes; /* (whole_slots, a power of two): hash table of public ids + 1; NULL: none */
    size_t whole_slots;

    /* (65536): by code point; NULL for 2-byte ids, whose words are cut into short ones */
    sgt_character *characters;

    sgt_cuts cuts; /* `joins`, reduced to pairs whose second byte begins a non-ASCII character */

    /* Trie over all tokens, which only long pieces need. It is filled for the first such piece, in
     * memory that is reserved here. */
    pthread_mutex_t trie_lock;
    /* atomic: released by the thread that filled the trie under trie_lock, acquired by readers */
    int trie_ready;
    sgt_vocab_slot *trie; /* node << 8 | byte -> next node */
    unsigned trie_shift;
    uint32_t *trie_token; /* by node: id + 1 of the token that ends there, or 0 */
    uint32_t *trie_end;   /* (made): the node where a token ends */
    sgt_arena trie_memory;
};

/* Return the public id of a token from its id in merge order. */
static inline uint32_t sgt_vocab_public_id(const sgt_vocab *v, uint32_t id)
{
    return v->ids ? v->ids[id] : id;
}

/* Return the bytes of a token from its id in merge order, and their number. */
static inline const uint8_t *sgt_vocab_bytes(const sgt_vocab *v, uint32_t id)
{
    return v->bytes + v->offsets[sgt_vocab_public_id(v, id)];
}

static inline size_t sgt_vocab_length(const sgt_vocab *v, uint32_t id)
{
    const uint32_t *at = v->offsets + sgt_vocab_public_id(v, id);
    return at[1] - at[0];
}

/* Return whether some token holds p[-1] and p[0] side by side. */
static inline int sgt_vocab_joins_at(const sgt_vocab *v, const uint8_t *p)
{
    unsigned pair = (unsigned)p[-1] << 8 | p[0];
    return v->joins[pair >> 6] >> (pair & 63) & 1;
}

/* Return the token that the merges make of the character at s[i] in a piece s[0..n) before they join
 * it with anything, and its length in *len. If none is known, return 0 and store 1. */
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

/* Return the public id of the token that a piece s[0..n) becomes without merges; SGT_NO_TOKEN: none. */
uint32_t sgt_vocab_whole(const sgt_vocab *v, const uint8_t *s, size_t n);

/* Return the longest token that s[0..n), n >= 1, starts with, and its length in *len. Call
 * sgt_vocab_need_trie first; it may be called by any thread, any number of times. */
uint32_t sgt_vocab_longest(const sgt_vocab *v, const uint8_t *s, size_t n, size_t *len);
void sgt_vocab_need_trie(const sgt_vocab *v);

/* Return whether two adjacent tokens stay as they are: no merge crosses the border between them.
 * merged(pairs, left, right): the id that two tokens merge to; SGT_NO_TOKEN: none.
 *
 * Undo the last merge of the two tokens, again and again. The last merge has the higher id; of equal
 * ids, it is the right one. The tokens that then touch at the border must not merge to an id below
 * that of the merge undone. Such a merge would go before it, and across the border. */
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
            /* if the pair at the border has an id equal to right's, it is merged first, because it
             * lies further left */
            limit = right + 1;
            right = halves[right][0];
        }
    }
}

/* Return a vocabulary that has only a name, the last component of a path; NULL: out of memory. */
sgt_vocab *sgt_vocab_new(const char *path);

/* Make the encoder's tables of a vocabulary that has all its tokens. The merges must make each
 * token from its own bytes: they make both halves, and no earlier merge crosses the border between
 * these (sgt_vocab_from_parts checks that). factors: as in sgt_pairs_make. Return 0 or
 * SGT_ENOMEM. */
int sgt_vocab_make_tables(sgt_vocab *v, const uint16_t *factors, sgt_error *err);

/* Have pieces become the tokens with these public ids, which no merges make. Return 0 or SGT_ENOMEM. */
int sgt_vocab_add_wholes(sgt_vocab *v, const uint32_t *ids, size_t count, sgt_error *err);

/* Split by the rule with this name or pattern; NULL: GPT-2's. Return 0 or SGT_ENOMEM. */
int sgt_vocab_split_by(sgt_vocab *v, const char *rule, sgt_error *err);

/* Make GPT-2's vocabulary, which is built in. The caller frees *out. Return 0 or SGT_ENOMEM. */
int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err);

/* Load the vocabulary and the normal form that these options name. The caller frees *out. Return
 * SGT_EFORMAT if special_eot would find other literals than the file's settings say. */
int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err);

/* Compute v->fingerprint. It covers the tokens in the order of the ids that files of tokens hold,
 * and the split rule; also the merges, unless the ids imply them. Ids in merge order do: a token's
 * bytes, encoded with lower ids alone, become exactly two tokens, which are its merge
 * (vocab_file.h). */
int sgt_vocab_set_fingerprint(sgt_vocab *v, sgt_error *err);

/* Report settings of the vocabulary's file that sgt ignores, a split rule that is only assumed, and
 * constructs that Hugging Face's library cannot express in the files sgt writes. */
void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n);

/* Fill in bytes[n]: the number of bytes of each id's text. It is 0 for the end of text, which has
 * none, and for ids that the vocabulary lacks. */
void sgt_vocab_text_bytes(const sgt_vocab *v, uint32_t *bytes, uint32_t n);

#endif
