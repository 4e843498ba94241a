/* announce.c: prints what a run is about to do, before its first step. */
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "loader/base/cpu.h"
#include "train/trainer.h"

static void say_peak(const sgt_trainer *t)
{
    const sgt_backend *b = t->backend;
    if (b->peak_flops > 0 && b->datasheet_flops > 0)
        sgt_say(&t->o->detail,
                "%s: products of matrices reach %.3g TFLOP/s, measured (mfu), of %.3g on the "
                "datasheet (mfu_datasheet)",
                b->peak_name, b->peak_flops / 1e12, b->datasheet_flops / 1e12);
    else if (b->peak_flops > 0)
        sgt_say(&t->o->detail, "%s: products of matrices reach %.3g TFLOP/s, measured (mfu)",
                b->peak_name, b->peak_flops / 1e12);
}

/* Report the ranks. mpirun binds each rank to one core by default, so hint at that if it is so. */
static void say_ranks(const sgt_trainer *t)
{
    const sgt_ranks *r = t->o->ranks;
    char threads[64] = "";
    if (!r) return;
    int here = sgt_cpu_count(), all = (int)sysconf(_SC_NPROCESSORS_ONLN),
        n = sgt_trainer_threads(t);
    if (!t->cuda) snprintf(threads, sizeof threads, ", on %d thread%s", n, n == 1 ? "" : "s");
    sgt_say(&t->o->detail, "ranks: %u, each with %u of the %" PRIu64 " rows of a micro-step%s",
            r->size, t->info.local_batch, t->s->batch, threads);
    if (!t->cuda && r->sharing == 1 && here * (int)r->size < all)
        sgt_say(&t->o->notice,
                "ranks are bound to %d of %d cores: mpirun --bind-to none lets them share all",
                here, all);
}

/* Format n as 1,234,567 in buf. */
static const char *grouped(char *buf, uint64_t n)
{
    char digits[24];
    size_t len = (size_t)snprintf(digits, sizeof digits, "%" PRIu64, n), at = 0;
    for (size_t i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) buf[at++] = ',';
        buf[at++] = digits[i];
    }
    buf[at] = '\0';
    return buf;
}

static void say_model(const sgt_trainer *t)
{
    const sgt_model *m = &t->model;
    uint64_t n = sgt_model_parameters(m);
    char ranks[48] = "", size[48];
    if (t->o->ranks) snprintf(ranks, sizeof ranks, ", %u ranks", t->o->ranks->size);
    if (n < 1000000) grouped(size, n);
    else snprintf(size, sizeof size, "%.*g million", n < 1000000000 ? 3 : 4, (double)n / 1e6);
    sgt_say(&t->o->notice, "model: %ux%ux%u, %s parameters; %s on %s%s%s", m->layers, m->channels,
            m->heads, size, sgt_precision_words[t->s->step.precision],
            t->cuda ? "CUDA, " : "the CPU", t->cuda ? t->gpu : "", ranks);
    sgt_say(&t->o->detail,
            "model: %u layer%s, %u channels, %u head%s, vocabulary %u: %" PRIu64
            " parameters; %s kernels, %s",
            m->layers, m->layers == 1 ? "" : "s", m->channels, m->heads, m->heads == 1 ? "" : "s",
            m->vocab, n, t->backend->level, t->backend->library);
}

static void say_data(const sgt_trainer *t)
{
    char tokens[32], count[32];
    int examples = t->examples.count > 0;
    uint64_t n = examples ? t->info.windows_per_epoch : t->info.shards;
    sgt_say(&t->o->notice, "data: %s%s, %s token%s in %s %s%s%s%s", t->s->data,
            t->data_is_ours ? "/ (no --data was given)" : "", grouped(tokens, t->info.tokens),
            t->info.tokens == 1 ? "" : "s", grouped(count, n), examples ? "completion" : "shard",
            n == 1 ? "" : "s", *t->unevaluated ? "; " : "", t->unevaluated);
}

/* Report what packed rows hold, and what they leave out. */
static void say_packing(const sgt_trainer *t)
{
    sgt_loader_packing is;
    char rows[32];
    if (!t->train || sgt_loader_get_packing(t->train, &is, NULL) < 0) return;
    sgt_say(&t->o->notice,
            "packed: %s row%s an epoch, %.3g documents each; %.3g %% of the tokens are cropped",
            grouped(rows, is.rows), is.rows == 1 ? "" : "s", (double)is.documents / (double)is.rows,
            100 * (double)is.cropped / (double)is.tokens);
}

/* Report the steps, the learning rate and the cost of the run. */
static void say_plan(const sgt_trainer *t)
{
    const sgt_config *s = t->s;
    char steps[96], accum[32] = "", epochs[48] = "", after[64] = "", then[64] = ", constant";
    uint64_t left = s->steps - t->state.step, rows = s->batch * s->accum,
             n = sgt_model_parameters(&t->model);
    double passes = (double)(s->steps * rows) / (double)t->info.windows_per_epoch;
    double tokens = (double)(s->steps * s->accum) * (double)(s->batch * s->seq);
    if (!t->state.step)
        snprintf(steps, sizeof steps, "%" PRIu64 " step%s", left, left == 1 ? "" : "s");
    else if (left == 1) snprintf(steps, sizeof steps, "step %" PRIu64, s->steps);
    else
        snprintf(steps, sizeof steps, "steps %" PRIu64 " to %" PRIu64, t->state.step + 1, s->steps);
    if (s->accum > 1) snprintf(accum, sizeof accum, "%" PRIu64 " x ", s->accum);
    if (!s->overfit && passes >= .005)
        snprintf(epochs, sizeof epochs, ", %.*g epoch%s", passes < 99.5 ? 2 : 6, passes,
                 passes == 1 ? "" : "s");
    if (s->warmup)
        snprintf(after, sizeof after, " after %" PRIu64 " step%s of warm-up", s->warmup,
                 s->warmup == 1 ? "" : "s");
    if (s->schedule != SGT_CONSTANT)
        snprintf(then, sizeof then, ", %s to %.3g", sgt_schedule_words[s->schedule], s->min_lr);
    sgt_say(&t->o->notice,
            "plan: %s of %s%" PRIu64 " x %" PRIu64 " tokens%s; %slearning rate %.3g%s%s%s", steps,
            accum, s->batch, s->seq, epochs,
            s->step.optim.kind == SGT_MUON ? "Muon and AdamW, " : "", s->lr,
            t->lr_is_ours ? " (auto)" : "", after, then);
    sgt_say(&t->o->detail,
            "cost: %.3g PF-days in all (6 N D, N = %.4g parameters, D = %.4g tokens)",
            sgt_pf_days(n, tokens), (double)n, tokens);
    if (s->overfit)
        sgt_say(&t->o->notice,
                "--overfit-batch: every step trains on the %" PRIu64
                " rows of step 0, to see whether the loss can fall: no model to keep comes of it",
                rows);
}

/* Report the share of each data set, if there are several. */
static void say_sets(const sgt_trainer *t)
{
    for (uint32_t i = 0; t->info.sets > 1 && i < t->info.sets; i++) {
        sgt_loader_set_info set;
        sgt_loader_get_set(t->train, i, &set);
        sgt_say(&t->o->detail,
                "data: %s: %.4g %% of the rows%s; %" PRIu64 " tokens, %" PRIu64 " rows an epoch",
                set.path, 100 * set.share, set.weight > 0 ? "" : ", by size", set.tokens,
                set.windows_per_epoch);
    }
}

void sgt_trainer_announce(const sgt_trainer *t)
{
    say_model(t);
    if (t->state.step >= t->s->steps) return;
    say_ranks(t);
    say_peak(t);
    say_data(t);
    say_sets(t);
    say_packing(t);
    say_plan(t);
}
