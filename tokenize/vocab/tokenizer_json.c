/* tokenizer_json.c: writes a vocabulary as a tokenizer.json, which Hugging Face's tokenizers and
 * transformers load, and as the older pair of files vocab.json and merges.txt. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loader/base/file.h"
#include "tokenize/vocab/vocab_file.h"

/* A byte as it is written in a JSON string: its character of the byte alphabet, escaped if it is \
 * or ". */
typedef struct spelling {
    char text[3];
    uint8_t n;
} spelling;

typedef struct writer {
    sgt_alphabet alphabet;
    spelling spellings[256];
    const sgt_vocab *v;
    char *text;
    size_t n;
    /* (2 * tokens): start and end of each token in `text`, as put_vocab wrote it */
    size_t *at;
} writer;

static void put(writer *w, const char *s)
{
    size_t n = strlen(s);
    memcpy(w->text + w->n, s, n);
    w->n += n;
}

static void put_number(writer *w, uint32_t x)
{
    char digits[10];
    int n = 0;
    do digits[n++] = (char)('0' + x % 10);
    while (x /= 10);
    while (n--) w->text[w->n++] = digits[n];
}

/* Write a text that is not in the byte alphabet, escaped for a JSON string. */
static void put_text(writer *w, const uint8_t *s, size_t n)
{
    for (; n-- > 0; s++) {
        if (*s == '"' || *s == '\\') put(w, "\\");
        if (*s < 0x20) w->n += (size_t)sprintf(w->text + w->n, "\\u%04x", *s);
        else w->text[w->n++] = (char)*s;
    }
}

static void put_string(writer *w, const char *s) { put_text(w, (const uint8_t *)s, strlen(s)); }

/* Write the token with public id `id`, escaped for a JSON string. */
static void put_token(writer *w, uint32_t id)
{
    const sgt_vocab *v = w->v;
    const uint32_t *offsets = v->file ? v->file->offsets : v->offsets;
    const uint8_t *s = (v->file ? v->file->bytes : v->bytes) + offsets[id],
                  *end = s + (offsets[id + 1] - offsets[id]);
    char *to = w->text + w->n;
    if (v->file ? v->file->added[id] : id == v->eot) {
        put_text(w, s, (size_t)(end - s));
        return;
    }
    for (; s < end; s++) {
        memcpy(to, w->spellings[*s].text, 3);
        to += w->spellings[*s].n;
    }
    w->n = (size_t)(to - w->text);
}

static void put_added(writer *w)
{
    const sgt_vocab *v = w->v;
    int first = 1;
    for (uint32_t id = 0; id < sgt_vocab_size(v); id++) {
        if (!(v->file ? v->file->added[id] : id == v->eot)) continue;
        w->n +=
            (size_t)sprintf(w->text + w->n, "%s{\"id\":%u,\"content\":\"", first ? "" : ",\n", id);
        put_token(w, id);
        put(w, "\",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,"
               "\"special\":true}");
        first = 0;
    }
    put(w, "],\n");
}

/* Write the rule: GPT-2's as a setting of ByteLevel, any other as a Split before it. If Hugging
 * Face's library reads a rule differently, "Regex" holds its translation, and "pcre2", which that
 * library ignores, holds our own. */
static void put_rule(writer *w)
{
    static const char byte_level[] =
        "{\"type\":\"ByteLevel\",\"add_prefix_space\":false,\"trim_offsets\":true,\"use_regex\":";
    const char *rule = w->v->file ? w->v->file->rule : NULL,
               *regex = rule ? w->v->file->regex : NULL;
    put(w, "\"pre_tokenizer\":");
    if (rule) {
        put(w, "{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{"
               "\"Regex\":\"");
        put_string(w, regex ? regex : rule);
        put(w, "\"},\"behavior\":\"Isolated\",\"invert\":false");
    }
    if (rule && (!regex || strcmp(regex, rule))) {
        put(w, ",\"pcre2\":\"");
        put_string(w, rule);
        put(w, "\"");
    }
    if (rule) put(w, "},");
    put(w, byte_level);
    put(w, rule ? "false}]},\n" : "true},\n");
}

/* Write the part before the model. */
static void put_head(writer *w)
{
    static const char *const normalizers[] = {"null", "null", "{\"type\":\"NFC\"}",
                                              "{\"type\":\"NFKC\"}"};
    put(w, SGT_VOCAB_OUR_HEAD);
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
           "\"ignore_merges\":false,\n");
}

/* Write {"token":id,...} in the order of public ids. */
static void put_vocab(writer *w)
{
    put(w, "{");
    for (uint32_t id = 0; id < sgt_vocab_size(w->v); id++) {
        put(w, id ? ",\"" : "\"");
        size_t *at = w->at + (size_t)2 * id;
        at[0] = w->n;
        put_token(w, id);
        at[1] = w->n;
        put(w, "\":");
        put_number(w, id);
    }
    put(w, "}");
}

static uint32_t half(const writer *w, uint32_t merged, int which)
{
    const uint32_t id = w->v->halves[merged][which];
    return w->v->file && w->v->file->ids ? w->v->file->ids[id] : id;
}

/* Write the token `id` again, by copying what put_vocab wrote. */
static void put_again(writer *w, uint32_t id)
{
    const size_t *at = w->at + (size_t)2 * id;
    size_t n = at[1] - at[0];
    memcpy(w->text + w->n, w->text + at[0], n);
    w->n += n;
}

static void put_model(writer *w)
{
    put(w, "\"vocab\":");
    put_vocab(w);
    put(w, ",\n\"merges\":[");
    for (uint32_t id = 256; id < w->v->eot; id++) {
        put(w, id == 256 ? "\"" : ",\"");
        put_again(w, half(w, id, 0));
        put(w, " ");
        put_again(w, half(w, id, 1));
        put(w, "\"");
    }
    put(w, "]}}\n");
}

static int begin(writer *w, const sgt_vocab *v, sgt_error *err)
{
    /* A token is written at most twice alone and once within a merge. A byte takes at most three
     * characters, or six in an added token: \ and " are one byte and escaped, other characters have
     * up to two bytes. The added terms leave room for numbers and names. */
    size_t size = sgt_vocab_size(v), bytes = v->file ? v->file->offsets[size] : v->offsets[size],
           added = 1;
    for (size_t id = 0; v->file && id < size; id++) added += v->file->added[id];
    *w = (writer){.v = v};
    const char *regex = v->file && v->file->regex ? v->file->regex : "";
    w->text = malloc(4096 + bytes * 15 + size * 64 + added * 160 + 12 * strlen(sgt_vocab_rule(v)) +
                     6 * strlen(regex));
    w->at = calloc(2 * size, sizeof *w->at);
    if (!w->text || !w->at) {
        free(w->text);
        free(w->at);
        return sgt_fail_memory(err, "tokenizer.json");
    }
    sgt_alphabet_fill(&w->alphabet);
    for (unsigned b = 0; b < 256; b++) {
        spelling *at = &w->spellings[b];
        uint8_t byte = (uint8_t)b;
        if (b == '"' || b == '\\') at->text[at->n++] = '\\';
        at->n = (uint8_t)(at->n + sgt_alphabet_write(&w->alphabet, &byte, 1, at->text + at->n));
    }
    return SGT_OK;
}

int sgt_vocab_tokenizer_json(const sgt_vocab *v, char **text, size_t *n, sgt_error *err)
{
    writer w;
    int rc = begin(&w, v, err);
    if (rc < 0) return rc;
    put_head(&w);
    put_model(&w);
    free(w.at);
    *text = w.text;
    *n = w.n;
    return SGT_OK;
}

/* Write merges.txt, where tokens are not escaped. */
static void put_merges(writer *w)
{
    put(w, "#version: 0.2\n");
    for (uint32_t id = 256; id < w->v->eot; id++)
        for (int i = 0; i < 2; i++) {
            size_t n;
            const uint8_t *s = sgt_vocab_token(w->v, half(w, id, i), &n);
            w->n += sgt_alphabet_write(&w->alphabet, s, n, w->text + w->n);
            put(w, i ? "\n" : " ");
        }
}

static int save(writer *w, const char *folder, const char *name, sgt_error *err)
{
    char *path = sgt_join(folder, name);
    int rc = path ? sgt_file_put(path, w->text, w->n, err) : sgt_fail_memory(err, folder);
    free(path);
    w->n = 0;
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
    free(w.text);
    free(w.at);
    return rc;
}
