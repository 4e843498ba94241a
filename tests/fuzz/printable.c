/* printable.c: sgt_printable makes any bytes well-formed text without control characters that fits
 * its buffer. Printable names stay as they are. A message with such a name is one line, no longer
 * than its buffer. */
#include <string.h>

#include "loader/base/error.h"
#include "tests/fuzz/fuzz.h"
#include "tokenize/text/utf8.h"

static void check_shown(const char *s)
{
    size_t n = strlen(s);
    must(sgt_utf8_valid((const uint8_t *)s, n) == n, "it is UTF-8");
    for (size_t i = 0; i < n; i++) {
        must((unsigned char)s[i] >= 0x20 && s[i] != 0x7f, "there is no control character in it");
        must((unsigned char)s[i] != 0xc2 || (unsigned char)s[i + 1] >= 0xa0,
             "nor one of C1, which terminals obey");
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *name = strndup((const char *)data, size);
    must(name != NULL, "there is memory");
    size_t n = strlen(name), sizes[] = {0, 1, 2, 5, n, n + 1, 4 * n + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *out = malloc(sizes[i] + 1);
        must(out != NULL, "there is memory");
        memset(out, 0x55, sizes[i] + 1);
        sgt_printable(out, sizes[i], name);
        must(out[sizes[i]] == 0x55, "it keeps to its room");
        if (sizes[i]) must(strlen(out) < sizes[i], "it ends there"), check_shown(out);
        if (sizes[i] == 4 * n + 1 && strlen(out) == n)
            must(!strcmp(out, name), "text stays as it is");
        free(out);
    }
    sgt_error err;
    must(sgt_fail(&err, SGT_EIO, "%s: it is %s", name, name) == SGT_EIO, "the code is returned");
    must(strlen(err.text) < sizeof err.text, "it fits");
    check_shown(err.text);
    free(name);
    return 0;
}
