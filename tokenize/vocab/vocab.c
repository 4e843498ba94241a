/* vocab.c: makes a vocabulary from a list of merges. Every line of a file is checked. GPT-2's list
 * is embedded in the library together with its tables, so that a program starts at once. */
#include "tokenize/vocab/vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "tokenize/vocab/alphabet.h"
#include "tokenize/text/pattern.h"

#define EOT_TEXT "<|endoftext|>"

__asm__(".section .rodata\n"
        ".balign 64\n"
        "sgt_gpt2_bpe: .incbin \"tokenize/vocab/gpt2.bpe\"\n"
        "sgt_gpt2_bpe_end: .byte 0\n"
        ".balign 64\n"
        "sgt_gpt2_tables: .incbin \"tokenize/vocab/gpt2.tables\"\n"
        ".previous\n");
/* Hidden, so that these names are not reached through the global offset table. On aarch64, binutils
 * 2.40 loses local names there. */
#define HIDDEN __attribute__((visibility("hidden")))
extern const uint8_t sgt_gpt2_bpe[] HIDDEN, sgt_gpt2_bpe_end[] HIDDEN;
extern const uint16_t sgt_gpt2_tables[] HIDDEN; /* layout: make_gpt2_tables.py */

#define GPT2_MERGES 50000

const uint8_t *sgt_vocab_gpt2_file(size_t *n)
{
    *n = (size_t)(sgt_gpt2_bpe_end - sgt_gpt2_bpe);
    return sgt_gpt2_bpe;
}

/* ---- making one ---- */

/* Hash table from a token's bytes to its id. It exists only while merges are read. */
typedef struct names {
    const sgt_vocab *v;
    uint16_t *slot; /* id + 1; 0: free */
    size_t mask;
} names;

static size_t names_find(const names *t, const uint8_t *s, size_t n)
{
    size_t i = XXH3_64bits(s, n) & t->mask;
    for (; t->slot[i]; i = (i + 1) & t->mask) {
        uint32_t id = t->slot[i] - 1u;
        if (sgt_vocab_length(t->v, id) == n && !memcmp(t->v->bytes + t->v->offsets[id], s, n))
            break;
    }
    return i;
}

/* Add the 256 single bytes, the first tokens. */
static void add_bytes(sgt_vocab *v, const sgt_alphabet *a)
{
    for (uint32_t id = 0; id < 256; id++) {
        v->bytes[id] = a->order[id];
        v->offsets[id + 1] = id + 1;
        v->byte_id[a->order[id]] = v->halves[id][0] = v->halves[id][1] = (uint16_t)id;
    }
}

/* Add the end of text, the last token, which no merge makes. */
static void add_eot(sgt_vocab *v)
{
    memcpy(v->bytes + v->offsets[v->eot], EOT_TEXT, strlen(EOT_TEXT));
    v->offsets[v->size] = v->offsets[v->eot] + (uint32_t)strlen(EOT_TEXT);
}

/* Add merge `id` from the line text[0..n): two tokens that exist make a third that does not exist
 * yet. */
static int add_merge(sgt_vocab *v, names *t, const sgt_alphabet *a, const uint8_t *text, size_t n,
                     uint32_t id, sgt_error *err)
{
    uint8_t *to = v->bytes + v->offsets[id];
    const uint8_t *space = memchr(text, ' ', n);
    size_t left = space ? sgt_alphabet_read(a, text, (size_t)(space - text), to) : 0;
    size_t right =
        left ? sgt_alphabet_read(a, space + 1, n - (size_t)(space + 1 - text), to + left) : 0;
    unsigned line = id - 256 + 2; /* line number: merge 0 is on line 2, after the version */
    if (!right)
        return sgt_fail(
            err, SGT_EFORMAT,
            "%s: line %u: expected two tokens in GPT-2's byte alphabet, a space between them",
            v->name, line);
    uint32_t l = t->slot[names_find(t, to, left)], r = t->slot[names_find(t, to + left, right)];
    size_t slot = names_find(t, to, left + right);
    if (!l || !r)
        return sgt_fail(err, SGT_EFORMAT, "%s: line %u: merges a token that no earlier line makes",
                        v->name, line);
    if (t->slot[slot])
        return sgt_fail(err, SGT_EFORMAT, "%s: line %u: makes a token that is there already",
                        v->name, line);
    v->offsets[id + 1] = v->offsets[id] + (uint32_t)(left + right);
    t->slot[slot] = (uint16_t)(id + 1);
    v->halves[id][0] = (uint16_t)(l - 1);
    v->halves[id][1] = (uint16_t)(r - 1);
    return SGT_OK;
}

static int add_merges(sgt_vocab *v, names *t, const uint8_t *text, size_t n, sgt_error *err)
{
    sgt_alphabet a;
    const uint8_t *end = text + n;
    sgt_alphabet_fill(&a);
    add_bytes(v, &a);
    for (uint32_t id = 0; id < 256; id++)
        t->slot[names_find(t, v->bytes + id, 1)] = (uint16_t)(id + 1);
    for (uint32_t id = 256; id < v->eot; id++) {
        const uint8_t *stop = memchr(text, '\n', (size_t)(end - text));
        int rc = add_merge(v, t, &a, text, (size_t)((stop ? stop : end) - text), id, err);
        if (rc < 0) return rc;
        text = stop ? stop + 1 : end;
    }
    add_eot(v);
    return SGT_OK;
}

/* Make the encoder's tables, except the pairs, from the tokens and their halves. This works for any
 * byte-level vocabulary. A byte pair inside a token is inside one of its halves or at the border
 * between them. So only the border has to be added for each token. */
static void make_tables(sgt_vocab *v)
{
    memset(v->byte_pairs, 0xFF, 65536 * sizeof *v->byte_pairs);
    for (uint32_t id = 256; id < v->eot; id++) {
        uint32_t from = v->offsets[id];
        const uint16_t *h = v->halves[id];
        if (h[0] < 256 && h[1] < 256)
            v->byte_pairs[v->bytes[from] | v->bytes[from + 1] << 8] = (uint16_t)id;
        const uint8_t *border = v->bytes + from + sgt_vocab_length(v, h[0]);
        unsigned pair = (unsigned)border[-1] << 8 | border[0];
        v->joins[pair >> 6] |= (uint64_t)1 << (pair & 63);
    }
    sgt_cuts_make(&v->cuts, v->joins);
}

/* Return the public id of a token from its id in merge order. */
static uint32_t given_out(const sgt_vocab *v, uint32_t id)
{
    return v->file && v->file->ids ? v->file->ids[id] : id;
}

/* Return whether the ids imply the merges: a merge makes every token but the bytes and the added
 * ones, and lower ids are made by earlier merges. */
static int ids_say_merges(const sgt_vocab *v)
{
    uint32_t plain = 0;
    for (uint32_t id = 257; id < v->eot; id++)
        if (given_out(v, id) < given_out(v, id - 1)) return 0;
    for (uint32_t id = 0; v->file && id < v->file->size; id++) plain += !v->file->added[id];
    return !v->file || plain == v->eot;
}

/* The fingerprint is the XXH3-64 of each token in order of id, its length as 32 little-endian bits
 * before it, and then of the rule's text. If the ids do not imply the merges, these follow: their
 * number, and both ids of each in turn, as 32 little-endian bits each. */
int sgt_vocab_take_fingerprint(sgt_vocab *v, sgt_error *err)
{
    const uint32_t count = v->eot - 256;
    const char *rule = sgt_vocab_rule(v);
    const uint32_t size = sgt_vocab_size(v), *offsets = v->file ? v->file->offsets : v->offsets;
    const uint8_t *bytes = v->file ? v->file->bytes : v->bytes;
    size_t total = offsets[size] + (size_t)size * sizeof(uint32_t) + strlen(rule);
    size_t merges = ((size_t)2 * count + 1) * sizeof(uint32_t);
    uint8_t *all = malloc(total + merges), *p = all;
    if (!all) return sgt_fail_memory(err, v->name);
    for (uint32_t id = 0; id < size; id++) {
        uint32_t n = offsets[id + 1] - offsets[id];
        memcpy(p, &n, sizeof n);
        memcpy(p + sizeof n, bytes + offsets[id], n);
        p += sizeof n + n;
    }
    memcpy(p, rule, strlen(rule));
    v->fingerprint = XXH3_64bits(all, total);
    if (!ids_say_merges(v)) {
        p = memcpy(all + total, &count, sizeof count);
        for (uint32_t id = 256; id < v->eot; id++)
            for (int half = 0; half < 2; half++) {
                uint32_t part = given_out(v, v->halves[id][half]);
                memcpy(p += sizeof part, &part, sizeof part);
            }
        v->fingerprint = XXH3_64bits(all, total + merges);
    }
    free(all);
    return SGT_OK;
}

/* Allocate memory for a vocabulary of `size` tokens whose merges are n bytes of text. A token has
 * at most as many bytes as its line. Returns 0, or -1 if out of memory. */
static int reserve(sgt_vocab *v, uint32_t size, size_t n)
{
    unsigned log_trie = 1;
    v->size = size;
    v->eot = size - 1;
    v->trie_nodes = n + 512; /* most nodes: one for each byte of each token, and the root */
    while ((size_t)1 << log_trie < 2 * v->trie_nodes) log_trie++;
    v->trie_shift = 64 - log_trie;
    v->offsets = calloc((size_t)size + 1, sizeof *v->offsets);
    v->bytes = calloc(n + 512, 1);
    v->halves = calloc(size, sizeof *v->halves);
    v->byte_pairs = malloc(65536 * sizeof *v->byte_pairs);
    v->joins = calloc(1024, sizeof *v->joins);
    v->trie = calloc((size_t)1 << log_trie, sizeof *v->trie);
    v->trie_token = calloc(v->trie_nodes, sizeof *v->trie_token);
    return v->offsets && v->bytes && v->halves && v->byte_pairs && v->joins && v->trie &&
                   v->trie_token
               ? 0
               : -1;
}

static sgt_vocab *named(const char *name, sgt_error *err)
{
    sgt_vocab *v = calloc(1, sizeof *v);
    if (!v) {
        sgt_fail_memory(err, name);
        return NULL;
    }
    v->name = name;
    v->eot_text = EOT_TEXT;
    pthread_mutex_init(&v->trie_lock, NULL);
    return v;
}

int sgt_vocab_from_merges(sgt_vocab **out, const char *name, const uint8_t *text, size_t n,
                          sgt_error *err)
{
    size_t lines = 0;
    const uint8_t *first = memchr(text, '\n', n);
    if (!first || text[0] != '#')
        return sgt_fail(err, SGT_EFORMAT, "%s: expected a first line that starts with #version",
                        name);
    for (const uint8_t *p = first; (p = memchr(p + 1, '\n', (size_t)(text + n - (p + 1)))); lines++)
        continue;
    if (text[n - 1] != '\n') lines++;
    if (lines + 257 > 65536)
        return sgt_fail(err, SGT_EFORMAT, "%s: %zu merges make ids up to %zu; 16 bits hold 65535",
                        name, lines, lines + 256);

    sgt_vocab *v = named(name, err);
    if (!v) return SGT_ENOMEM;
    names t = {v, calloc(131072, sizeof *t.slot), 131071};
    int rc = t.slot && reserve(v, (uint32_t)lines + 257, n) == 0
                 ? add_merges(v, &t, first + 1, n - (size_t)(first + 1 - text), err)
                 : sgt_fail_memory(err, name);
    free(t.slot);
    if (rc == SGT_OK) make_tables(v);
    if (rc == SGT_OK)
        rc = sgt_pairs_make(&v->pairs, (const uint16_t(*)[2])v->halves, 256, v->eot, err);
    if (rc == SGT_OK) rc = sgt_vocab_take_fingerprint(v, err);
    if (rc < 0) sgt_vocab_free(v);
    else *out = v;
    return rc;
}

/* Fill in the tokens: the bytes of a token are those of its two halves. */
static void add_halves(sgt_vocab *v, const uint16_t (*halves)[2])
{
    sgt_alphabet a;
    sgt_alphabet_fill(&a);
    add_bytes(v, &a);
    memcpy(v->halves + 256, halves, (v->eot - 256) * sizeof *halves);
    for (uint32_t id = 256; id < v->eot; id++) {
        size_t left = sgt_vocab_length(v, v->halves[id][0]),
               right = sgt_vocab_length(v, v->halves[id][1]);
        uint8_t *to = v->bytes + v->offsets[id];
        memcpy(to, v->bytes + v->offsets[v->halves[id][0]], left);
        memcpy(to + left, v->bytes + v->offsets[v->halves[id][1]], right);
        v->offsets[id + 1] = v->offsets[id] + (uint32_t)(left + right);
    }
    add_eot(v);
}

int sgt_vocab_gpt2(sgt_vocab **out, sgt_error *err)
{
    size_t n;
    sgt_vocab_gpt2_file(&n);
    sgt_vocab *v = named("gpt2", err);
    if (!v) return SGT_ENOMEM;
    int rc = reserve(v, GPT2_MERGES + 257, n) == 0 ? SGT_OK : sgt_fail_memory(err, "gpt2");
    if (rc == SGT_OK) {
        add_halves(v, (const uint16_t(*)[2])sgt_gpt2_tables);
        make_tables(v);
        v->fingerprint = SGT_GPT2_FINGERPRINT;
        rc = sgt_pairs_take(&v->pairs, (const uint16_t(*)[2])v->halves, 256, v->eot,
                            sgt_gpt2_tables + (size_t)2 * GPT2_MERGES, err);
    }
    if (rc < 0) sgt_vocab_free(v);
    else *out = v;
    return rc;
}

void sgt_vocab_free(sgt_vocab *v)
{
    if (!v) return;
    pthread_mutex_destroy(&v->trie_lock);
    free(v->offsets);
    free(v->bytes);
    free(v->halves);
    sgt_pairs_free(&v->pairs);
    free(v->byte_pairs);
    free(v->joins);
    free(v->trie);
    free(v->trie_token);
    if (v->file) {
        free(v->file->ids);
        free(v->file->offsets);
        free(v->file->bytes);
        free(v->file->added);
        free(v->file->rule);
        free(v->file);
    }
    free(v);
}

/* ---- asking one ---- */

uint32_t sgt_vocab_size(const sgt_vocab *v) { return v->file ? v->file->size : v->size; }
uint32_t sgt_vocab_eot(const sgt_vocab *v) { return v->file ? v->file->eot : v->eot; }
uint64_t sgt_vocab_fingerprint(const sgt_vocab *v) { return v->fingerprint; }
const char *sgt_vocab_name(const sgt_vocab *v) { return v->name; }
const uint64_t *sgt_vocab_joins(const sgt_vocab *v) { return v->joins; }
const char *sgt_vocab_rule(const sgt_vocab *v)
{
    return v->file && v->file->rule ? v->file->rule : SGT_PIECE_RULE;
}

void sgt_vocab_text_bytes(const sgt_vocab *v, uint32_t *bytes, uint32_t n)
{
    uint32_t eot = sgt_vocab_eot(v);
    for (uint32_t id = 0; id < n; id++) {
        size_t length = 0;
        if (id != eot) sgt_vocab_token(v, id, &length);
        bytes[id] = (uint32_t)length;
    }
}

void sgt_vocab_say(const sgt_vocab *v, const sgt_notice *n)
{
    const sgt_vocab_file *f = v->file;
    if (f && f->ignored)
        sgt_say(
            n, "%s: its %s ignored: documents are tokenized whole, and nothing is appended to them",
            v->name, f->ignored);
    if (f && f->assumed && v->fingerprint != SGT_GPT2_FINGERPRINT)
        sgt_say(n,
                "%s: does not say what splits text before merging: GPT-2's pattern is used "
                "(--pattern gives another, such as cl100k or o200k)",
                v->name);
    if (f && f->rule && !f->regex)
        sgt_say(n, "pattern: transformers may split text otherwise by OUT's tokenizer.json (its "
                   "library reads some patterns differently)");
}

const uint8_t *sgt_vocab_token(const sgt_vocab *v, uint32_t id, size_t *n)
{
    const uint32_t *offsets = v->file ? v->file->offsets : v->offsets;
    if (id >= sgt_vocab_size(v)) return NULL;
    *n = offsets[id + 1] - offsets[id];
    return (v->file ? v->file->bytes : v->bytes) + offsets[id];
}

/* ---- ids back to the bytes they came from ---- */

int sgt_decode(const sgt_vocab *v, const uint16_t *ids, size_t count, char **text, size_t *n,
               sgt_error *err)
{
    const uint32_t size = sgt_vocab_size(v), *offsets = v->file ? v->file->offsets : v->offsets;
    const uint8_t *bytes = v->file ? v->file->bytes : v->bytes;
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= size)
            return sgt_fail(err, SGT_EFORMAT,
                            "token %zu: id %u is not in the vocabulary %s (below %" PRIu32 ")", i,
                            ids[i], v->name, size);
        /* no overflow: a token has less than 64 KiB, so `ids` would not fit in memory before */
        total += offsets[ids[i] + 1] - offsets[ids[i]];
    }
    char *out = malloc(total + 1);
    if (!out) return sgt_fail(err, SGT_ENOMEM, "text of %zu tokens: out of memory", count);
    *text = out;
    *n = total;
    for (size_t i = 0; i < count; i++) {
        size_t len = offsets[ids[i] + 1] - offsets[ids[i]];
        memcpy(out, bytes + offsets[ids[i]], len);
        out += len;
    }
    *out = 0;
    return SGT_OK;
}
