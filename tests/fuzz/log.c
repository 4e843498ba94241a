/* log.c: a resumed run keeps those whole lines of log.jsonl that belong to steps before the resumed
 * one, unchanged and in order, and removes all others. Opened again, the log stays the same. The
 * first byte of the input is the step at which the run resumes. */
#include <errno.h>
#include <sys/stat.h>

#include "tests/fuzz/files.h"
#include "train/run/run.h"

enum { MOST = 1 << 16 };

/* Open the log like a run that resumes at `step`. Store what the run keeps of it in `log`, and
 * return its length. */
static size_t taken(char *log, uint64_t step)
{
    sgt_run *r;
    sgt_error err;
    char *text;
    size_t n;
    must(sgt_run_open(&r, path_of("run"), step, 0, NULL, &err) == 0, "a run takes its folder");
    sgt_run_close(r);
    must(sgt_file_get(&text, &n, path_of("run/log.jsonl"), MOST, &err) == 0, "there is a log");
    memcpy(log, text, n);
    free(text);
    return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char log[MOST], again[MOST];
    if (size < 1 || size > MOST) return 0;
    uint64_t step = *data++ % 16;
    size--;
    must(mkdir(path_of("run"), 0700) == 0 || errno == EEXIST, "there is a place for a run");
    put_file("run/log.jsonl", data, size);
    size_t n = taken(log, step), lines = 0;
    const uint8_t *from = data;
    for (const char *line = log, *end; line < log + n; line = end + 1, lines++) {
        end = memchr(line, '\n', (size_t)(log + n - line));
        must(end != NULL, "what is kept are whole lines");
        size_t length = (size_t)(end + 1 - line);
        from = memmem(from, (size_t)(data + size - from), line, length);
        must(from != NULL, "each is a line of before, in the order of before");
        from += length;
    }
    must(lines <= step, "a step has one line at most");
    must(taken(again, step) == n && !memcmp(log, again, n), "opened again the log stays as it is");
    return 0;
}
