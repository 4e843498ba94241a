/* subcommand.c: parses options, measures, and prints the results of a subcommand (subcommand.h). */
#include "tools/bench/subcommand.h"

#include <stdio.h>
#include <stdlib.h>

#include "tools/cli/process.h"
#include "tools/cli/talk.h"

static int print_json(json_t *top, int digits, sgt_error *err)
{
    if (!top) return sgt_fail_memory(err, NULL);
    int bad = json_dumpf(top, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(digits)) < 0 ||
              putchar('\n') == EOF;
    json_decref(top);
    return bad ? sgt_fail_errno(err, "standard output") : SGT_OK;
}

static int print(const bench_subcommand *s, void *bench, sgt_error *err)
{
    const bench_output *o = s->output;
    if (o->json) return print_json(s->json(bench), s->digits ? s->digits : 6, err);
    if (!o->quiet) s->show(bench);
    return SGT_OK;
}

int bench_subcommand_run(const bench_subcommand *s, int argc, char **argv)
{
    sgt_error err, why;
    int first = sgt_options_parse(s->program, argc, argv), rc;
    if (first < argc && !s->operands)
        sgt_usage(s->program, "%s: no operands here, only options", argv[first]);
    sgt_talk talk = {s->program->name, s->output->quiet};
    void *bench = calloc(1, s->size);
    if (bench) {
        bench_call call = {argv + first, (size_t)(argc - first), sgt_talk_notice(&talk),
                           sgt_catch_signals()};
        rc = s->measure(bench, &call, &err);
        int printed = SGT_OK;
        if (s->worth ? s->worth(bench, rc) : rc == SGT_OK) printed = print(s, bench, &why);
        if (rc >= 0 && printed == SGT_OK && (fflush(stdout) == EOF || ferror(stdout)))
            printed = sgt_fail_errno(&why, "standard output");
        if (printed < 0) rc = printed, err = why;
        if (s->release) s->release(bench);
        free(bench);
    } else rc = sgt_fail_memory(&err, NULL);
    if (rc == SGT_EUSAGE) sgt_usage(s->program, "%s", err.text);
    return rc < 0 ? sgt_report_failure(s->program, &err) : SGT_EXIT_OK;
}
