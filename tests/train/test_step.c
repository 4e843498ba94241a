/* test_step.c: options that the CPU backend refuses. tests/step compares its steps with PyTorch,
 * and with steps that are divided in other ways. */
#include <string.h>
#include <sys/resource.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"

/* A model that is too large is refused before memory is used. Otherwise the system would kill the
 * process. */
Test(step, what_does_not_fit_costs_nothing)
{
    sgt_backend *b;
    struct rusage before, after;
    sgt_backend_options o = {.batch = 8, .seq = 512, .threads = 1};
    must(sgt_model_named(&o.model, "1024x32768x16", why));
    getrusage(RUSAGE_SELF, &before);
    expect_failure_about(sgt_cpu_backend_open(&b, &o, why), SGT_ENOMEM,
                         "the model and its step need ");
    getrusage(RUSAGE_SELF, &after);
    cr_expect_lt(after.ru_maxrss - before.ru_maxrss, 100 << 10, "%ld KiB were touched",
                 after.ru_maxrss - before.ru_maxrss);
}
