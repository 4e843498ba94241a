/* setup.c: prepares a run from its settings, and reports what the run will do. It checks the
 * options, then the device, the run directory, the data and the model. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include <xxhash.h>

#include "train/advice.h"
#include "loader/base/cpu.h"
#include "loader/base/file.h"
#include "loader/base/format.h"
#include "loader/base/ids.h"
#include "train/device.h"
#include "train/memory/memory.h"
#include "train/paths.h"
#include "train/trainer.h"

#define POSITIONS 1024                 /* longest context, as in GPT-2 */
#define MOST_OPTIONS ((size_t)1 << 20) /* most bytes of options.json */

/* ---- options and device ---- */

/* Broadcast the string *text of rank 0, which may be NULL, to all ranks. On other ranks, *text is
 * allocated with malloc. */
static int share_text(const sgt_trainer *t, char **text, sgt_error *err)
{
    sgt_ranks *r = t->o->ranks;
    uint64_t n = *text ? strlen(*text) + 1 : 0;
    if (!sgt_ranks_connected(r)) return SGT_OK;
    int rc = r->broadcast(r, &n, sizeof n, 0, err);
    if (rc < 0 || !n) return rc;
    if (r->rank && !(*text = malloc(n))) return sgt_fail_memory(err, t->o->run);
    return r->broadcast(r, *text, n, 0, err);
}

/* Check that this rank has the same options as rank 0, and the same data and checkpoint if these
 * are already open. Ranks that differ would train differently, or wait for each other forever. */
static int compare_ranks(const sgt_trainer *t, sgt_error *err)
{
    sgt_ranks *r = t->o->ranks;
    /* if --init names a run, compare only the name of the checkpoint in it, because the path of the
     * run may differ between machines */
    const char *step = t->init && strcmp(t->init, t->s->init) != 0 ? strrchr(t->init, '/') : NULL;
    uint64_t mine[] = {(uint64_t)t->o->resume, t->state.data_hash, t->val != NULL, t->state.step,
                       XXH3_64bits_withSeed(step, step ? strlen(step) : 0,
                                            sgt_model_parameters(&t->model))},
             first[sizeof mine / sizeof *mine];
    char *options = NULL;
    if (!sgt_ranks_connected(r)) return SGT_OK;
    memcpy(first, mine, sizeof mine);
    int rc = r->broadcast(r, first, sizeof first, 0, err);
    if (rc == SGT_OK && memcmp(first, mine, sizeof mine) != 0)
        return sgt_fail(err, SGT_EUSAGE,
                        "--resume, --init, data or checkpoint: not that of rank 0 (run the same "
                        "command on all ranks)");
    if (rc == SGT_OK && !r->rank && !(options = sgt_config_json(t->s)))
        rc = sgt_fail_memory(err, "options");
    if (rc == SGT_OK) rc = share_text(t, &options, err);
    if (rc == SGT_OK) rc = sgt_config_same_ranks(t->s, options, err);
    free(options);
    return rc;
}

/* Copy changed options from options.json to t->s. If the run was killed after its options were
 * changed by a resume, and before its next save, the checkpoint still has the old options. */
static int merge_changed(const sgt_trainer *t, sgt_merge which, sgt_error *err)
{
    char path[SGT_PATH], *text = NULL;
    size_t n;
    if (sgt_file_gone(sgt_path(path, t->o->run, "options.json"))) return SGT_OK;
    int rc = sgt_file_get(&text, &n, path, MOST_OPTIONS, err);
    if (rc == SGT_OK) rc = sgt_config_merge(t->s, text, path, which, err);
    free(text);
    return rc;
}

/* Decide how many threads a resumed run uses. s->threads is the number stored in the checkpoint,
 * `own` the number from this call's options. If --threads was not given, the stored number is kept,
 * unless it exceeds the default number. In that case fewer cores are available than before, so the
 * default is used. */
static void keep_threads(const sgt_trainer *t, uint64_t own)
{
    sgt_config *s = t->s;
    const uint64_t kept = s->threads;
    if (kept == own) return;
    s->threads = SGT_DEFAULT_COUNT; /* for sgt_trainer_threads */
    if (kept <= (uint64_t)sgt_trainer_threads(t)) s->threads = kept;
    /* mark the number of threads as set by the user, because options.json stores only such a
     * number */
    s->given[SGT_SET_THREADS] = 1;
}

/* Find the checkpoint from which to resume, and read its state and options. Rank 0 chooses the
 * checkpoint and broadcasts the path to the other ranks. */
static int resume_from(sgt_trainer *t, sgt_error *err)
{
    int rc = sgt_trainer_writes(t) ? sgt_run_newest(&t->from, t->o->run, 1, &t->o->warning, err)
                                   : SGT_OK;
    if (rc == SGT_OK && sgt_trainer_writes(t) && !t->from && !t->o->or_start) {
        char path[SGT_PATH];
        rc = sgt_fail(err, SGT_EUNSUPPORTED,
                      "%s: no checkpoint to resume from%s (--resume-or-start starts at step 0)",
                      t->o->run, access(t->o->run, F_OK) < 0 ? ": there is no such run" : "");
        /* no checkpoint was found although "latest" exists: another process that writes to this run
         * may be removing checkpoints */
        if (!sgt_file_gone(sgt_path(path, t->o->run, "latest")))
            rc = sgt_run_owned(t->o->run, rc, err);
    }
    if (rc < 0 || (rc = share_text(t, &t->from, err)) < 0) return rc;
    if (!t->from) {
        sgt_say(&t->o->notice, "%s has no checkpoint to resume from: starting at step 0",
                t->o->run);
        return SGT_OK;
    }
    const uint64_t threads = t->s->threads;
    rc = sgt_checkpoint_read(&t->state, t->from, err);
    if (rc == SGT_OK) rc = sgt_config_merge(t->s, t->state.options, t->from, SGT_MERGE_KEPT, err);
    if (rc == SGT_OK) rc = merge_changed(t, SGT_MERGE_CHANGED, err);
    keep_threads(t, threads);
    return rc;
}

/* Find out whether CUDA can be used, and report the device if --device is auto. If a GPU exists but
 * cannot be used, the report is a notice, otherwise only a detailed message. */
static int choose_device(sgt_trainer *t, sgt_error *err)
{
    sgt_error why;
    sgt_cuda_device d = {0};
    const sgt_cuda_library *cuda;
    if (t->s->device == SGT_DEVICE_CPU) return SGT_OK;
    /* if t->dry is set (estimate memory only), --device cuda needs the library but no GPU */
    int rc = t->dry && t->s->device == SGT_DEVICE_CUDA ? sgt_device_open(&cuda, &why)
                                                       : sgt_device_cuda(&cuda, &d, &why);
    if (rc == SGT_OK) {
        t->cuda = cuda;
        if (!t->dry) snprintf(t->gpu, sizeof t->gpu, "%s", d.name);
    }
    if (t->s->device == SGT_DEVICE_CUDA)
        return rc < 0 ? sgt_fail(err, SGT_EUNSUPPORTED, "--device cuda: %s (--device cpu works)",
                                 why.text)
                      : SGT_OK;
    if (rc < 0)
        sgt_say(access("/dev/nvidiactl", F_OK) < 0 ? &t->o->detail : &t->o->notice,
                "device: the CPU (%s)", why.text);
    else
        sgt_say(&t->o->detail, "device: CUDA, %s (sm_%d%d, %.0f GiB)", d.name, d.major, d.minor,
                (double)d.memory / 0x1p30);
    return SGT_OK;
}

/* Decide the device and the precision. A run in TF32 that is resumed on a CPU continues in fp32,
 * because a CPU does not support TF32. If the user did not set a precision, it is bf16 on devices
 * that multiply bfloat16 in hardware. */
static int decide_device(sgt_trainer *t, sgt_error *err)
{
    sgt_config *s = t->s;
    int rc = choose_device(t, err);
    if (rc < 0) return rc;
    int moved = t->from && strcmp(t->state.device, t->cuda ? "cuda" : "cpu") != 0;
    if (moved &&
        ((rc = merge_changed(t, SGT_MERGE_MOVED, err)) < 0 || (rc = sgt_config_check(s, err)) < 0))
        return rc;
    if (moved && !t->cuda && !s->given[SGT_SET_PRECISION] &&
        s->step.precision == SGT_PRECISION_TF32) {
        sgt_say(&t->o->warning,
                "continuing in fp32 on the CPU, but the checkpoint is from tf32 on CUDA");
        s->step.precision = SGT_PRECISION_FP32;
    }
    return sgt_config_take_device(s, t->cuda != NULL, t->cuda || sgt_gemm_has_bf16(), err);
}

/* Check that the batch size is divisible by the number of ranks, and that either all ranks use CUDA
 * or none does. */
static int check_ranks(const sgt_trainer *t, sgt_error *err)
{
    sgt_ranks *r = t->o->ranks;
    double cuda = t->cuda != NULL;
    if (!r) return SGT_OK;
    if (t->s->batch != SGT_DEFAULT_COUNT && t->s->batch % r->size)
        return sgt_fail(err, SGT_EUSAGE,
                        "--batch-size %" PRIu64
                        ": not divisible by the %u ranks (the next that is: %" PRIu64 ")",
                        t->s->batch, r->size, (t->s->batch / r->size + 1) * r->size);
    if (!sgt_ranks_connected(r)) return SGT_OK;
    int rc = r->sum(r, &cuda, 1, err);
    if (rc == SGT_OK && cuda > 0 && cuda < r->size)
        rc = sgt_fail(err, SGT_EUNSUPPORTED,
                      "--device auto: only %.0f of %u ranks can use CUDA (--device cuda prints why "
                      "the others cannot)",
                      cuda, r->size);
    return rc;
}

/* Return an error if the run directory contains a data set, or if it contains checkpoints and
 * neither --resume nor --force was given. */
static int refuse_existing(const sgt_trainer *t, sgt_error *err)
{
    char *dir, work[SGT_PATH];
    if (sgt_trainer_writes(t) &&
        (sgt_trainer_has_shards(t->o->run) || !sgt_file_gone(sgt_path(work, t->o->run, ".work"))))
        return sgt_fail(
            err, SGT_EUNSUPPORTED,
            "%s: this folder holds the output of sgt-tokenize, not a run (use a different --run)",
            t->o->run);
    if (t->o->resume || t->o->force || !sgt_trainer_writes(t)) return SGT_OK;
    int rc = sgt_run_newest(&dir, t->o->run, 0, NULL, err);
    /* if there is no complete checkpoint, search again and warn about incomplete ones, because this
     * run will remove them */
    if (rc == SGT_OK && !dir) rc = sgt_run_newest(&dir, t->o->run, 0, &t->o->warning, err);
    if (rc == SGT_OK && dir)
        rc = sgt_fail(
            err, SGT_EUNSUPPORTED,
            "%s: this run already has %s (--resume continues from it, --force starts over)",
            t->o->run, strrchr(dir, '/') + 1);
    free(dir);
    return rc < 0 ? sgt_run_owned(t->o->run, rc, err) : rc;
}

/* ---- model ---- */

int sgt_trainer_read_shape(sgt_trainer *t, sgt_error *err)
{
    const char *init = t->from ? NULL : t->s->init;
    int rc = init ? sgt_run_find(&t->init, init, &t->o->warning, err) : SGT_OK;
    const char *dir = t->from ? t->from : t->init;
    return rc == SGT_OK && dir ? sgt_checkpoint_shape(&t->model, dir, err) : rc;
}

int sgt_trainer_model(const sgt_trainer *t, const sgt_loader_info *data, sgt_model *m,
                      sgt_error *err)
{
    const sgt_config *s = t->s;
    *m = t->model;
    if (!t->from && !s->init) {
        int rc = sgt_model_named(m, s->model, err);
        if (rc < 0) return rc;
        /* the shards do not state the size of the vocabulary: SGT_MOST_IDS is only the loader's
         * limit for 4-byte ids */
        if (data->vocab == SGT_MOST_IDS && data->eot < 0)
            return sgt_fail(err, SGT_EUNSUPPORTED,
                            "--data %s: the vocabulary size is unknown, because the shards have no "
                            "header (tokenize with sgt-tokenize, or use --init DIR)",
                            s->data);
        m->vocab = data->vocab;
        m->untied = s->no_tie != 0;
        if (s->seq > POSITIONS) m->positions = (uint32_t)s->seq;
    }
    if (s->seq > m->positions)
        return sgt_fail(err, SGT_EUSAGE,
                        "--seq-len %" PRIu64
                        ": the model has only %u positions (use a shorter --seq-len)",
                        s->seq, m->positions);
    if (s->gelu != SGT_DEFAULT_WORD && !t->from) m->gelu = (sgt_gelu_kind)s->gelu;
    if (s->no_tie && !m->untied && s->init)
        return sgt_fail(err, SGT_EUSAGE,
                        "--no-tie: the model of --init %s has a tied head (leave out --no-tie)",
                        s->init);
    return SGT_OK;
}

/* ---- steps and learning rate ---- */

double sgt_trainer_steps(const sgt_config *s, const sgt_model *m, uint64_t windows, uint64_t rows)
{
    if (s->steps != SGT_DEFAULT_COUNT) return (double)s->steps;
    if (s->budget > 0)
        return floor(s->budget / sgt_pf_days(sgt_model_parameters(m), (double)(rows * s->seq)));
    return windows ? fmax(1, ceil(s->epochs * (double)windows / (double)rows)) : HUGE_VAL;
}

/* Set s->steps from --steps, --compute-budget or --epochs. If a compute budget is set, report how
 * it determines the number of steps (see sgt_pf_days). */
static int decide_steps(sgt_trainer *t, sgt_error *err)
{
    sgt_config *s = t->s;
    const double steps =
        sgt_trainer_steps(s, &t->model, t->info.windows_per_epoch, s->batch * s->accum);
    const uint64_t n = sgt_model_parameters(&t->model), tokens = s->batch * s->accum * s->seq;
    const double one = sgt_pf_days(n, (double)tokens);
    const int asked = s->steps != SGT_DEFAULT_COUNT, budget = !asked && s->budget > 0;
    if (budget && (steps < 1 || steps > 99999999))
        return sgt_fail(err, SGT_EUSAGE,
                        "--compute-budget %g: enough for %.3g steps of this model and batch, but "
                        "it must be 1 to 99999999 steps (one takes %.3g PF-days)",
                        s->budget, s->budget / one, one);
    if (!asked && steps > 99999999)
        return sgt_fail(err, SGT_EUSAGE,
                        "--epochs %g: %.0f steps, more than 99999999 (use --steps instead)",
                        s->epochs, steps);
    if (budget)
        sgt_say(&t->o->notice,
                "--compute-budget %g: 6 N D = %.4g operations, so D = %.4g tokens for N = %.4g "
                "parameters: %.0f steps of %" PRIu64,
                s->budget, s->budget * 8.64e19, s->budget / one * (double)tokens, (double)n, steps,
                tokens);
    s->steps = (uint64_t)steps;
    return SGT_OK;
}

/* Decide the shape of the model, and the settings that depend on it. */
static int decide_model(sgt_trainer *t, sgt_error *err)
{
    sgt_config *s = t->s;
    int rc = sgt_trainer_model(t, &t->info, &t->model, err);
    if (rc < 0) return rc;
    if (s->gelu == SGT_DEFAULT_WORD) s->gelu = (int)t->model.gelu;
    s->no_tie = t->model.untied != 0;
    if (s->init) s->model = NULL; /* the shape comes from config.json instead */
    return SGT_OK;
}

/* Decide the learning-rate schedule. If a resumed run has different learning rates or another kind
 * of schedule than before, a new schedule begins at the step from which the run is resumed. */
static int decide_schedule(sgt_trainer *t, sgt_error *err)
{
    sgt_config *s = t->s;
    const sgt_schedule *then = &t->state.schedule;
    uint64_t rows = t->rows = s->batch * s->accum;
    t->tokens = rows * s->seq;
    t->lr_is_ours = s->lr == SGT_DEFAULT_REAL;
    if (t->lr_is_ours)
        s->lr = sgt_advice_auto_lr(sgt_model_parameters(&t->model), rows, s->lr_base_batch);
    else if (s->scale_lr) s->lr = sgt_advice_scale_lr(s->lr, rows, s->lr_base_batch);
    if (s->min_lr == SGT_DEFAULT_REAL) s->min_lr = s->lr / 10;
    if (s->min_lr > s->lr)
        return sgt_fail(err, SGT_EUSAGE,
                        "--min-lr %g: above the learning rate, %g, which falls to it (use a lower "
                        "--min-lr or a higher --lr)",
                        s->min_lr, s->lr);
    if (s->warmup == SGT_DEFAULT_COUNT) s->warmup = s->steps / 20 < 1000 ? s->steps / 20 : 1000;
    t->schedule = (sgt_schedule){(sgt_schedule_kind)s->schedule,
                                 s->lr,
                                 s->min_lr,
                                 s->warmup,
                                 s->steps,
                                 then->first,
                                 then->from};
    if (!t->from ||
        ((int)then->kind == s->schedule && then->lr == s->lr && then->min_lr == s->min_lr))
        return SGT_OK;
    t->schedule.first = t->state.step;
    t->schedule.from = sgt_schedule_lr(then, t->state.step - 1);
    return SGT_OK;
}

/* Report how --lr auto computed s->lr, for example as "0.0003 x 128/64 rows per step" or "0.00124
 * for 7.25 million parameters x (10/64 rows per step)^0.25". */
static void report_auto_lr(const sgt_trainer *t, uint64_t rows)
{
    const sgt_config *s = t->s;
    const sgt_lr_range range = sgt_advice_lr(sgt_model_parameters(&t->model));
    char size[64] = "", power[96];
    if (range.parameters < SGT_LR_SMALLEST)
        snprintf(size, sizeof size, " for %.3g million parameters", (double)range.parameters / 1e6);
    if (rows < s->lr_base_batch)
        snprintf(power, sizeof power, "(%" PRIu64 "/%" PRIu64 " rows per step)^%g", rows,
                 s->lr_base_batch, SGT_LR_ROWS_POWER);
    else
        snprintf(power, sizeof power, "%" PRIu64 "/%" PRIu64 " rows per step%s", rows,
                 s->lr_base_batch, s->lr < SGT_LR_MOST ? "" : ", at most 0.01");
    sgt_say(&t->o->detail,
            "learning rate %.3g, chosen for you: %.3g%s \u00d7 %s (set it with --lr)", s->lr,
            range.chosen, size, power);
}

/* Report how the learning rate was chosen, or that it is unusual. Call this function after the
 * backend has been opened, so that a model that does not fit in memory fails without this
 * report. */
static void report_lr(const sgt_trainer *t)
{
    const sgt_config *s = t->s;
    char line[256];
    if (t->lr_is_ours) report_auto_lr(t, t->rows);
    else if (s->scale_lr) sgt_say(&t->o->notice, "Scaled learning rate: %.5f", s->lr);
    else if (!t->from && s->step.optim.kind == SGT_ADAMW &&
             sgt_advice_lr_outside(line, sizeof line, sgt_model_parameters(&t->model), t->rows,
                                   s->lr))
        sgt_say(&t->o->notice, "%s", line);
}

/* ---- self-check of the CUDA backend ---- */

/* Run the self-check, and warn about each path that failed. If the self-check cannot run, for
 * example because the GPU accepts only one process at a time, warn about that; the run then uses
 * all paths unchecked. */
static int check_paths(sgt_trainer *t, sgt_error *err)
{
    sgt_error why;
    sgt_paths_options o = {.program = t->o->checker,
                           .cache = t->o->cache,
                           .device = t->o->ranks ? (int)t->o->ranks->local : 0,
                           .stop = t->o->stop,
                           .notice = t->o->notice,
                           .warning = t->o->warning};
    if (!t->cuda || !o.program) return SGT_OK;
    int rc = sgt_paths_check(&t->verdicts, t->cuda, &o, &why);
    if (rc == SGT_ESTOPPED || rc == SGT_ENOMEM) return sgt_fail(err, rc, "%s", why.text);
    if (rc < 0) sgt_say(&t->o->warning, "self-check: not run: %s", why.text);
    for (size_t i = 0; i < t->verdicts.count; i++) {
        const sgt_checked *c = &t->verdicts.of[i];
        if (!sgt_checked_good(c))
            sgt_say(&t->o->warning, "self-check: %s is not used: %s (%s)", c->path, c->verdict,
                    c->why);
    }
    return SGT_OK;
}

/* ---- backend ---- */

/* Load parameters and moments from the checkpoint. Also restore the states of the loss scaler and
 * of spike detection, if both the checkpoint and the backend have them. */
static int load_state(sgt_trainer *t, sgt_error *err)
{
    sgt_backend *b = t->backend;
    int rc = sgt_checkpoint_load_model(t->from, b, &t->model, err);
    if (rc == SGT_OK) rc = sgt_checkpoint_load_moments(t->from, b, &t->model, err);
    if (rc < 0 || !sgt_trainer_scales(t) || !(t->state.scaling || t->state.skipping)) return rc;
    sgt_scaler s;
    /* start from the backend's initial state, because the checkpoint may have no loss scaler */
    if ((rc = b->get_scaler(b, &s, err)) < 0) return rc;
    if (t->state.scaling) s = t->state.scaler;
    s.outliers = t->state.scaler.outliers;
    b->put_scaler(b, t->state.step, &s);
    return SGT_OK;
}

/* Open the trace. */
static int open_trace(sgt_trainer *t, sgt_error *err)
{
    sgt_trace_options o = {.first = t->state.step, .steps = t->s->steps, .notice = t->o->notice};
    return t->o->profile && sgt_trainer_writes(t)
               ? sgt_trace_open(&t->trace, t->o->profile, &o, err)
               : SGT_OK;
}

int sgt_trainer_threads(const sgt_trainer *t)
{
    const sgt_ranks *r = t->o->ranks;
    if (t->s->threads != SGT_DEFAULT_COUNT) return (int)t->s->threads;
    return sgt_cpu_threads(r ? r->sharing : 1, t->o->most_threads);
}

int sgt_trainer_step(const sgt_trainer *t, sgt_error *err)
{
    sgt_backend_options *o = &t->s->step;
    int rc = sgt_config_step(t->s, err);
    o->model = t->model;
    o->batch = (uint32_t)t->s->batch / sgt_ranks_size(t->o->ranks);
    o->threads = sgt_trainer_threads(t);
    o->recompute_at = t->recompute_at;
    o->eot = (int32_t)t->eot;
    o->notice = t->o->notice;
    o->detail = t->o->detail;
    o->cache = t->o->cache;
    o->choices = o->deterministic ? t->state.choices : NULL;
    o->verdicts = t->verdicts.count ? &t->verdicts : NULL;
    o->trace = t->trace;
    o->ranks = t->o->ranks;
    return rc;
}

static int open_backend(sgt_trainer *t, sgt_error *err)
{
    const sgt_backend_options *o = &t->s->step;
    sgt_error why = {0};
    int rc = sgt_trainer_step(t, err);
    if (rc < 0) return rc;
    rc = (t->cuda ? t->cuda->open : sgt_cpu_backend_open)(&t->backend, o, &why);
    if (rc == SGT_ENOMEM && !t->cuda) return sgt_memory_explain(t, &why, err);
    if (rc < 0) return sgt_fail(err, rc, "%s", why.text);
    if (t->from) return load_state(t, err);
    if (t->init) return sgt_checkpoint_load_model(t->init, t->backend, &t->model, err);
    return sgt_init_parameters(t->backend, &t->model, o->seed, o->threads, err);
}

/* ---- the run ---- */

/* Warn if the device, the kernels or the matrix-product library are not those that the checkpoint
 * names. The run can continue, but its results will differ in the last bits from those of an
 * uninterrupted run. */
static void compare_machine(const sgt_trainer *t)
{
    const sgt_checkpoint_state *st = &t->state;
    const sgt_backend *b = t->backend;
    if (t->from && (strcmp(st->device, b->name) || strcmp(st->level, b->level) ||
                    strcmp(st->library, b->library)))
        sgt_say(&t->o->warning,
                "continuing with %s, %s, %s, but the checkpoint is from %s, %s, %s: results will "
                "differ in the last bits from those of an uninterrupted run",
                b->name, b->level, b->library, st->device, st->level, st->library);
}

/* Open the run directory for writing. This can remove checkpoints, so first wait in a barrier until
 * all ranks have finished reading the checkpoints. */
static int open_run_folder(sgt_trainer *t, const char *json, sgt_error *err)
{
    sgt_ranks *r = t->o->ranks;
    sgt_claimant who = {.folder = t->o->run, .notice = &t->o->notice, .stop = t->o->stop};
    int rc = r ? r->barrier(r, err) : SGT_OK;
    if (rc < 0 || !sgt_trainer_writes(t)) return rc;
    rc = sgt_run_open(&t->run, t->state.step, t->o->force, &who, &t->o->warning, err);
    if (rc < 0 || t->state.step >= t->s->steps) return rc;
    rc = sgt_run_put(t->run, "options.json", json, err);
    if (rc < 0) return rc;
    return sgt_run_start(t->run, t->state.step, t->cuda ? t->backend->peak_name : sgt_cpu_model(),
                         t->o->command, err);
}

/* After a resume, report if a new learning-rate schedule begins. If the old schedule continues but
 * the learning rate rises at this step, report that; the rate rises if the schedule has become
 * longer. */
static void compare_schedules(const sgt_trainer *t)
{
    const sgt_schedule *then = &t->state.schedule, *now = &t->schedule;
    uint64_t step = t->state.step;
    if (!t->from || step >= now->steps) return;
    double before = sgt_schedule_lr(then, step < then->steps ? step : then->steps),
           lr = sgt_schedule_lr(now, step);
    if (now->first == step)
        sgt_say(&t->o->notice,
                "learning rate: a new schedule begins after step %" PRIu64
                ": from %.3g to %.3g in %" PRIu64 " step%s, then %s to step %" PRIu64,
                step, now->from, now->lr, now->warmup, now->warmup == 1 ? "" : "s",
                sgt_schedule_words[now->kind], now->steps);
    else if (lr > 1.05 * before)
        sgt_say(
            &t->o->notice,
            "learning rate: it rises from %.3g to %.3g here, because its schedule ended at step "
            "%" PRIu64 " and now ends at step %" PRIu64,
            before, lr, then->steps, now->steps);
}

static int open_run(sgt_trainer *t, sgt_error *err)
{
    int rc = SGT_OK;
    char *json = sgt_config_json(t->s);
    if (!json) return sgt_fail_memory(err, "options");
    if (t->from)
        rc = sgt_config_same_run(t->s, t->state.options,
                                 strcmp(t->state.device, t->backend->name) != 0, err);
    /* new checkpoints will name the matrix-product algorithms that this backend uses */
    free(t->state.choices);
    t->state.choices = t->backend->choices ? strdup(t->backend->choices) : NULL;
    if (t->backend->choices && !t->state.choices) rc = sgt_fail_memory(err, "choices");
    if (rc == SGT_OK) {
        compare_machine(t);
        compare_schedules(t);
        snprintf(t->state.device, sizeof t->state.device, "%s", t->backend->name);
        snprintf(t->state.level, sizeof t->state.level, "%s", t->backend->level);
        snprintf(t->state.library, sizeof t->state.library, "%s", t->backend->library);
        t->state.sampling = sgt_sampling_name((sgt_sampling)t->s->sampling);
        t->state.seed = t->s->seed;
        t->state.schedule = t->schedule;
        rc = open_run_folder(t, json, err);
    }
    free(t->state.options);
    t->state.options = json;
    return rc;
}

/* ---- reports about a new run ---- */

static void report_peak(const sgt_trainer *t)
{
    const sgt_backend *b = t->backend;
    char of[64] = "";
    if (b->datasheet_flops > 0)
        snprintf(of, sizeof of, ", and %.3g by the datasheet (mfu_datasheet)",
                 b->datasheet_flops / 1e12);
    if (b->peak_flops > 0)
        sgt_say(&t->o->detail, "%s: matrix products reach %.3g TFLOP/s as measured (mfu)%s",
                b->peak_name, b->peak_flops / 1e12, of);
}

/* Report how many ranks and threads there are, and what limits the number of threads. If mpirun has
 * bound each rank to some of the cores, as it does by default, report how to change that. */
static void report_ranks(const sgt_trainer *t)
{
    const sgt_ranks *r = t->o->ranks;
    char threads[64] = "";
    int here = sgt_cpu_count(), all = (int)sysconf(_SC_NPROCESSORS_ONLN),
        n = sgt_trainer_threads(t);
    if (t->s->threads == SGT_DEFAULT_COUNT && n < here / (r && r->sharing ? (int)r->sharing : 1))
        sgt_say(&t->o->detail,
                "threads: %d of %d cores, because of the CPU quota or OMP_NUM_THREADS (use more "
                "with --threads)",
                n, here);
    if (!r) return;
    if (!t->cuda) snprintf(threads, sizeof threads, ", on %d thread%s", n, n == 1 ? "" : "s");
    sgt_say(&t->o->detail, "ranks: %u, each with %u of a micro-step's %" PRIu64 " rows%s", r->size,
            t->info.local_batch, t->s->batch, threads);
    if (!t->cuda && r->sharing == 1 && here * (int)r->size < all)
        sgt_say(&t->o->notice,
                "ranks are bound to %d of %d cores: mpirun --bind-to none lets them share all",
                here, all);
}

static void report_model(const sgt_trainer *t)
{
    const sgt_model *m = &t->model;
    uint64_t n = sgt_model_parameters(m);
    char ranks[48] = "", size[48];
    if (t->o->ranks) snprintf(ranks, sizeof ranks, ", %u ranks", t->o->ranks->size);
    if (n < 1000000) sgt_format_count(size, sizeof size, n);
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

static void report_data(const sgt_trainer *t)
{
    char tokens[32], count[32];
    int examples = t->examples.count > 0;
    uint64_t n = examples ? t->info.windows_per_epoch : t->info.shards;
    sgt_say(&t->o->notice, "data: %s%s, %s token%s in %s %s%s%s%s", t->s->data,
            t->data_is_ours ? "/ (no --data was given)" : "",
            sgt_format_count(tokens, sizeof tokens, t->info.tokens), t->info.tokens == 1 ? "" : "s",
            sgt_format_count(count, sizeof count, n), examples ? "completion" : "shard",
            n == 1 ? "" : "s", *t->unevaluated ? "; " : "", t->unevaluated);
}

/* Report the average number of documents in a packed row, and the percentage of the documents'
 * tokens that were cut off because they did not fit into rows. */
static void report_packing(const sgt_trainer *t)
{
    const sgt_loader_info *is = &t->info;
    const uint64_t rows = is->windows_per_epoch;
    char text[32];
    if (!is->packed_tokens) return;
    sgt_say(
        &t->o->notice,
        "packed: %s row%s per epoch, with %.3g documents each; %.3g %% of the tokens are cropped",
        sgt_format_count(text, sizeof text, rows), rows == 1 ? "" : "s",
        (double)is->documents / (double)rows,
        100 * (double)is->cropped / (double)is->packed_tokens);
}

/* Report the number of steps, the learning rate and the compute of the run. */
static void report_plan(const sgt_trainer *t)
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
            "cost: %.3g PF-days in all (6 N D with N = %.4g parameters and D = %.4g tokens)",
            sgt_pf_days(n, tokens), (double)n, tokens);
    if (s->overfit)
        sgt_say(&t->o->notice,
                "--overfit-batch: every step trains on the %" PRIu64
                " rows of step 0, to test whether the loss can fall (do not use the resulting "
                "model for anything else)",
                rows);
}

/* If the training data has several sets, report for each set its fraction of the rows. */
static void report_sets(const sgt_trainer *t)
{
    for (uint32_t i = 0; t->info.set_count > 1 && i < t->info.set_count; i++) {
        const sgt_loader_set_info *set = &t->info.sets[i];
        sgt_say(&t->o->detail,
                "data: %s: %.4g %% of the rows%s; %" PRIu64 " tokens, %" PRIu64 " rows per epoch",
                set->path, 100 * set->share, set->weight > 0 ? "" : ", by size", set->tokens,
                set->windows_per_epoch);
    }
}

/* Report how much disk space the checkpoints will need. If the free space is less, this is only a
 * warning, because space may become free in time. With --keep K, there are at most K + 2
 * checkpoints at a time: the K newest ones, the best one if it is older than these, and one that is
 * being written. */
static void report_disk(const sgt_trainer *t)
{
    const sgt_config *s = t->s;
    uint64_t *steps, every = s->save_every ? s->save_every : s->steps;
    uint64_t n = (s->steps + every - 1) / every - t->state.step / every;
    uint64_t one = 3 * sizeof(float) * sgt_model_parameters(&t->model) +
                   (t->tokenizer ? strlen(t->tokenizer) : 0);
    size_t there;
    char need[32], room[32];
    struct statvfs disk;
    if (!t->run || sgt_run_steps(&steps, &there, t->o->run, NULL) < 0) return;
    free(steps);
    if (statvfs(t->o->run, &disk) < 0) return;
    uint64_t kept = s->keep + (t->eval_rows > 0), most = there > kept ? 1 : kept + 1 - there;
    if (s->keep && n > most) n = most;
    int fits = n * one <= (uint64_t)disk.f_bavail * disk.f_frsize;
    sgt_format_bytes(need, sizeof need, n * one);
    sgt_format_bytes(room, sizeof room, (uint64_t)disk.f_bavail * disk.f_frsize);
    sgt_say(fits ? &t->o->notice : &t->o->warning,
            "disk: %s: %s for %" PRIu64 " checkpoint%s, %s%s free%s", t->o->run, need, n,
            n == 1 ? "" : "s", fits ? "" : "but only ", room,
            fits ? "" : " (free some space, or keep fewer with --keep)");
}

/* Report what the run will do, in four notices and several detailed messages. */
static void announce(const sgt_trainer *t)
{
    report_model(t);
    if (t->state.step >= t->s->steps) return;
    report_ranks(t);
    report_peak(t);
    report_data(t);
    report_sets(t);
    report_packing(t);
    report_plan(t);
    report_disk(t);
}

/* ---- opening a run ---- */

int sgt_trainer_settle(sgt_trainer *t, sgt_error *err)
{
    sgt_config *s = t->s;
    const sgt_train_options *o = t->o;
    int rc;
    if (o->resume && o->force)
        return sgt_fail(err, SGT_EUSAGE, "--resume: not together with --force");
    if ((rc = sgt_config_check(s, err)) < 0 || (rc = compare_ranks(t, err)) < 0) return rc;
    if (o->resume && ((rc = resume_from(t, err)) < 0 || (rc = sgt_config_check(s, err)) < 0))
        return rc;
    if ((rc = sgt_config_check_together(s, err)) < 0) return rc;
    if (!s->data && sgt_trainer_has_shards("out")) {
        s->data = "out";
        t->data_is_ours = 1;
    }
    if (!s->data && !t->dry)
        return sgt_fail(err, SGT_EUSAGE,
                        "no training data: --data is not given, and ./out has no shards (make them "
                        "with sgt-tokenize INPUT... out/)");
    if ((rc = decide_device(t, err)) < 0) return rc;
    return check_ranks(t, err);
}

int sgt_trainer_open(sgt_trainer *t, sgt_config *s, const sgt_train_options *o, sgt_error *err)
{
    int rc, shape;
    sgt_error why;
    *t = (sgt_trainer){.s = s, .o = o};
    if ((rc = sgt_trainer_settle(t, err)) < 0 || (rc = refuse_existing(t, err)) < 0 ||
        (rc = sgt_trainer_find_data(t, err)) < 0)
        return rc;
    shape = sgt_trainer_read_shape(t, &why);
    if (shape == SGT_OK && sgt_memory_asked(s) && (rc = sgt_memory_decide(t, err)) < 0) return rc;
    if ((rc = sgt_trainer_open_data(t, err)) < 0) return rc;
    if (shape < 0) return sgt_fail(err, shape, "%s", why.text);
    if ((rc = decide_model(t, err)) < 0 || (rc = decide_steps(t, err)) < 0 ||
        (rc = check_paths(t, err)) < 0 || (rc = open_trace(t, err)) < 0 ||
        (rc = decide_schedule(t, err)) < 0)
        return rc;
    if ((rc = compare_ranks(t, err)) < 0 || (rc = open_backend(t, err)) < 0) return rc;
    if (o->run) report_lr(t);
    /* decide_schedule has already scaled the learning rate; do not scale it again */
    s->scale_lr = 0;
    if ((rc = open_run(t, err)) < 0) return rc;
    if (o->run) announce(t);
    return SGT_OK;
}

void sgt_trainer_close(sgt_trainer *t)
{
    sgt_run_close(t->run);
    if (t->backend) t->backend->close(t->backend);
    sgt_trace_close(t->trace);
    sgt_loader_close(t->train);
    sgt_loader_close(t->val);
    sgt_examples_free(&t->examples);
    sgt_examples_free(&t->val_examples);
    sgt_checkpoint_state_free(&t->state);
    free(t->recompute_at);
    free(t->tokenizer);
    free(t->text_bytes);
    free(t->from);
    free(t->init);
}
