/* vocab_load.c: sgt_vocab_load. Finds out a file's format, and reads the simple ones: merges and
 * vocab.json, and .tiktoken. */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tokenize/vocab/alphabet.h"
#include "loader/base/file.h"
#include "loader/base/json.h"
#include "tokenize/text/pattern.h"
#include "tokenize/vocab/vocab_file.h"

#define MAX_FILE ((size_t)64 << 20)

/* The texts of a vocabulary's files, and the parts read from them. */
typedef struct source {
    sgt_vocab_parts parts;
    char *merges, *vocab; /* contents of the files; NULL: none */
    size_t merges_n, vocab_n;
    char *merges_path, *vocab_path;
} source;

/* ---- merges and vocab.json ---- */

/* Find the next line of text[0..n) from *at on, without its line end. Returns 0 at the end of the
 * text. */
static int next_line(const char *text, size_t n, size_t *at, const char **line, size_t *len)
{
    if (*at >= n) return 0;
    const char *stop = memchr(text + *at, '\n', n - *at);
    *line = text + *at;
    *len = (size_t)((stop ? stop : text + n) - *line);
    *at += *len + 1;
    if (*len && (*line)[*len - 1] == '\r') --*len;
    return 1;
}

static int read_merge(sgt_vocab_parts *p, const sgt_alphabet *a, const char *path, size_t number,
                      const char *line, size_t n, sgt_error *err)
{
    uint8_t *bytes = malloc(n + 1);
    const char *space = memchr(line, ' ', n);
    if (!bytes) return sgt_fail_memory(err, path);
    size_t left =
        space ? sgt_alphabet_read(a, (const uint8_t *)line, (size_t)(space - line), bytes) : 0;
    size_t right = left ? sgt_alphabet_read(a, (const uint8_t *)space + 1,
                                            n - (size_t)(space + 1 - line), bytes + left)
                        : 0;
    int rc = right ? sgt_vocab_parts_merge(p, bytes, left, bytes + left, right, err)
                   : sgt_fail(err, SGT_EFORMAT,
                              "%s: line %zu: expected two tokens in GPT-2's byte alphabet, a space "
                              "between them",
                              path, number);
    free(bytes);
    return rc;
}

static int read_merges(source *s, sgt_error *err)
{
    sgt_alphabet a;
    const char *line;
    size_t at = 0, len, number = 0;
    int rc = SGT_OK;
    sgt_alphabet_fill(&a);
    while (!rc && next_line(s->merges, s->merges_n, &at, &line, &len)) {
        number++;
        if (number == 1 && len >= 8 && !memcmp(line, "#version", 8)) continue;
        rc = read_merge(&s->parts, &a, s->merges_path, number, line, len, err);
    }
    return rc;
}

static int is_eot(const char *text)
{
    for (const char *const *name = sgt_vocab_eot_names; *name; name++)
        if (!strcmp(*name, text)) return 1;
    return 0;
}

static int read_vocab_json(source *s, sgt_error *err)
{
    sgt_alphabet a;
    json_error_t why;
    const char *text;
    int rc = sgt_json_fits(s->vocab, s->vocab_n, SGT_VOCAB_MAX_VALUES, s->vocab_path, err);
    if (rc < 0) return rc;
    json_t *o = json_loadb(s->vocab, s->vocab_n, JSON_REJECT_DUPLICATES, &why), *id;
    if (!o) return sgt_fail(err, SGT_EFORMAT, "%s: line %d: %s", s->vocab_path, why.line, why.text);
    if (!json_is_object(o))
        rc = sgt_fail(err, SGT_EFORMAT, "%s: is not a JSON object of tokens", s->vocab_path);
    sgt_alphabet_fill(&a);
    json_object_foreach(o, text, id)
    {
        size_t n = strlen(text);
        uint8_t *bytes = malloc(n + 1);
        if (!bytes) rc = sgt_fail_memory(err, s->vocab_path);
        else if (!json_is_integer(id) || json_integer_value(id) < 0)
            rc = sgt_fail(err, SGT_EFORMAT, "%s: token %s: its id is not a whole number",
                          s->vocab_path, text);
        else if (is_eot(text))
            rc =
                sgt_vocab_parts_token(&s->parts, (uint64_t)json_integer_value(id), text, n, 1, err);
        else if (!(n = sgt_alphabet_read(&a, (const uint8_t *)text, n, bytes)))
            rc = sgt_fail(err, SGT_EFORMAT,
                          "%s: is not byte-level: token %lld (%s) is not in GPT-2's byte alphabet",
                          s->vocab_path, (long long)json_integer_value(id), text);
        else
            rc = sgt_vocab_parts_token(&s->parts, (uint64_t)json_integer_value(id), bytes, n, 0,
                                       err);
        free(bytes);
        if (rc < 0) break;
    }
    json_decref(o);
    return rc;
}

/* Number the tokens as GPT-2 does: bytes, merged tokens, end of text. */
static int number_as_gpt2(source *s, sgt_error *err)
{
    sgt_vocab_parts *p = &s->parts;
    sgt_alphabet a;
    int rc = SGT_OK;
    sgt_alphabet_fill(&a);
    for (uint32_t i = 0; i < 256 && !rc; i++)
        rc = sgt_vocab_parts_token(p, i, a.order + i, 1, 0, err);
    for (size_t i = 0; i < p->merge_count && !rc; i++) {
        /* copy the bytes, because adding to the list may move them */
        uint8_t *copy = malloc(p->merges[i].n);
        if (!copy) return sgt_fail_memory(err, s->merges_path);
        memcpy(copy, p->bytes + p->merges[i].at, p->merges[i].n);
        rc = sgt_vocab_parts_token(p, 256 + i, copy, p->merges[i].n, 0, err);
        free(copy);
    }
    if (!rc)
        rc = sgt_vocab_parts_token(p, 256 + p->merge_count, sgt_vocab_eot_names[0], 13, 1, err);
    return rc;
}

/* ---- .tiktoken ---- */

/* Decode base64 text[n] to out, which has room for n bytes. Returns the number of bytes, or -1. */
static ptrdiff_t read_base64(const char *text, size_t n, uint8_t *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    size_t count = 0, padding = 0;
    if (!n || n % 4) return -1;
    while (padding < 2 && text[n - 1 - padding] == '=') padding++;
    for (size_t i = 0; i < n; i++) {
        const char *digit = i >= n - padding ? digits : text[i] ? strchr(digits, text[i]) : NULL;
        if (!digit) return -1;
        bits = bits << 6 | (uint32_t)(digit - digits);
        if (i % 4 != 3) continue;
        for (int shift = 16; shift >= 0; shift -= 8) out[count++] = (uint8_t)(bits >> shift);
        bits = 0;
    }
    return (ptrdiff_t)(count - padding);
}

static int read_ranked(source *s, size_t number, const char *line, size_t n, sgt_error *err)
{
    const char *space = memchr(line, ' ', n);
    char digits[24], *end = digits;
    size_t len = space ? (size_t)(space - line) : 0, digit_count = space ? n - len - 1 : 0;
    uint8_t *bytes = malloc(n + 4);
    if (!bytes) return sgt_fail_memory(err, s->vocab_path);
    ptrdiff_t got = read_base64(line, len, bytes);
    uint64_t id = 0;
    if (digit_count && digit_count < 19) {
        memcpy(digits, space + 1, digit_count);
        digits[digit_count] = 0;
        id = digits[0] >= '0' && digits[0] <= '9' ? strtoull(digits, &end, 10) : 0;
    }
    int rc = got <= 0 || end == digits || *end
                 ? sgt_fail(err, SGT_EFORMAT,
                            "%s: line %zu: expected a token in base64, a space, and its rank",
                            s->vocab_path, number)
                 : sgt_vocab_parts_token(&s->parts, id, bytes, (size_t)got, 0, err);
    free(bytes);
    return rc;
}

/* Add the end of text, which the file does not hold. If exactly one id below the largest is unused,
 * that is its id; otherwise the largest plus 1. */
static int add_eot(source *s, sgt_error *err)
{
    sgt_vocab_parts *p = &s->parts;
    uint64_t largest = 0, sum = 0;
    for (size_t i = 0; i < p->token_count; i++) {
        if (p->tokens[i].id > largest) largest = p->tokens[i].id;
        sum += p->tokens[i].id;
    }
    if (largest >= SGT_VOCAB_MAX_IDS) return SGT_OK; /* refused later for its ids */
    /* the unused id, if there is exactly one */
    uint64_t left_out = largest * (largest + 1) / 2 - sum;
    uint64_t id = p->token_count == largest ? left_out : largest + 1;
    return sgt_vocab_parts_token(p, id, sgt_vocab_eot_names[0], 13, 1, err);
}

static int read_tiktoken(source *s, sgt_error *err)
{
    const char *line;
    size_t at = 0, len, number = 0;
    int rc = SGT_OK;
    while (!rc && next_line(s->vocab, s->vocab_n, &at, &line, &len)) {
        number++;
        if (len) rc = read_ranked(s, number, line, len, err);
    }
    if (!rc && !s->parts.token_count)
        rc = sgt_fail(err, SGT_EFORMAT, "%s: holds no tokens", s->vocab_path);
    s->parts.ranks = 1;
    return rc < 0 ? rc : add_eot(s, err);
}

/* ---- which file is what ---- */

static int read_text(char **text, size_t *n, const char *path, sgt_error *err)
{
    return sgt_file_get(text, n, path, MAX_FILE, err);
}

/* Return FOLDER/NAME, malloc'd, for the first of two names that exists, or NULL if neither does. */
static char *one_of(const char *folder, const char *name, const char *other)
{
    for (int i = 0; i < 2; i++) {
        char *path = sgt_join(folder, i ? other : name);
        if (path && access(path, F_OK) == 0) return path;
        free(path);
    }
    return NULL;
}

/* Return the folder that holds `path`, malloc'd, or NULL if memory ran out. */
static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return !slash          ? strdup(".")
           : slash == path ? strdup("/")
                           : strndup(path, (size_t)(slash - path));
}

static int is_json(const char *text, size_t n)
{
    size_t i = strspn(text, " \t\r\n");
    return i < n && text[i] == '{';
}

/* Return whether a text is a tokenizer.json: an object with a model that has merges. */
static int is_huggingface(const char *text, size_t n)
{
    return is_json(text, n) &&
           (memmem(text, n, "\"model\":", 8) || memmem(text, n, "\"model\" :", 9)) &&
           memmem(text, n, "\"merges\"", 8);
}

static int is_merges(const char *path, const char *text, size_t n)
{
    size_t len = strlen(path);
    return (n >= 8 && !memcmp(text, "#version", 8)) ||
           (len >= 4 && !strcmp(path + len - 4, ".bpe")) ||
           (len >= 10 && !strcmp(path + len - 10, "merges.txt"));
}

/* Find and read a vocabulary's files in a folder. */
static int find_files(source *s, const char *folder, sgt_error *err)
{
    s->vocab_path = one_of(folder, "tokenizer.json", "tokenizer.json");
    if (!s->vocab_path) {
        s->vocab_path = one_of(folder, "vocab.json", "encoder.json");
        s->merges_path = one_of(folder, "merges.txt", "vocab.bpe");
    }
    if (!s->vocab_path && !s->merges_path)
        return sgt_fail(err, SGT_EFORMAT, "%s: holds no tokenizer.json, vocab.json or merges.txt",
                        folder);
    int rc = s->vocab_path ? read_text(&s->vocab, &s->vocab_n, s->vocab_path, err) : SGT_OK;
    if (!rc && s->merges_path) rc = read_text(&s->merges, &s->merges_n, s->merges_path, err);
    return rc;
}

/* Read the vocabulary file `path`, and the second file of its format, if there is one. */
static int find_file(source *s, const char *path, sgt_error *err)
{
    char *folder = folder_of(path);
    int rc = read_text(&s->vocab, &s->vocab_n, path, err);
    if (rc < 0 || !folder || !(s->vocab_path = strdup(path))) {
        free(folder);
        return rc < 0 ? rc : sgt_fail_memory(err, path);
    }
    if (is_merges(path, s->vocab, s->vocab_n)) {
        s->merges = s->vocab;
        s->merges_n = s->vocab_n;
        s->merges_path = s->vocab_path;
        s->vocab = NULL;
        s->vocab_path = one_of(folder, "vocab.json", "encoder.json");
        if (s->vocab_path) rc = read_text(&s->vocab, &s->vocab_n, s->vocab_path, err);
    } else if (is_json(s->vocab, s->vocab_n) && !is_huggingface(s->vocab, s->vocab_n)) {
        s->merges_path = one_of(folder, "merges.txt", "vocab.bpe");
        if (s->merges_path) rc = read_text(&s->merges, &s->merges_n, s->merges_path, err);
    }
    free(folder);
    return rc;
}

static int read_source(source *s, sgt_error *err)
{
    int rc = s->merges ? read_merges(s, err) : SGT_OK;
    if (rc < 0) return rc;
    s->parts.assumed = 1;
    if (!s->vocab) return number_as_gpt2(s, err);
    s->parts.ranks = !s->merges;
    if (s->merges) return read_vocab_json(s, err);
    if (!is_json(s->vocab, s->vocab_n)) return read_tiktoken(s, err);
    if (!is_huggingface(s->vocab, s->vocab_n)) return read_vocab_json(s, err);
    s->parts.ranks = s->parts.assumed = 0;
    return sgt_vocab_read_huggingface(&s->parts, s->vocab, s->vocab_n, err);
}

/* Check that a rule compiles. If it does not, the error is the caller's (SGT_EUSAGE) if the caller
 * gave the rule, else the file's (SGT_EFORMAT). */
static int check_rule(const char *path, const char *rule, const char *given, sgt_error *err)
{
    sgt_pattern *p = NULL;
    sgt_error why;
    int rc = sgt_pattern_new(&p, rule, &why);
    sgt_pattern_free(p);
    if (!rc || rc == SGT_ENOMEM || given) {
        if (rc && err) *err = why;
        return rc;
    }
    return sgt_fail(err, SGT_EFORMAT, "%s: its %s (--pattern gives another)", path, why.text);
}

/* Find the text of a vocabulary: in the file or folder `path`, or built into the library. */
static int find_source(source *s, const char *path, sgt_error *err)
{
    struct stat st;
    if (strcmp(path, "gpt2")) {
        if (stat(path, &st) < 0)
            return sgt_fail_path(err, path, "name gpt2, or a vocabulary's file or folder");
        return S_ISDIR(st.st_mode) ? find_files(s, path, err) : find_file(s, path, err);
    }
    const uint8_t *text = sgt_vocab_gpt2_file(&s->merges_n);
    s->merges = malloc(s->merges_n);
    s->merges_path = strdup(path);
    if (!s->merges || !s->merges_path) return sgt_fail_memory(err, path);
    memcpy(s->merges, text, s->merges_n);
    return SGT_OK;
}

int sgt_vocab_load(sgt_vocab **out, const char *path, const char *rule, sgt_error *err)
{
    rule = sgt_rule_pattern(rule);
    source s = {.parts = {.path = path, .rule = rule}};
    if (!path) return sgt_fail(err, SGT_EUSAGE, "expected the path of a vocabulary, or gpt2");
    if (!strcmp(path, "gpt2") && (!rule || sgt_pattern_is_gpt2(rule)))
        return sgt_vocab_gpt2(out, err);
    int rc = find_source(&s, path, err);
    if (!rc) rc = read_source(&s, err);
    if (rule) s.parts.assumed = 0;
    if (!rc && s.parts.rule && sgt_pattern_is_gpt2(s.parts.rule)) s.parts.rule = NULL;
    if (!rc && s.parts.rule) rc = check_rule(path, s.parts.rule, rule, err);
    if (!rc) rc = sgt_vocab_from_parts(out, &s.parts, err);
    /* the vocabulary is GPT-2's, whichever file it came from */
    if (!rc && sgt_vocab_fingerprint(*out) == SGT_GPT2_FINGERPRINT) (*out)->name = "gpt2";
    sgt_vocab_parts_free(&s.parts);
    free(s.merges);
    free(s.vocab);
    free(s.merges_path);
    free(s.vocab_path);
    return sgt_fail_hint(
        err, rc,
        "expected a complete byte-level BPE: tokenizer.json, merges.txt, vocab.json or .tiktoken");
}

int sgt_vocab_of(sgt_vocab **out, const sgt_tokenize_options *o, sgt_error *err)
{
    int rc = sgt_vocab_load(out, o->vocab ? o->vocab : "gpt2", o->rule, err);
    if (rc < 0) return rc;
    sgt_vocab *v = *out;
    if (o->normalize != SGT_NORMALIZE_AS_VOCAB) v->normalize = o->normalize;
    if (!o->special_eot || !v->eot_setting) return SGT_OK;
    rc =
        sgt_fail(err, SGT_EFORMAT,
                 "%s: added_tokens: %s has %s: true, which --special eot does not apply (set it to "
                 "false, or leave --special eot out)",
                 o->vocab, v->eot_text, v->eot_setting);
    sgt_vocab_free(v);
    *out = NULL;
    return rc;
}
