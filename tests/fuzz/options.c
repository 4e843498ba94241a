/* options.c: the value of a numeric option equals that of its digits and suffix, computed here in
 * integers, or the option is refused. Any command line ends in a usage error, or in options and
 * operands. The input has one argument per line. */
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tools/cli/options.h"

enum { MOST = 30 }; /* most arguments */

static struct {
    uint64_t count, size;
    double real, percent;
    const char *text, *choice;
    int flag;
    sgt_option_list list;
} o;
static const sgt_option table[] = {
    {.name = "Heading"},
    {"count", 'n', SGT_OPT_COUNT, &o.count, "N", .help = "help", .min = 1, .max = 1 << 20},
    {"size", 's', SGT_OPT_SIZE, &o.size, "SIZE", .help = "help"},
    {"real", 0, SGT_OPT_REAL, &o.real, "X", .help = "help"},
    {"percent", 0, SGT_OPT_PERCENT, &o.percent, "N%", .help = "help"},
    {"text", 't', SGT_OPT_TEXT, &o.text, "TEXT", .help = "help"},
    {"choice", 0, SGT_OPT_CHOICE, &o.choice, "one|two", .help = "help"},
    {"list", 0, SGT_OPT_LIST, &o.list, "TEXT", .help = "help"},
    {"flag", 'f', SGT_OPT_FLAG, &o.flag, .help = "help"},
    {0}};
static const sgt_program program = {
    .name = "sgt-x", .usage = "sgt-x", .about = "x", .options = table};

/* ---- exit(), called by the code under test ---- */

static jmp_buf ended;
/* 1 while options.c may call exit, which must then return here; 0: libFuzzer's own exit */
static int inside;
_Noreturn void __real_exit(int code);
_Noreturn void __wrap_exit(int code);
_Noreturn void __wrap_exit(int code)
{
    if (!inside) __real_exit(code);
    longjmp(ended, code + 1);
}

/* Switch off the leak check: jumping out of exit leaks memory that the end of the process would
 * have freed. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }

/* Redirect descriptor `fd` to /dev/null (`on` 1), or back to where it went before (0). */
static int quiet(int fd, int on)
{
    static int kept[3], nowhere;
    if (!nowhere) nowhere = dup2(fileno(fopen("/dev/null", "we")), 100);
    fflush(fd == 1 ? stdout : stderr);
    if (on) kept[fd] = dup(fd), dup2(nowhere, fd);
    else dup2(kept[fd], fd), close(kept[fd]);
    return 0;
}

/* ---- numbers ---- */

/* Parse s: digits, perhaps a fraction, and a suffix. If the value is an integer below 2^53 with at
 * most six decimal places in s, store it in *out and return 1; else return 0. */
static int plain_number(const char *s, int bytes, uint64_t *out)
{
    static const char letters[] = "kMGT";
    uint64_t v = 0, places = 1, factor = 1;
    const char *p = s;
    for (; *p >= '0' && *p <= '9' && v < 1u << 30; p++) v = 10 * v + (uint64_t)(*p - '0');
    if (p == s) return 0;
    if (*p == '.')
        for (p++; *p >= '0' && *p <= '9' && places < 1000000; p++)
            v = 10 * v + (uint64_t)(*p - '0'), places *= 10;
    const char *letter = *p ? strchr(letters, *p == 'K' ? 'k' : *p) : NULL;
    if (letter) {
        uint64_t base = *++p == 'i' ? 1024 : 1000;
        p += base == 1024;
        for (const char *k = letters; k <= letter; k++) factor *= base;
    }
    if (bytes && *p == 'B' && (letter || p > s)) p++;
    if (*p || v > (1ull << 53) / factor || v * factor % places) return 0;
    *out = v * factor / places;
    return 1;
}

static void check_number(const char *s)
{
    uint64_t want, got;
    double x;
    for (int bytes = 0; bytes < 2; bytes++) {
        int rc = bytes ? sgt_parse_size(s, &got) : sgt_parse_count(s, &got);
        must(rc == 0 || rc == -1, "it is a number or none");
        if (plain_number(s, bytes, &want)) must(rc == 0 && got == want, "a number is what it says");
    }
    if (sgt_parse_real(s, &x) == 0) must(x - x == 0, "a number is finite");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *argv[MOST + 2] = {"sgt-x"}, *text = strndup((const char *)data, size);
    volatile int argc = 1;
    must(text != NULL, "there is memory");
    for (char *line = strtok(text, "\n"); line && argc <= MOST; line = strtok(NULL, "\n")) {
        check_number(line);
        argv[argc++] = line;
    }
    quiet(1, 1), quiet(2, 1);
    int code = setjmp(ended);
    inside = !code;
    int first = code ? 0 : sgt_options_parse(&program, argc, argv);
    inside = 0;
    quiet(1, 0), quiet(2, 0);
    must(code <= SGT_EXIT_USAGE + 1, "it ends well, or in wrong usage");
    if (!code) {
        must(first >= 1 && first <= argc, "operands are among the arguments");
        for (int i = first; i < argc; i++)
            must(argv[i] >= text && argv[i] <= text + size, "each is an argument");
        must(!o.choice || !strcmp(o.choice, "one") || !strcmp(o.choice, "two"),
             "a choice is one of its words");
        must(!o.count || (o.count >= 1 && o.count <= 1 << 20), "a number is within its bounds");
    }
    memset(&o, 0, sizeof o);
    free(text);
    return 0;
}
