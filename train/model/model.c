/* model.c: computes the names and shapes of the model's tensors, and their offsets in the array
 * that contains all tensors. */
#include "train/model/model.h"

#include <stdio.h>
#include <string.h>

/* alignment of a tensor's first element, in floats: 64 bytes, the size of a cache line and of an
 * AVX-512 vector */
#define ALIGN_FLOATS 16

/* Maximum dimensions of a model, far above those of the largest GPT-2 (48 layers, 1,600 channels).
 * With these maximums, products of dimensions cannot overflow 64 bits. */
#define MAX_LAYERS 1024
#define MAX_CHANNELS 32768
#define MAX_POSITIONS (1u << 20)

static const struct {
    const char *name;
    uint32_t layers, channels, heads;
} named[] = {{"gpt2", 12, 768, 12},
             {"gpt2-medium", 24, 1024, 16},
             {"gpt2-large", 36, 1280, 20},
             {"gpt2-xl", 48, 1600, 25}};

static const char *const block_names[SGT_BLOCK_TENSORS] = {
    "ln_1.weight",        "ln_1.bias",        "attn.c_attn.weight", "attn.c_attn.bias",
    "attn.c_proj.weight", "attn.c_proj.bias", "ln_2.weight",        "ln_2.bias",
    "mlp.c_fc.weight",    "mlp.c_fc.bias",    "mlp.c_proj.weight",  "mlp.c_proj.bias"};

/* Parse LAYERSxCHANNELSxHEADS. Return 0, or -1 if `s` has a different form. sscanf also accepts
 * signs and white space, so first check that `s` consists of digits and "x". */
static int parse_shape(sgt_model *m, const char *s)
{
    int end = 0;
    if (strspn(s, "0123456789x") != strlen(s)) return -1;
    const int n = sscanf(s, "%9ux%9ux%9u%n", &m->layers, &m->channels, &m->heads, &end);
    return n == 3 && !s[end] ? 0 : -1;
}

int sgt_model_named(sgt_model *m, const char *name, sgt_error *err)
{
    *m = (sgt_model){.vocab = 50257, .positions = 1024, .gelu = SGT_GELU_TANH, .eps = 1e-5f};
    for (size_t i = 0; i < sizeof named / sizeof *named; i++)
        if (strcmp(name, named[i].name) == 0) {
            m->layers = named[i].layers;
            m->channels = named[i].channels;
            m->heads = named[i].heads;
            return SGT_OK;
        }
    if (parse_shape(m, name) < 0)
        return sgt_fail(err, SGT_EUSAGE,
                        "--model %s: not gpt2, gpt2-medium, gpt2-large, gpt2-xl or "
                        "LAYERSxCHANNELSxHEADS such as 4x256x4",
                        name);
    char what[64];
    snprintf(what, sizeof what, "--model %.40s", name);
    return sgt_model_check(m, what, err);
}

int sgt_model_check(const sgt_model *m, const char *what, sgt_error *err)
{
    if (m->layers < 1 || m->layers > MAX_LAYERS)
        return sgt_fail(err, SGT_EUSAGE, "%s: %u layers: must be 1 to %d", what, m->layers,
                        MAX_LAYERS);
    if (m->channels < 1 || m->channels > MAX_CHANNELS)
        return sgt_fail(err, SGT_EUSAGE, "%s: %u channels: must be 1 to %d", what, m->channels,
                        MAX_CHANNELS);
    if (m->heads < 1 || m->channels % m->heads)
        return sgt_fail(err, SGT_EUSAGE, "%s: %u heads do not divide %u channels", what, m->heads,
                        m->channels);
    if (m->vocab < 1 || m->vocab > SGT_MOST_IDS)
        return sgt_fail(err, SGT_EUSAGE, "%s: a vocabulary of %u ids: must be 1 to %u", what,
                        m->vocab, SGT_MOST_IDS);
    if (m->positions < 1 || m->positions > MAX_POSITIONS)
        return sgt_fail(err, SGT_EUSAGE, "%s: %u positions: must be 1 to %u", what, m->positions,
                        MAX_POSITIONS);
    if (!(m->eps > 0 && m->eps < 1))
        return sgt_fail(err, SGT_EUSAGE,
                        "%s: LayerNorm's epsilon is %g: must be above 0 and below 1", what,
                        (double)m->eps);
    return SGT_OK;
}

size_t sgt_model_tensors(const sgt_model *m)
{
    return 2 + (size_t)SGT_BLOCK_TENSORS * m->layers + 2 + (m->untied != 0);
}

static void block_shape(const sgt_model *m, size_t which, uint32_t dim[2])
{
    uint32_t C = m->channels;
    dim[1] = 1;
    switch (which) {
    case SGT_QKV_W: dim[0] = C, dim[1] = 3 * C; break;
    case SGT_QKV_B: dim[0] = 3 * C; break;
    case SGT_PROJ_W: dim[0] = C, dim[1] = C; break;
    case SGT_FC_W: dim[0] = C, dim[1] = 4 * C; break;
    case SGT_FC_B: dim[0] = 4 * C; break;
    case SGT_FCPROJ_W: dim[0] = 4 * C, dim[1] = C; break;
    default: dim[0] = C; break; /* LayerNorm weights and biases, and other biases with C elements */
    }
}

static int is_matrix(size_t which)
{
    return which == SGT_QKV_W || which == SGT_PROJ_W || which == SGT_FC_W || which == SGT_FCPROJ_W;
}

static size_t padded(size_t count)
{
    return (count + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static size_t block_offset(const sgt_model *m, size_t which)
{
    size_t at = 0;
    for (size_t k = 0; k < which; k++) {
        uint32_t d[2];
        block_shape(m, k, d);
        at += padded((size_t)d[0] * d[1]);
    }
    return at;
}

void sgt_model_tensor(const sgt_model *m, size_t index, sgt_tensor *t)
{
    size_t C = m->channels, wte = padded(m->vocab * C), wpe = padded(m->positions * C);
    size_t block = block_offset(m, SGT_BLOCK_TENSORS),
           last = 2 + (size_t)SGT_BLOCK_TENSORS * m->layers;
    *t = (sgt_tensor){.dims = 1, .dim = {m->channels, 1}};
    if (index < 2) {
        snprintf(t->name, sizeof t->name, "%s", index ? "wpe.weight" : "wte.weight");
        t->dims = 2;
        t->dim[0] = index ? m->positions : m->vocab;
        t->dim[1] = m->channels;
        t->offset = index ? wte : 0;
    } else if (index == last + 2) {
        snprintf(t->name, sizeof t->name, "lm_head.weight");
        t->dims = 2;
        t->dim[0] = m->vocab;
        t->dim[1] = m->channels;
        t->offset = wte + wpe + m->layers * block + 2 * padded(C);
    } else if (index >= last) {
        snprintf(t->name, sizeof t->name, "%s", index == last ? "ln_f.weight" : "ln_f.bias");
        t->offset = wte + wpe + m->layers * block + (index - last) * padded(C);
    } else {
        size_t layer = (index - 2) / SGT_BLOCK_TENSORS, which = (index - 2) % SGT_BLOCK_TENSORS;
        snprintf(t->name, sizeof t->name, "h.%zu.%s", layer, block_names[which]);
        block_shape(m, which, t->dim);
        t->dims = is_matrix(which) ? 2 : 1;
        t->offset = wte + wpe + layer * block + block_offset(m, which);
    }
    t->count = (size_t)t->dim[0] * t->dim[1];
}

int sgt_model_part(const sgt_model *m, size_t index, size_t first, size_t count, sgt_tensor *t,
                   sgt_error *err)
{
    if (index >= sgt_model_tensors(m))
        return sgt_fail(err, SGT_EUSAGE, "backend: there is no tensor %zu", index);
    sgt_model_tensor(m, index, t);
    if (first > t->count || count > t->count - first)
        return sgt_fail(err, SGT_EUSAGE, "backend: numbers %zu to %zu of %s: it has only %zu",
                        first, first + count, t->name, t->count);
    return SGT_OK;
}

size_t sgt_model_floats(const sgt_model *m)
{
    sgt_tensor t;
    sgt_model_tensor(m, sgt_model_tensors(m) - 1, &t);
    return t.offset + padded(t.count);
}

uint64_t sgt_model_parameters(const sgt_model *m)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < sgt_model_tensors(m); i++) {
        sgt_tensor t;
        sgt_model_tensor(m, i, &t);
        sum += t.count;
    }
    return sum;
}
