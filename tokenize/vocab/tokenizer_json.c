/* tokenizer_json.c: writes a vocabulary as tokenizer.json, a format that Hugging Face's tokenizers
 * and transformers libraries load, and as vocab.json and merges.txt, the older format. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tokenize/vocab/vocab_file.h"

/* Text of one byte of a token in a JSON string: the character that stands for the byte in GPT-2's
 * byte alphabet (vocab.h), after a backslash if this character is \ or ". */
typedef struct spelling {
    char text[3];
    uint8_t n;
} spelling;

/* Text of a token in a JSON string, at the place in the output buffer where put_vocab wrote it. n:
 * length of the text in bytes. */
typedef struct written {
    const char *s;
    size_t n;
} written;

typedef struct writer {
    spelling spellings[256];
    const sgt_vocab *v;
    /* text: output buffer, large enough for any of the files (room_of). to: address in the buffer
     * at which the next byte is written. */
    char *text, *to;
    written *tokens; /* array indexed by public id: JSON text of each token */
} writer;

#define FRAME 2048 /* maximum size in bytes of an output file without its tokens and split rule */
/* Maximum number of bytes that a token adds to a tokenizer.json, apart from the token's text. These
 * are quotes, ids, member names and punctuation in the lists of tokens, added tokens and merges. */
#define PER_TOKEN 180

/* Return an upper bound of the size in bytes of v's tokenizer.json. The other files are smaller.
 * Each byte of a token takes at most six bytes in the list of tokens and six in the list of added
 * tokens (for example "\u0000"), and at most three in the merges, which are in the byte
 * alphabet. */
static size_t room_of(const sgt_vocab *v)
{
    const size_t rule = strlen(v->rule.text), regex = v->rule.regex ? strlen(v->rule.regex) : 0;
    return FRAME + 6 * (2 * rule + regex) + (size_t)15 * v->offsets[v->size] +
           (size_t)PER_TOKEN * v->size;
}

/* Append the string s to the output. The function is inline so that the compiler can compute
 * strlen(s) if s is a string literal. */
static inline void put(writer *w, const char *s)
{
    memcpy(w->to, s, strlen(s));
    w->to += strlen(s);
}

static void put_number(writer *w, uint32_t x)
{
    char digits[10], *to = w->to;
    int n = 0;
    do digits[n++] = (char)('0' + x % 10);
    while (x /= 10);
    while (n--) *to++ = digits[n];
    w->to = to;
}

/* Append the n bytes at s to the output, with the escapes of a JSON string. The bytes are text in
 * UTF-8, and are not converted to the byte alphabet. */
static void put_text(writer *w, const uint8_t *s, size_t n)
{
    for (; n-- > 0; s++) {
        if (*s == '"' || *s == '\\') *w->to++ = '\\';
        if (*s < 0x20) w->to += sprintf(w->to, "\\u%04x", *s);
        else *w->to++ = (char)*s;
    }
}

static void put_string(writer *w, const char *s) { put_text(w, (const uint8_t *)s, strlen(s)); }

/* Append the text of the token that has this public id, with the escapes of a JSON string. */
static void put_token(writer *w, uint32_t id)
{
    size_t n;
    const uint8_t *s = sgt_vocab_token(w->v, id, &n), *end = s + n;
    char *to = w->to;
    if (w->v->added[id]) {
        put_text(w, s, n);
        return;
    }
    for (; s < end; s++) {
        /* copy a fixed number of bytes, even if fewer are needed, so that the compiler emits a
         * single 4-byte store */
        memcpy(to, &w->spellings[*s], sizeof(spelling));
        to += w->spellings[*s].n;
    }
    w->to = to;
}

static void put_added(writer *w)
{
    int first = 1;
    for (uint32_t id = 0; id < sgt_vocab_size(w->v); id++) {
        if (!w->v->added[id]) continue;
        put(w, first ? "{\"id\":" : ",\n{\"id\":");
        put_number(w, id);
        put(w, ",\"content\":\"");
        put_token(w, id);
        put(w, "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
               "\"special\":true}");
        first = 0;
    }
    put(w, "],\n");
}

/* Append the member "pre_tokenizer", which contains the split rule: GPT-2's rule as a setting of
 * ByteLevel, any other rule as a Split before ByteLevel. The Split's member "Regex" is a pattern
 * that gives the same result in Hugging Face's library as the PCRE2 pattern in sgt. If that is a
 * different pattern, or if sgt knows none, an extra member "pcre2", which the library ignores,
 * contains the PCRE2 pattern. */
static void put_rule(writer *w)
{
    static const char byte_level[] =
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":";
    const sgt_rule *r = &w->v->rule;
    const char *regex = r->regex ? r->regex : r->text;
    const int byte_level_splits = r->by == SGT_RULE_GPT2;
    put(w, "\"pre_tokenizer\":");
    if (!byte_level_splits) {
        put(w, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
               "\"Regex\":\"");
        put_string(w, regex);
        put(w, "\"},\"behavior\":\"Isolated\",\"invert\":false");
    }
    if (!byte_level_splits && (!r->regex || strcmp(regex, r->text))) {
        put(w, ",\"pcre2\":\"");
        put_string(w, r->text);
        put(w, "\"");
    }
    if (!byte_level_splits) put(w, "},");
    put(w, byte_level);
    put(w, byte_level_splits ? "true},\n" : "false}]},\n");
}

/* Append the part of tokenizer.json before the list of tokens, including the first members of the
 * object "model". */
static void put_head(writer *w)
{
    static const char *const normalizers[] = {"null", "null", "{\"type\":\"NFC\"}",
                                              "{\"type\":\"NFKC\"}"};
    put(w, "{\"version\":\"1.0\",\"truncation\":null,\"padding\":null,\n\"added_tokens\":[");
    put_added(w);
    put(w, "\"normalizer\":");
    put(w, normalizers[w->v->normalize]);
    put(w, ",\n");
    put_rule(w);
    put(w, "\"post_processor\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":"
           "false,\"use_regex\":true},\n"
           "\"decoder\":{\"type\":\"ByteLevel\",\"add_prefix_space\":true,\"trim_offsets\":true,"
           "\"use_regex\":true},\n"
           "\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_"
           "prefix\":\"\",\"end_of_word_suffix\":\"\",\"fuse_unk\":false,\"byte_fallback\":false,"
           "\"ignore_merges\":");
    put(w, w->v->wholes ? "true,\n" : "false,\n");
}

/* Append the JSON object {"token":id,...}, in the order of public ids, and record in w->tokens
 * where the text of each token is. */
static void put_vocab(writer *w)
{
    put(w, "{");
    for (uint32_t id = 0; id < sgt_vocab_size(w->v); id++) {
        if (id) put(w, ",");
        put(w, "\"");
        const char *from = w->to;
        put_token(w, id);
        w->tokens[id] = (written){.s = from, .n = (size_t)(w->to - from)};
        put(w, "\":");
        put_number(w, id);
    }
    put(w, "}");
}

static uint32_t half(const writer *w, uint32_t merged, int which)
{
    return sgt_vocab_public_id(w->v, w->v->halves[merged][which]);
}

/* Append the left (which = 0) or the right (which = 1) of the two tokens that merge to token
 * `merged`, an id in merge order, by copying the text that put_vocab wrote for this token. */
static void put_half(writer *w, uint32_t merged, int which)
{
    const written *token = &w->tokens[half(w, merged, which)];
    w->to = mempcpy(w->to, token->s, token->n);
}

static void put_model(writer *w)
{
    put(w, "\"vocab\":");
    put_vocab(w);
    put(w, ",\n\"merges\":[");
    for (uint32_t id = 256; id < w->v->made; id++) {
        if (id > 256) put(w, ",");
        put(w, "\"");
        put_half(w, id, 0);
        put(w, " ");
        put_half(w, id, 1);
        put(w, "\"");
    }
    put(w, "]}}\n");
}

static int begin(writer *w, const sgt_vocab *v, sgt_error *err)
{
    *w = (writer){
        .v = v, .text = malloc(room_of(v)), .tokens = calloc(sgt_vocab_size(v), sizeof *w->tokens)};
    if (!w->text || !w->tokens) {
        free(w->text);
        free(w->tokens);
        return sgt_fail_memory(err, "tokenizer.json");
    }
    w->to = w->text;
    for (unsigned b = 0; b < 256; b++) {
        spelling *at = &w->spellings[b];
        uint8_t byte = (uint8_t)b;
        if (b == '"' || b == '\\') at->text[at->n++] = '\\';
        at->n = (uint8_t)(at->n + sgt_alphabet_write(&byte, 1, at->text + at->n));
    }
    return SGT_OK;
}

int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err)
{
    writer w;
    const int rc = begin(&w, v, err);
    if (rc < 0) return rc;
    put_head(&w);
    put_model(&w);
    free(w.tokens);
    *text = w.text;
    *n = (size_t)(w.to - w.text);
    return SGT_OK;
}

/* Append the contents of merges.txt. It contains tokens in the byte alphabet, without the escapes
 * of JSON. */
static void put_merges(writer *w)
{
    put(w, "#version: 0.2\n");
    for (uint32_t id = 256; id < w->v->made; id++)
        for (int i = 0; i < 2; i++) {
            size_t n;
            const uint8_t *s = sgt_vocab_token(w->v, half(w, id, i), &n);
            w->to += sgt_alphabet_write(s, n, w->to);
            put(w, i ? "\n" : " ");
        }
}

static int save(writer *w, const char *folder, const char *name, sgt_error *err)
{
    char path[SGT_PATH];
    sgt_path(path, folder, "%s", name);
    int rc = sgt_file_put(path, w->text, (size_t)(w->to - w->text), err);
    w->to = w->text;
    return rc;
}

int sgt_vocab_save(const sgt_vocab *v, const char *folder, sgt_error *err)
{
    writer w;
    int rc = sgt_make_folders(folder, err);
    if (rc < 0 || (rc = begin(&w, v, err)) < 0) return rc;
    put_merges(&w);
    rc = save(&w, folder, "merges.txt", err);
    if (!rc) {
        put_vocab(&w);
        rc = save(&w, folder, "vocab.json", err);
    }
    if (!rc) {
        put_head(&w);
        put_model(&w);
        rc = save(&w, folder, "tokenizer.json", err);
    }
    free(w.tokens);
    free(w.text);
    return rc;
}
