/* test_cli.c: tools/cli: numbers as people write and read them, options, suggestions for misspelt
 * names. Scripts of tests/cli, such as train-usage.sh, check the messages about wrong options. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "loader/base/file.h"
#include "tests/scratch.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/cli/options.h"

Test(numbers, counts_are_parsed_to_the_last_character)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {{"0", 0},
                {"12", 12},
                {"512k", 512000},
                {"1.5M", 1500000},
                {"100M", 100000000},
                {"2Ki", 2048},
                {"0.5G", 500000000},
                {"18446744073709551615", UINT64_MAX},
                {"0.1k", 100},
                /* a double would round this number */
                {"51000005M", 51000005000000},
                {"18446744073709551.615k", UINT64_MAX},
                {"1.25Ki", 1280},
                {"1.5e3", 1500},
                {"12000e-1", 1200}};
    char bad[] =
        "~k~-1~12x~1 ~ 1~1.5~0x10~1e~18446744073709551616~12kB~nan~inf~99999999999T~1..5M~+1~"
        "1.3Ki~1e-1~1e99~1e 3~18446744073709551.616k~1.00000000000000000001k";
    uint64_t v;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        cr_assert_eq(sgt_parse_count(good[i].text, &v), 0, "%s", good[i].text);
        cr_assert_eq(v, good[i].value, "%s", good[i].text);
    }
    for (char *rest = bad, *text; (text = strsep(&rest, "~"));)
        cr_assert_eq(sgt_parse_count(text, &v), -1, "'%s'", text);
}

Test(numbers, sizes_and_reals)
{
    uint64_t v;
    double x;
    cr_assert(sgt_parse_size("64MiB", &v) == 0 && v == 64 << 20);
    cr_assert(sgt_parse_size("10B", &v) == 0 && v == 10);
    cr_assert(sgt_parse_size("1.5GB", &v) == 0 && v == 1500000000);
    cr_assert(sgt_parse_size("1MiBs", &v) < 0);
    cr_assert(sgt_parse_real("3e-4", &x) == 0 && x == 3e-4);
    cr_assert(sgt_parse_real("-.5", &x) == 0 && x == -.5);
    cr_assert(sgt_parse_real("fast", &x) < 0 && sgt_parse_real("nan", &x) < 0 &&
              sgt_parse_real("1x", &x) < 0);
    cr_assert(sgt_parse_real("1e999", &x) < 0 && sgt_parse_real("", &x) < 0);
}

Test(numbers, as_people_read_them)
{
    char b[64];
    cr_assert_str_eq(sgt_format_bytes(b, sizeof b, 1023), "1023 B");
    cr_assert_str_eq(sgt_format_bytes(b, sizeof b, 1536), "1.5 KiB");
    cr_assert_str_eq(sgt_format_bytes(b, sizeof b, (64ull << 20)), "64.0 MiB");
    cr_assert_str_eq(sgt_format_rate(b, sizeof b, 25.04e6, "B/s"), "25.0 MB/s");
    cr_assert_str_eq(sgt_format_rate(b, sizeof b, 1234, "tokens/s"), "1.23 ktokens/s");
    cr_assert_str_eq(sgt_format_count(b, sizeof b, 1234567), "1,234,567");
    cr_assert_str_eq(sgt_format_count(b, sizeof b, 999), "999");
    cr_assert_str_eq(sgt_format_time(b, sizeof b, 42.4), "00:42");
    cr_assert_str_eq(sgt_format_time(b, sizeof b, 3723), "1:02:03");
    cr_assert_str_eq(sgt_format_time(b, sizeof b, 1e300), "--:--");
    cr_assert_str_eq(sgt_format_things(b, sizeof b, 1, "token", "tokens"), "1 token");
    cr_assert_str_eq(sgt_format_things(b, sizeof b, 0, "token", "tokens"), "0 tokens");
    cr_assert_str_eq(sgt_format_things(b, sizeof b, 1234, "entry", "entries"), "1,234 entries");
    static const struct {
        double seconds;
        const char *text;
    } times[] = {{0, "0.0 ms"},         {.0012, "1.2 ms"},     {.0996, "100 ms"},
                 {.9994, "999 ms"},     {.9996, "1.0 s"},      {99.94, "99.9 s"},
                 {99.96, "1 min 40 s"}, {599.4, "9 min 59 s"}, {600, "10 min"},
                 {5969, "99 min"},      {5971, "1 h 40 min"},  {172769, "47 h 59 min"},
                 {172800, "2.0 days"}};
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        cr_assert_str_eq(sgt_format_duration(b, sizeof b, times[i].seconds), times[i].text);
}

Test(lines, are_broken_between_words)
{
    static const struct {
        const char *text;
        int columns;
        const char *want;
    } cases[] = {
        {"short", 20, "short"},
        {"exactly twenty cols.", 20, "exactly twenty cols."},
        {"exactly twenty cols. more", 20, "exactly twenty cols.\n  more"},
        {"one more than twenty-", 20, "one more than\n  twenty-"},
        {"a aLongWordThatIsWiderThanTheLine b", 20, "a\n  aLongWordThatIsWiderThanTheLine\n  b"},
        {"  indented text stays so", 20, "  indented text\n    stays so"},
        {"two\nlines of them which are long", 20, "two\nlines of them which\n  are long"},
        {"must be one of preload|mmap|uring|others", 20,
         "must be one of\n  preload|mmap|uring|others"},
        {"caf\xc3\xa9 caf\xc3\xa9 caf\xc3\xa9 caf\xc3\xa9 x", 21,
         "caf\xc3\xa9 caf\xc3\xa9 caf\xc3\xa9 caf\xc3\xa9 x"},
        {"many   blanks    in    it stay", 30, "many   blanks    in    it stay"},
        {"name   what that name is", 20, "name   what that\n       name is"},
        {"       an empty first column", 20, "       an empty\n       first column"},
        {"a first column that   is wide", 24, "a first column that   is\n  wide"},
        {"not a terminal, or one that does not say how wide it is", 0,
         "not a terminal, or one that does not say how wide it is"},
        {"a terminal of five columns is no help", 5, "a terminal of five columns is no help"},
        {"", 20, ""}};
    char out[256];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_expect_str_eq(sgt_wrap(out, sizeof out, cases[i].text, cases[i].columns), cases[i].want);
    cr_expect_str_eq(sgt_wrap(out, 8, "cut to fit", 0), "cut to ");
}

static struct {
    uint64_t n, size;
    double x, part;
    const char *text, *choice;
    int flag, n_given, word;
} o = {.word = -1};
static const char *const words[] = {"first", "second", NULL};
static struct {
    double share, rate;
    uint64_t rows;
    int given[3];
} settings;
static const sgt_option rows[] = {
    {"share", 's', SGT_OPT_REAL, NULL, "P", .help = "a share", .def = "0", .max = 1, .below = 1,
     .section = 2, .offset = offsetof(__typeof__(settings), share)},
    {"rows", 0, SGT_OPT_COUNT, NULL, "N|auto", .help = "rows", .def = "auto", .min = 1, .max = 9,
     .section = 1, .offset = offsetof(__typeof__(settings), rows)},
    {"lr", 0, SGT_OPT_REAL, NULL, "X|auto", .help = "a rate", .def = "auto", .max = HUGE_VAL,
     .section = 2, .offset = offsetof(__typeof__(settings), rate)},
    {0}};
static const sgt_option table[] = {
    {.name = "Things"},
    {"number", 'n', SGT_OPT_COUNT, &o.n, "N", .help = "how many", .def = "8", .min = 1, .max = 100,
     .given = &o.n_given},
    {"size", 0, SGT_OPT_SIZE, &o.size, "SIZE", .help = "how large"},
    {"rate", 0, SGT_OPT_REAL, &o.x, "X", .help = "how fast"},
    {"split", 0, SGT_OPT_PERCENT, &o.part, "N%", .help = "which part"},
    {"text", 0, SGT_OPT_TEXT, &o.text, "TEXT", .help = "what"},
    {"choice", 0, SGT_OPT_CHOICE, &o.choice, "one|two", .help = "which"},
    {"flag", 'f', SGT_OPT_FLAG, &o.flag, .help = "whether"},
    {"word", 0, SGT_OPT_WORD, &o.word, .choices = words, .help = "which"},
    {.name = "Rows", .kind = SGT_OPT_ROWS, .section = 2},
    {"part", .as = &rows[0], .to = &o.x, .help = "another share"},
    {0}};
static const sgt_program program = {.name = "sgt-x",
                                    .usage = "sgt-x [OPTION]... IN...\n       sgt-x",
                                    .about = "about",
                                    .options = table,
                                    .rows = rows,
                                    .settings = &settings,
                                    .given = settings.given};

static int parse(int argc, ...)
{
    static char *argv[16];
    va_list args;
    va_start(args, argc);
    argv[0] = (char *)"sgt-x";
    for (int i = 1; i <= argc; i++) argv[i] = va_arg(args, char *);
    va_end(args);
    int first = sgt_options_parse(&program, argc + 1, argv);
    for (int i = first; i <= argc; i++)
        cr_assert_str_eq(argv[i], i == first ? "in" : i == first + 1 ? "-" : "--out");
    return argc + 1 - first;
}

Test(options, words_letters_and_operands_in_any_order)
{
    int operands = parse(11, "in", "-n", "12", "--size=1KiB", "--rate", "-2e3", "--split=1%", "-",
                         "-f", "--", "--out");
    cr_assert_eq(operands, 3);
    cr_assert(o.n == 12 && o.n_given == 1 && o.size == 1024 && o.x == -2000 && o.part == .01 &&
              o.flag == 1);
    cr_assert_eq(parse(4, "--text", "--flag", "--choice", "two"), 0);
    cr_assert(!strcmp(o.text, "--flag") && !strcmp(o.choice, "two"));
}

Test(options, a_default_that_is_a_number_is_set_and_not_given)
{
    cr_assert_eq(parse(1, "in"), 1);
    cr_assert(o.n == 8 && !o.n_given && o.x == 0);
}

Test(options, rows_of_settings_stand_in_the_table)
{
    sgt_option at;
    char names[200] = "";
    for (size_t i = 0; sgt_option_at(&program, i, &at); i++) strcat(strcat(names, at.name), " ");
    cr_assert_str_eq(
        names, "Things number size rate split text choice flag word Rows share lr part Others "
               "help version ");
    cr_assert_eq(parse(6, "-s", "0.25", "--word=second", "--lr", "auto", "--part=0.5"), 0);
    cr_assert(settings.share == .25 && settings.given[0] == 1 && !settings.given[1] &&
              settings.given[2] == 1);
    cr_assert(settings.rate == SGT_DEFAULT_REAL && o.word == 1 && o.x == .5);
}

Test(suggestions, a_word_with_slips_or_a_part_of_one)
{
    static const char known[] =
        "seed|steps|batch-size|seq-len|no-tie|no-fuse|no-graphs|no-overlap|no-pad-vocab|lr|"
        "schedule|data|model|FILE|OUT/";
    static const struct {
        const char *word, *says;
    } cases[] = {{"bacth-size", "; did you mean --batch-size?"},
                 {"batch", "; did you mean --batch-size?"},
                 {"SEED", "; did you mean --seed?"},
                 {"sede", "; did you mean --seed?"},
                 {"no-gaphs", "; did you mean --no-graphs?"},
                 {"se", "; did you mean --seed or --seq-len?"},
                 {"no", ""}, /* five names would fit, so none is suggested */
                 {"", ""},
                 {"batch_size", "; did you mean --batch-size?"},
                 {"lr-schedule-kind", "; did you mean --schedule?"},
                 {"max_seq_length", "; did you mean --seq-len?"},
                 {"min-learning-rate", "; did you mean --lr?"},
                 {"dtype", ""}, /* another name for precision, which is not in the list */
                 {"n-layers", "; did you mean --model LxCxH?"},
                 {"num-heats", "; did you mean --model LxCxH?"},
                 {"num-beats", ""}, /* two errors */
                 {"output", "; did you mean OUT/ as the last word?"},
                 {"bacth_size=4", "; did you mean --batch-size=4?"},
                 {"block-size=4", "; did you mean --seq-len=4?"},
                 {"n-layer=4", "; did you mean --model LxCxH?"},
                 {"se=4", "; did you mean --seed or --seq-len?"},
                 {"=4", ""},
                 {"overt", ""}, /* lr begins no part of it */
                 {"bs", "; did you mean --batch-size?"},
                 {"ws", ""}, /* like bs, but a short name must match exactly */
                 {"batch-size-batch-size-batch-size-batch-size-batch-size", ""}};
    char hint[SGT_HINT];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        cr_assert_str_eq(
            sgt_suggest(cases[i].word, strcspn(cases[i].word, "="), known, "--", 0, hint),
            cases[i].says);
}

/* ---- NVIDIA's libraries in Python's packages ---- */

static void make_package(const char *root, const char *below)
{
    char path[256];
    snprintf(path, sizeof path, "%s%s", root, below);
    cr_assert_eq(sgt_make_folders(path, NULL), SGT_OK);
}

static void check_own_prefix(void)
{
    char prefix[200] = "", path[300];
    cr_assert_gt(readlink("/proc/self/exe", prefix, sizeof prefix - 1), 0);
    for (int up = 0; up < 2; up++) *strrchr(prefix, '/') = '\0';
    make_package(prefix, "/lib/python3.0/site-packages/nvidia/cudnn/lib");
    char *list = sgt_wheel_folders();
    snprintf(path, sizeof path, "%s/lib/python3.0/site-packages/nvidia/cudnn/lib", prefix);
    cr_expect(strstr(list, path) != NULL, "%s", list);
    free(list);
    snprintf(path, sizeof path, "%s/lib/python3.0", prefix);
    sgt_remove_tree(path, NULL);
}

Test(wheels, folders_of_the_prefix_of_environments_and_of_the_python_in_path)
{
    char root[SCRATCH_SIZE], path[300], want[900];
    check_own_prefix(); /* first, because its folders would appear in the lists below */
    cr_assert(scratch_folder(root, "/tmp", "wheels"), "%s", root);
    make_package(root, "/venv/lib/python3.12/site-packages/nvidia/cudnn/lib");
    make_package(root, "/venv/lib/python3.12/site-packages/nvidia/cu13/lib");
    make_package(root, "/venv/lib/python3.12/site-packages/nvidia/nothing/include");
    make_package(root, "/own/lib/python3.9/site-packages/nvidia/nccl/lib");
    make_package(root, "/own/bin");
    make_package(root, "/home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib");
    snprintf(path, sizeof path, "%s/own/bin/python3", root);
    cr_assert_eq(symlink("/bin/sh", path), 0);
    snprintf(path, sizeof path, "%s/nowhere:%s/own/bin", root, root);
    setenv("PATH", path, 1);
    snprintf(path, sizeof path, "%s/venv", root);
    setenv("VIRTUAL_ENV", path, 1);
    /* the same folder as VIRTUAL_ENV's, which must be listed once */
    setenv("CONDA_PREFIX", path, 1);
    snprintf(path, sizeof path, "%s/home", root);
    setenv("HOME", path, 1);
    char *list = sgt_wheel_folders();
    snprintf(want, sizeof want,
             "%s/venv/lib/python3.12/site-packages/nvidia/cu13/lib:%s/venv/lib/python3.12/"
             "site-packages/nvidia/cudnn/lib:%s/own/lib/python3.9/site-packages/nvidia/nccl/lib:%s/"
             "home/.local/lib/python3.11/site-packages/nvidia/cudnn/lib",
             root, root, root, root);
    cr_assert(list != NULL);
    /* folders of this machine may follow */
    cr_expect_eq(strncmp(list, want, strlen(want)), 0, "%s", list);
    free(list);
    sgt_remove_tree(root, NULL);
}
