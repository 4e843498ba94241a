/* self_check.c: implements self_check.h. */
#include "tools/train/self_check.h"

#include <jansson.h>
#include <stdio.h>

#include "tools/cli/talk.h"
#include "train/device.h"
#include "train/paths.h"

static void print_table(const sgt_cuda_device *d, const sgt_cuda_versions *libraries,
                        const sgt_verdicts *v)
{
    printf("%s (sm_%d%d)", d->name, d->major, d->minor);
    for (size_t i = 0; i < libraries->count; i++)
        printf(", %s %s", libraries->of[i].library, libraries->of[i].version);
    putchar('\n');
    for (size_t i = 0; i < v->count; i++) {
        const sgt_checked *c = &v->of[i];
        printf("  %-33s  %-7s%s%s\n", c->path, c->verdict, *c->why ? "  " : "", c->why);
    }
}

static void print_json(const sgt_cuda_device *d, const sgt_cuda_versions *libraries,
                       const sgt_verdicts *v)
{
    json_t *paths = json_array(), *versions = json_object();
    for (size_t i = 0; i < libraries->count; i++)
        json_object_set_new(versions, libraries->of[i].library,
                            json_string(libraries->of[i].version));
    for (size_t i = 0; i < v->count; i++)
        json_array_append_new(paths, json_pack("{s:s, s:s, s:s}", "path", v->of[i].path, "verdict",
                                               v->of[i].verdict, "why", v->of[i].why));
    json_t *doc =
        json_pack("{s:s, s:o, s:o}", "device", d->name, "libraries", versions, "paths", paths);
    json_dumpf(doc, stdout, 0);
    putchar('\n');
    json_decref(doc);
}

int self_check(const sgt_program *program, const char *cache, const sgt_stop *stop, int json)
{
    sgt_error err, why;
    sgt_verdicts v = {0};
    sgt_cuda_versions libraries;
    sgt_cuda_device d;
    sgt_talk talk = {program->name, 0};
    const sgt_cuda_library *lib;
    sgt_paths_options o = {.program = "/proc/self/exe",
                           .cache = cache,
                           .fresh = 1,
                           .stop = stop,
                           .warning = sgt_talk_notice(&talk)};
    int rc = sgt_device_cuda(&lib, &d, &why), out = 0;
    if (rc < 0) sgt_fail(&err, rc, "--self-check: %s", why.text);
    else rc = sgt_paths_check(&v, lib, &o, &err);
    if (rc < 0) return sgt_report_failure(program, &err);
    lib->checks->versions(&libraries, &d);
    (json ? print_json : print_table)(&d, &libraries, &v);
    for (size_t i = 0; i < v.count; i++) out += !sgt_checked_good(&v.of[i]);
    if (out)
        fprintf(stderr, "%s: self-check: %d of %zu paths %s out\n", program->name, out, v.count,
                out == 1 ? "is" : "are");
    if (fflush(stdout) || ferror(stdout)) {
        fprintf(stderr, "%s: standard output: cannot write\n", program->name);
        return SGT_EXIT_FAILED;
    }
    return out ? SGT_EXIT_FAILED : SGT_EXIT_OK;
}
