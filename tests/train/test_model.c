/* test_model.c: shapes, and GPT-2's initial parameters. Names and the layout of the
 * parameters are tested by the runs of test_run.c, which start from files of transformers. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/expect.h"
#include "tests/train/fixture.h"
#include "train/model/model.h"

Test(model, published_sizes)
{
    static const struct {
        const char *name;
        uint64_t parameters;
    } known[] = {{"gpt2", 124439808},
                 {"gpt2-medium", 354823168},
                 {"gpt2-large", 774030080},
                 {"gpt2-xl", 1557611200}};
    for (size_t i = 0; i < 4; i++) {
        sgt_model m;
        must(sgt_model_named(&m, known[i].name, why));
        cr_expect_eq(sgt_model_parameters(&m), known[i].parameters, "%s has %llu", known[i].name,
                     (unsigned long long)sgt_model_parameters(&m));
    }
}

Test(model, shapes_as_typed)
{
    static const struct {
        const char *name, *message;
    } bad[] = {
        {"gpt3", "--model gpt3: not gpt2, gpt2-medium, gpt2-large, gpt2-xl or "
                 "LAYERSxCHANNELSxHEADS such as 4x256x4"},
        {"4 x256x4", NULL},
        {"+4x256x4", NULL},
        {"", NULL},
        {"99999999999x4x4", NULL},
        {"4x256x3", "--model 4x256x3: 3 heads do not divide 256 channels"},
        {"0x256x4", "--model 0x256x4: 0 layers: must be 1 to 1024"},
        {"4x256x0", "--model 4x256x0: 0 heads do not divide 256 channels"},
        {"4x99999x1", "--model 4x99999x1: 99999 channels: must be 1 to 32768"},
    };
    sgt_model m;
    sgt_error err;
    must(sgt_model_named(&m, "3x52x4", why));
    cr_expect(m.layers == 3 && m.channels == 52 && m.heads == 4 && m.vocab == 50257 &&
              m.positions == 1024);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(sgt_model_named(&m, bad[i].name, &err), SGT_EUSAGE, "'%s' was taken",
                     bad[i].name);
        if (bad[i].message) cr_expect_str_eq(err.text, bad[i].message);
    }
}

static float *initial(const sgt_model *m, uint64_t seed, int threads)
{
    scoped(sgt_backend) *b = NULL;
    sgt_backend_options o = {.model = *m, .batch = 1, .seq = 4, .threads = threads};
    must(sgt_cpu_backend_open(&b, &o, why));
    must(sgt_init_parameters(b, m, seed, threads, why));
    float *p = flat_state(b, m, SGT_PARAMETERS);
    return p;
}

/* Check n draws of a normal distribution: their first four moments differ from the exact ones by at
 * most four standard errors. */
static void check_normal(const float *x, size_t n, double sigma, const char *name)
{
    double mean = 0, m2 = 0, m3 = 0, m4 = 0, count = (double)n;
    for (size_t i = 0; i < n; i++) mean += (double)x[i] / count;
    for (size_t i = 0; i < n; i++) {
        double d = ((double)x[i] - mean) / sigma;
        m2 += d * d / count;
        m3 += d * d * d / count;
        m4 += d * d * d * d / count;
    }
    cr_expect_lt(fabs(mean) / sigma * sqrt(count), 4, "%s: mean %g", name, mean);
    cr_expect_lt(fabs(m2 - 1) * sqrt(count / 2), 4, "%s: variance %g of what it should be", name,
                 m2);
    cr_expect_lt(fabs(m3) * sqrt(count / 15), 4, "%s: third moment %g", name, m3);
    cr_expect_lt(fabs(m4 - 3) * sqrt(count / 96), 4, "%s: fourth moment %g", name, m4);
}

Test(model, initial_parameters_are_gpt2s)
{
    sgt_model m;
    must(sgt_model_named(&m, "2x64x4", why));
    m.vocab = 1000;
    m.positions = 128;
    scoped_memory float *p = initial(&m, 7, 2);
    for (size_t i = 0; i < sgt_model_tensors(&m); i++) {
        sgt_tensor t;
        sgt_model_tensor(&m, i, &t);
        int projection = strstr(t.name, "c_proj.weight") != NULL;
        if (t.dims == 2)
            check_normal(p + t.offset, t.count, projection ? 0.02 / sqrt(4) : 0.02, t.name);
        float want = strstr(t.name, "ln_") && strstr(t.name, ".weight") ? 1 : 0;
        for (size_t j = 0; t.dims == 1 && j < t.count; j++)
            cr_assert_eq(p[t.offset + j], want, "%s", t.name);
    }
}

Test(model, initial_parameters_depend_on_the_seed_alone)
{
    sgt_model m;
    must(sgt_model_named(&m, "1x32x2", why));
    m.positions = 8;
    size_t bytes = sgt_model_floats(&m) * sizeof(float);
    scoped_memory float *one = initial(&m, 7, 1), *three = initial(&m, 7, 3),
                        *other = initial(&m, 8, 1);
    cr_expect(memcmp(one, three, bytes) == 0, "3 threads drew other numbers than 1");
    cr_expect(memcmp(one, other, bytes) != 0, "another seed drew the same numbers");
    /* A parameter's initial value depends only on its tensor and its position there, so wte's first
     * row is the same for any vocabulary. */
    m.vocab = 100;
    scoped_memory float *fewer = initial(&m, 7, 1);
    cr_expect(memcmp(one, fewer, 100 * 32 * sizeof(float)) == 0);
}
