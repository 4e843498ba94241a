/* test_paths.c: compare verdicts of the self-check with those of a checkpoint. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "train/paths.h"

static const sgt_verdicts here = {
    3,
    {{"products", "ok", ""}, {"attention cudnn", "absent", "no cuDNN"}, {"NCCL", "hung", "late"}}};

Test(paths, written_verdicts_do_not_differ)
{
    char then[12], *json = sgt_paths_json(&here);
    cr_expect_null(sgt_paths_differ(&here, json, then));
    free(json);
}

Test(paths, differ)
{
    static const struct {
        const char *json, *path, *then;
    } cases[] = {
        {"{\"products\": \"wrong\", \"NCCL\": \"hung\"}", "products", "wrong"},
        {"{\"attention cudnn\": \"ok\", \"NCCL\": \"hung\"}", "attention cudnn", "ok"},
        {"{\"attention cudnn\": \"absent\", \"NCCL\": \"crashed\"}", "NCCL", "crashed"},
        /* a checkpoint without results of a self-check: every kernel counts as ok in it, so that
         * one which is not ok here differs */
        {"{}", "NCCL", "ok"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char then[12];
        const sgt_checked *c = sgt_paths_differ(&here, cases[i].json, then);
        cr_assert_not_null(c, "case %zu", i);
        cr_expect_str_eq(c->path, cases[i].path);
        cr_expect_str_eq(then, cases[i].then);
    }
}
