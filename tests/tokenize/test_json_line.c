/* test_json_line.c: extract a field from a line of JSON. (tests/fuzz/json.c compares any line with
 * jansson.) */
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/tokenize/common.h"
#include "tokenize/input/json_line.h"

/* Return a copy of the line with the padding that the parser requires. It has exactly the bytes
 * needed, so that a sanitizer finds reads beyond them. */
static uint8_t *padded(const char *line, size_t n)
{
    uint8_t *copy = malloc(n + 1 + SGT_JSON_PAD);
    cr_assert(copy);
    memcpy(copy, line, n);
    copy[n] = '\n';
    memset(copy + n + 1, '"', SGT_JSON_PAD);
    return copy;
}

static const char *read_line(const char *field, const char *line, size_t n, char **text,
                             sgt_json_found *t)
{
    sgt_json_path path;
    scoped_memory uint8_t *copy = padded(line, n), *scratch = malloc(n + SGT_JSON_PAD);
    must(sgt_json_path_set(&path, field, why));
    const char *why = sgt_json_line(&path, copy, scratch, 1, t);
    *text = why ? NULL : malloc(t->length + 1);
    if (!why) memcpy(*text, copy + t->at, t->length);
    return why;
}

static void expect_text(const char *field, const char *line, const char *want, size_t n,
                        uint64_t surrogates)
{
    scoped_memory char *text = NULL;
    sgt_json_found t;
    const char *why = read_line(field, line, strlen(line), &text, &t);
    cr_assert_null(why, "%s: %s at %zu", line, why ? why : "", t.at);
    cr_assert(t.length == n && !memcmp(text, want, n), "%s: got %.*s", line, (int)t.length, text);
    cr_assert_eq(t.surrogates, surrogates, "%s", line);
}

static void expect_bad(const char *line, size_t at, const char *want)
{
    char *text;
    sgt_json_found t;
    const char *why = read_line("text", line, strlen(line), &text, &t);
    cr_assert(why && !strcmp(why, want) && t.at == at, "%s: %s at %zu", line, why ? why : "is good",
              t.at);
}

Test(json_line, texts)
{
    expect_text("text", "{\"text\":\"a\"}", "a", 1, 0);
    expect_text("text", " { \"x\" : [ ] , \"text\"\t:\t\"\" } \r", "", 0, 0);
    expect_text(
        "text",
        "{\"t\":{\"text\":1},\"text\":\"it\",\"z\":[{\"text\":\"no\"},-0.5e+10,true,false,null]}",
        "it", 2, 0);
    expect_text("text", "{\"te\\u0078t\":\"by its escaped name\"}", "by its escaped name", 19, 0);
    expect_text("text", "{\"text\":\"first\",\"text\":\"last\"}", "last", 4, 0);
    expect_text("text",
                "{\"text\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\u00e9\\u20AC\\ud83d\\ude00.\"}",
                "\"\\/\b\f\n\r\tA\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80.", 19, 0);
    expect_text("text", "{\"text\":\"a\\u0000b\"}", "a\0b", 3, 0);
    expect_text("a.b", "{\"b\":\"x\",\"a\":{\"a\":{\"b\":\"y\"},\"b\":\"z\"}}", "z", 1, 0);
    expect_text("a.b", "{\"a\":{\"b\":\"x\"},\"c\":{\"b\":\"y\"}}", "x", 1, 0);
    expect_text("a.b.c", "{\"a\":{\"b\":{\"c\":\"deep\"},\"c\":1}}", "deep", 4, 0);
}

/* Python's json writes these numbers, which are not valid JSON. */
Test(json_line, numbers_of_python)
{
    expect_text("text", "{\"a\":NaN,\"b\":[Infinity,-Infinity],\"text\":\"x\",\"c\":{\"d\":NaN}}",
                "x", 1, 0);
    expect_text("a.b", "{\"c\":-Infinity,\"a\":{\"c\":NaN,\"b\":\"x\"}}", "x", 1, 0);
}

/* Files that begin with a byte order mark were concatenated, with and without a newline between
 * them. */
Test(json_line, byte_order_marks)
{
    static const char why[] =
        "a byte order mark where files were joined: sed -E 's/^\\s*\\xEF\\xBB\\xBF//; "
        "s/}\\s*\\xEF\\xBB\\xBF\\s*(\\{|$)/}\\n\\1/g' removes it";
    expect_bad("\xEF\xBB\xBF{\"text\":\"a\"}", 0, why);
    expect_bad("{\"text\":\"a\"}\xEF\xBB\xBF{\"text\":\"b\"}", 12, why);
    expect_text("text", "{\"text\":\"\xEF\xBB\xBF\"}", "\xEF\xBB\xBF", 3, 0);
}

Test(json_line, halves_of_surrogate_pairs)
{
    static const char rep[] = "\xEF\xBF\xBD";
    expect_text("text", "{\"text\":\"\\ud800\"}", rep, 3, 1);
    expect_text("text", "{\"text\":\"\\udfff\"}", rep, 3, 1);
    expect_text("text", "{\"text\":\"\\ud83d\\n\"}", "\xEF\xBF\xBD\n", 4, 1);
    expect_text("text", "{\"text\":\"\\ud83d\\ud83d\\ude00\"}", "\xEF\xBF\xBD\xF0\x9F\x98\x80", 7,
                1);
    expect_text("text", "{\"text\":\"\\ude00\\ud83d\"}", "\xEF\xBF\xBD\xEF\xBF\xBD", 6, 2);
    expect_text("text", "{\"text\":\"\\ud83d\\u0041\"}",
                "\xEF\xBF\xBD"
                "A",
                4, 1);
    /* lone surrogates in other fields are not counted */
    expect_text("text", "{\"x\":\"\\ud800\",\"text\":\"\"}", "", 0, 0);
}

Test(json_line, bad_lines)
{
    expect_bad("[1]", 0, "expected an object");
    expect_bad("\"text\"", 0, "expected an object");
    expect_bad("{}", SGT_JSON_NOWHERE, "the field is missing");
    expect_bad("{\"Text\":\"\"}", SGT_JSON_NOWHERE, "the field is missing");
    expect_bad("{\"tex\\u0074t\":\"\"}", SGT_JSON_NOWHERE, "the field is missing");
    expect_bad("{\"text\":null}", SGT_JSON_NOWHERE, "the field is not a string");
    expect_bad("{\"text\":[\"a\"]}", SGT_JSON_NOWHERE, "the field is not a string");
    expect_bad("{\"text\":\"a\",\"text\":1}", SGT_JSON_NOWHERE, "the field is not a string");
    expect_bad("{", 1, "expected a name in quotes");
    expect_bad("{\"text\"", 7, "expected a colon");
    expect_bad("{\"text\":", 8, "expected a value");
    expect_bad("{\"text\":\"a", 10, "the string has no end");
    expect_bad("{\"text\":\"a\\", 10, "unknown escape sequence");
    expect_bad("{\"text\":\"a\\x\"}", 10, "unknown escape sequence");
    expect_bad("{\"text\":\"\\u12g4\"}", 9, "expected four hex digits after \\u");
    expect_bad("{\"text\":\"\\u12", 9, "expected four hex digits after \\u");
    expect_bad("{\"text\":\"\t\"}", 9, "a control character in a string");
    expect_bad("{\"text\":\"a\"", 11, "expected , or }");
    expect_bad("{\"text\":\"a\",}", 12, "expected a name in quotes");
    expect_bad("{,\"text\":\"a\"}", 1, "expected a name in quotes");
    expect_bad("{\"text\":\"a\"}}", 12, "unexpected text after the object");
    expect_bad("{\"text\":\"a\"} x", 13, "unexpected text after the object");
    expect_bad("{\"a\":[1 2]}", 8, "expected , or ]");
    expect_bad("{\"a\":[1,]}", 8, "expected a value");
    expect_bad("{\"a\":[}", 6, "expected a value");
    expect_bad("{\"a\":01}", 6, "expected , or }");
    expect_bad("{\"a\":-}", 6, "expected a digit");
    expect_bad("{\"a\":1.}", 7, "expected a digit");
    expect_bad("{\"a\":1e+}", 8, "expected a digit");
    expect_bad("{\"a\":+1}", 5, "expected a value");
    expect_bad("{\"a\":Nan}", 7, "expected a value");
    expect_bad("{\"a\":-Inf}", 9, "expected a value");
    expect_bad("{\"text\":NaN}", 8, "NaN or Infinity, which is not text");
    expect_bad("{\"text\":[-Infinity]}", 10, "NaN or Infinity, which is not text");
    expect_bad("{\"a\":tru}", 8, "expected a value");
    expect_bad("{'text':\"a\"}", 1, "expected a name in quotes");
}

Test(json_line, paths_that_are_cut_off)
{
    char *text;
    sgt_json_found t;
    static const char *const lines[] = {
        "{\"a\":\"x\"}", "{\"a\":[{\"b\":\"x\"}]}", "{\"a\":{\"b\":\"x\"},\"a\":{}}",
        "{\"a\":{\"b\":\"x\"},\"a\":1}", "{\"a\":{\"c\":{\"b\":\"x\"}}}"};
    for (size_t i = 0; i < 5; i++) {
        const char *why = read_line("a.b", lines[i], strlen(lines[i]), &text, &t);
        cr_assert(why && !strcmp(why, "the field is missing"), "%s: %s", lines[i],
                  why ? why : "is good");
    }
    sgt_error err;
    sgt_json_path p;
    cr_assert_eq(sgt_json_path_set(&p, "", &err), SGT_EUSAGE);
    expect_failure(sgt_json_path_set(&p, "a..b", why), SGT_EUSAGE,
                   "field: \"a..b\" contains an empty name");
    expect_failure(sgt_json_path_set(&p, "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q", why), SGT_EUSAGE,
                   "field: \"a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.q\" has more than 16 names");
}

/* Nest arrays and objects in turn, to the largest depth allowed and one level deeper. */
Test(json_line, depth)
{
    for (size_t depth = SGT_JSON_DEPTH - 1; depth <= SGT_JSON_DEPTH; depth++) {
        char *line = malloc(8 * depth + 64), *at = line, *text;
        sgt_json_found t;
        at += sprintf(at, "{\"deep\":");
        for (size_t i = 0; i < depth; i++) at += sprintf(at, i % 2 ? "[" : "{\"a\":");
        at += sprintf(at, "0");
        for (size_t i = depth; i-- > 0;) *at++ = i % 2 ? ']' : '}';
        at += sprintf(at, ",\"text\":\"ok\"}");
        const char *why = read_line("text", line, (size_t)(at - line), &text, &t);
        if (depth < SGT_JSON_DEPTH) {
            cr_assert_null(why);
            cr_assert(t.length == 2 && !memcmp(text, "ok", 2));
            free(text);
        } else cr_assert_str_eq(why, "objects and arrays are nested more than 65536 deep");
        free(line);
    }
}
