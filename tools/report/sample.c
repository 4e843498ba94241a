/* sample.c: lets a run's newest checkpoint write a few words, if the model is not too large. They
 * show what its loss means. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tools/report/report.h"
#include "tools/report/words.h"

static void why_not(report_run *r, const char *fmt, ...) SGT_PRINTF(2, 3);
static void why_not(report_run *r, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (vasprintf(&r->no_sample, fmt, args) < 0) r->no_sample = NULL;
    va_end(args);
}

/* Return the length of a message without a final hint in parentheses. Such a hint names an option
 * of sgt-sample that sgt-report does not have. */
static size_t without_hint(const char *text)
{
    const char *hint = strrchr(text, '(');
    size_t n = strlen(text);
    return hint && hint > text && text[n - 1] == ')' ? (size_t)(hint - text - 1) : n;
}

int report_sample(report_run *r, const sgt_stop *stop, sgt_error *err)
{
    int rc = SGT_OK;
    if (!r->checkpoint) {
        why_not(r, "the run has no checkpoint yet");
    } else if (r->parameters > REPORT_SAMPLE_PARAMETERS) {
        why_not(r, "the model has more than %d million parameters (sgt-sample lets it write)",
                REPORT_SAMPLE_PARAMETERS / 1000000);
    } else {
        rc = report_words(&r->sample, r->checkpoint, REPORT_SAMPLE_TOKENS, stop, err);
        if (rc < 0 && rc != SGT_ESTOPPED)
            why_not(r, "%.*s", (int)without_hint(err->text), err->text);
    }
    return rc == SGT_ESTOPPED ? rc : SGT_OK;
}
