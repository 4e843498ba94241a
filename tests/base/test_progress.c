/* test_progress.c: tools/cli/progress: what a terminal finally shows, tested with a pseudo-terminal
 * and an emulation of a terminal. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "tests/scoped.h"
#include "tools/cli/progress.h"

enum { ROWS = 4096, COLUMNS = 512 };

/* Emulates the part of a terminal that the bar uses: \r, \n, "erase to the end of the line", and
 * characters. */
typedef struct terminal {
    int master, width;
    pthread_t reader;
    char rows[ROWS][COLUMNS];
    int row, column, escape, wrapped;
} terminal;

static void show(terminal *t, char c)
{
    if (t->escape) {
        t->escape = c == 'K' ? 0 : t->escape + 1;
        if (c == 'K') memset(t->rows[t->row] + t->column, 0, COLUMNS - (size_t)t->column);
        cr_assert_leq(t->escape, 2, "an escape that is not known");
    } else if (c == '\033') {
        t->escape = 1;
    } else if (c == '\r') {
        t->column = 0;
    } else if (c == '\n') {
        cr_assert_lt(++t->row, ROWS);
    } else {
        t->wrapped |= t->column >= t->width;
        cr_assert_lt(t->column, COLUMNS);
        t->rows[t->row][t->column++] = c;
    }
}

static void *read_all(void *arg)
{
    terminal *t = arg;
    char buffer[4096];
    for (ssize_t n; (n = read(t->master, buffer, sizeof buffer)) > 0;)
        for (ssize_t i = 0; i < n; i++) show(t, buffer[i]);
    return NULL; /* read fails with EIO once the other end is closed */
}

static int real_stderr;

/* Change the size of the terminal's window. */
static void resize(const terminal *t, int width)
{
    struct winsize size = {.ws_row = 24, .ws_col = (unsigned short)width};
    cr_assert_eq(ioctl(t->master, TIOCSWINSZ, &size), 0);
}

static terminal *plug(int width)
{
    setenv("TERM", "xterm", 1);
    terminal *t = calloc(1, sizeof *t);
    cr_assert((t->master = posix_openpt(O_RDWR | O_NOCTTY)) >= 0 && !grantpt(t->master) &&
              !unlockpt(t->master));
    int slave = open(ptsname(t->master), O_RDWR | O_NOCTTY);
    cr_assert_geq(slave, 0);
    resize(t, width);
    t->width = width;
    real_stderr = dup(STDERR_FILENO);
    dup2(slave, STDERR_FILENO);
    close(slave);
    cr_assert_eq(pthread_create(&t->reader, NULL, read_all, t), 0);
    return t;
}

/* Disconnect the terminal, after which the rest of *t can be read. Return how many lines were
 * written. */
static int unplug(terminal *t)
{
    dup2(real_stderr, STDERR_FILENO);
    close(real_stderr);
    pthread_join(t->reader, NULL);
    close(t->master);
    cr_assert(!t->wrapped, "a line was longer than the terminal is wide");
    cr_assert_eq(t->rows[t->row][0], 0, "the last line is not ended: %s", t->rows[t->row]);
    return t->row;
}

static time_t ahead; /* seconds added to all clocks, so that tests need not wait */

int clock_gettime(clockid_t id, struct timespec *t)
{
    int rc = (int)syscall(SYS_clock_gettime, id, t);
    t->tv_sec += ahead;
    return rc;
}

static void let_time_pass(void) { usleep(210000); } /* wait until a redraw is due */

Test(progress, one_bar_with_lines_above_it)
{
    scoped_memory terminal *t = plug(100);
    sgt_progress *p = sgt_progress_new("B", 0);
    sgt_notice n = sgt_progress_notice(p, "sgt-x");
    sgt_say(&n, "before there is a bar");
    sgt_progress_update(p, 1 << 20, 4 << 20, 0, "5.00 Mtokens/s"); /* too early for a redraw */
    let_time_pass();
    sgt_progress_update(p, 2 << 20, 4 << 20, 0, "5.00 Mtokens/s");
    sgt_say(&n, "in.txt: %s", "not UTF-8");
    sgt_progress_line(p, "a line that is much longer than what is left of the bar when this is "
                         "written to the screen");
    let_time_pass();
    sgt_progress_update(p, 3 << 20, 4 << 20, 0, "1 token/s");
    sgt_progress_update(p, 4 << 20, 4 << 20, 0, "2 tokens/s");
    sgt_progress_end(p);
    cr_assert_eq(unplug(t), 4);
    cr_assert_str_eq(t->rows[0], "sgt-x: before there is a bar");
    cr_assert_str_eq(t->rows[1], "sgt-x: in.txt: not UTF-8");
    cr_assert_str_eq(t->rows[2], "a line that is much longer than what is left of the bar when "
                                 "this is written to the screen");
    static const char want[] = "100%|####################| 4.0 MiB/4.0 MiB [00:00<00:00, ";
    cr_assert_eq(strncmp(t->rows[3], want, strlen(want)), 0, "%s", t->rows[3]);
    size_t length = strlen(t->rows[3]);
    static const char end[] = "MB/s] 2 tokens/s";
    cr_assert(length > strlen(end) && !strcmp(t->rows[3] + length - strlen(end), end), "%s",
              t->rows[3]);
}

Test(progress, a_total_that_is_not_known)
{
    scoped_memory terminal *t = plug(80);
    sgt_progress *p = sgt_progress_new("B", 0);
    sgt_progress_update(p, 3 << 20, 0, 0, NULL);
    sgt_progress_end(p);
    cr_assert_eq(unplug(t), 1);
    cr_assert_eq(strncmp(t->rows[0], "3.0 MiB [00:00, ", 16), 0, "%s", t->rows[0]);
    cr_assert_null(strchr(t->rows[0], '%'));
    cr_assert_eq(t->rows[0][strlen(t->rows[0]) - 1], ']', "%s|", t->rows[0]);
}

/* Show a bar in a terminal of 200 columns, which then changes to `width` columns, and copy the
 * bar's last state to `row`. */
static void one_bar(char row[COLUMNS], int width, const char *unit, uint64_t done, uint64_t total,
                    const char *facts)
{
    scoped_memory terminal *t = plug(200);
    sgt_progress *p = sgt_progress_new(unit, 0);
    ahead++;
    sgt_progress_update(p, done, total, 0, facts);
    resize(t, width);
    sgt_progress_end(p);
    cr_assert_eq(unplug(t), 1);
    memcpy(row, t->rows[0], COLUMNS);
    cr_assert_leq(strlen(row), (size_t)width - 1);
}

/* Compare a line with `want`, without the digits of its numbers, because times and speeds vary. */
static void check_shape(const char *line, const char *want)
{
    char shape[COLUMNS];
    size_t n = 0;
    for (const char *c = line; *c && n + 1 < sizeof shape; c++)
        if (!strchr("0123456789.# ", *c) &&
            !(strchr("kMGT", *c) && c[-1] == ' ' && c[1] && strchr("tsiB", c[1])))
            shape[n++] = *c;
    shape[n] = '\0';
    cr_assert_str_eq(shape, want, "%s: %s, not %s", line, shape, want);
}

/* If the terminal is too narrow, the bar is omitted first, and then parts of the line, beginning
 * with the least important. */
Test(progress, narrow_terminals)
{
    static const char facts[] = "loss 5.7891\t2.85 ktokens/s\tlr 2.26e-04\tMFU 41 %";
    static const struct {
        int from, to; /* widths of the terminal that give this line */
        const char *shape;
    } of_items[] = {{110, 200, "%||,/,[:<:,step/s]loss,tokens/s,lre-,MFU%"},
                    {96, 96, "%||,/,[:<:]loss,tokens/s,lre-,MFU%"},
                    {90, 90, "%||,/,<:loss,tokens/s,lre-,MFU%"},
                    {80, 80, "%||,/,<:loss,tokens/s,lre-"},
                    {60, 60, "%||,/,<:loss"},
                    {40, 40, "%,/,<:loss"},
                    {30, 30, "%,/,<:"}};
    char row[COLUMNS];
    for (size_t i = 0; i < sizeof of_items / sizeof *of_items; i++)
        for (int width = of_items[i].from; width <= of_items[i].to; width++) {
            one_bar(row, width, "step", 126000, 300000, facts);
            check_shape(row, of_items[i].shape);
        }
    /* the bar never exceeds the terminal's width */
    for (int width = 1; width <= 120; width++) {
        one_bar(row, width, "B", 99ull << 30, 1023ull << 30,
                "123 Mtokens/s\tand more than anybody wants to know");
        cr_assert_eq(strncmp(row, "  9%", width < 5 ? (size_t)width - 1 : 4), 0, "%s", row);
    }
    check_shape(row, "%||iB/iB[:<:,B/s]tokens/s,andmorethananybodywantstoknow");
}

enum { THREADS = 4, LINES = 200 };

static void *say_lines(void *arg)
{
    static int numbers;
    int number = __atomic_fetch_add(&numbers, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < LINES; i++) sgt_say(arg, "thread %d says %d", number, i);
    return NULL;
}

Test(progress, lines_from_many_threads_stay_whole)
{
    scoped_memory terminal *t = plug(90);
    pthread_t threads[THREADS];
    int next[THREADS] = {0}, lines = 0;
    sgt_progress *p = sgt_progress_new("it", 0);
    sgt_notice n = sgt_progress_notice(p, "sgt-x");
    let_time_pass();
    sgt_progress_update(p, 1, 1000, 0, "text");
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, say_lines, &n);
    for (uint64_t i = 1; i < 1000; i++) sgt_progress_update(p, i, 1000, 0, "text");
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    sgt_progress_end(p);
    lines = unplug(t);
    cr_assert_eq(lines, THREADS * LINES + 1);
    for (int i = 0; i < lines - 1; i++) {
        int thread, number, end = 0;
        sscanf(t->rows[i], "sgt-x: thread %d says %d%n", &thread, &number, &end);
        cr_assert(end && !t->rows[i][end] && number == next[thread]++, "line %d: %s", i,
                  t->rows[i]);
    }
    cr_assert_eq(strncmp(t->rows[lines - 1], " 99%|################### | 999/1,000 [", 38), 0, "%s",
                 t->rows[lines - 1]);
}

/* A line wider than the terminal is broken between words. It overwrites the bar completely. */
Test(progress, lines_are_wrapped_over_the_bar)
{
    scoped_memory terminal *t = plug(40);
    sgt_progress *p = sgt_progress_new("step", 0);
    sgt_notice n = sgt_progress_notice(p, "sgt-x");
    let_time_pass();
    sgt_progress_update(p, 1, 2, 0, "loss 5.7891");
    sgt_progress_line(p, "step 10: loss 5.7891, validation 5.8012, 640 tokens");
    sgt_say(&n, "%s", "a notice with more words than forty columns can hold");
    sgt_progress_update(p, 2, 2, 0, "loss 5.7890");
    sgt_progress_end(p);
    cr_assert_eq(unplug(t), 5);
    cr_assert_str_eq(t->rows[0], "step 10: loss 5.7891, validation 5.8012,");
    cr_assert_str_eq(t->rows[1], "  640 tokens");
    cr_assert_str_eq(t->rows[2], "sgt-x: a notice with more words than");
    cr_assert_str_eq(t->rows[3], "  forty columns can hold");
    cr_assert_eq(strncmp(t->rows[4], "100%", 4), 0, "%s", t->rows[4]);
}

/* Report steps 1 to `upto`, `seconds` apart, with output to a file, which gets a line every 10
 * seconds. keep_last: write a last line even if the run took less than 10 s. Return the lines,
 * malloc'd. */
static char *in_a_file(int seconds, int keep_last, int upto)
{
    char *text = calloc(1, 8192);
    scoped(FILE) *f = tmpfile();
    cr_assert(f && text);
    real_stderr = dup(STDERR_FILENO);
    dup2(fileno(f), STDERR_FILENO);
    sgt_progress *p = sgt_progress_new("step", 0);
    if (keep_last) sgt_progress_keep_last(p);
    ahead += 60; /* wait a minute before the work begins */
    sgt_progress_update(p, 0, 0, 0, NULL);
    for (int i = 1; i <= upto; i++) {
        ahead += seconds;
        sgt_progress_update(p, (uint64_t)i, 60, 0, "loss 5.7891");
    }
    sgt_progress_end(p);
    dup2(real_stderr, STDERR_FILENO);
    rewind(f);
    text[fread(text, 1, 8191, f)] = '\0';
    return text;
}

static size_t count_lines(const char *text)
{
    size_t n = 0;
    for (; *text; text++) n += *text == '\n';
    return n;
}

Test(progress, a_file_has_a_line_every_ten_seconds_and_a_last_one)
{
    scoped_memory char *text = in_a_file(1, 0, 57);
    cr_expect_eq(count_lines(text), 6, "%s", text);
    cr_expect(strstr(text, " 16% 10/60 [00:10<00:50, 1.00 step/s] loss 5.7891\n") == text, "%s",
              text);
    cr_expect(strstr(text, "\n 95% 57/60 [00:57<00:03, 1.00 step/s] loss 5.7891\n"), "%s", text);
    free(text);
    text = in_a_file(2, 1, 60); /* the last line, after two minutes, is not repeated */
    cr_expect_eq(count_lines(text), 12, "%s", text);
    cr_expect(strstr(text, "\n100% 60/60 [02:00<00:00, "), "%s", text);
    free(text);
    text = in_a_file(0, 1, 60);
    cr_expect(count_lines(text) == 1 && !strncmp(text, "100% 60/60 [00:00<00:00, ", 25), "%s",
              text);
    free(text);
    text = in_a_file(0, 0, 60); /* no line is due, and keep_last is not set */
    cr_expect_str_eq(text, "");
    free(text);
    text = in_a_file(0, 1, 0);
    cr_expect_str_eq(text, "");
}
