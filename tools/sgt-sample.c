/* sgt-sample: generates text with a model. This file contains the command line. The code in
 * train/generate/ generates the tokens, and tools/sample/show.c prints their text. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/cli/options.h"
#include "tools/cli/process.h"
#include "tools/cli/talk.h"
#include "tools/sample/sample.h"
#include "train/config.h"

#define MAX_SAMPLES 4096

static struct {
    sgt_option_list prompts, files;
    const char *vocab, *device, *precision, *cpu;
    uint64_t samples, tokens, top_k, seed, batch, threads;
    double temperature, top_p;
    int ignore_eot, no_prompt, json, quiet;
} o = {.cpu = "auto"};

static const sgt_option table[] = {
    {.name = "Prompt"},
    {"prompt", 'p', SGT_OPT_LIST, &o.prompts, "TEXT",
     .help = "text to continue, or - for standard input; repeat the option for several texts",
     .def = "none: the model begins a text"},
    {"prompt-file", 0, SGT_OPT_LIST, &o.files, "FILE",
     .help = "file that contains one prompt; a newline at the end of the file is removed"},
    {"num-samples", 0, SGT_OPT_COUNT, &o.samples, "N",
     "number of texts to generate for each prompt", .def = "1", .min = 1, .max = MAX_SAMPLES},
    {"vocab", 0, SGT_OPT_TEXT, &o.vocab, "gpt2|FILE", "vocabulary with which the model was trained",
     .def = "the one in the model's folder, else gpt2"},

    {.name = "Sampling"},
    {"tokens", 'n', SGT_OPT_COUNT, &o.tokens, "N", "maximum number of tokens to generate per text",
     .def = "256", .min = 1, .max = 1e9},
    {"temperature", 0, SGT_OPT_REAL, &o.temperature, "X",
     "sampling temperature: values below 1 favour likely tokens, values above 1 rare tokens; 0 "
     "always takes the likeliest token",
     .def = "0.8", .min = 0, .max = 100},
    {"top-k", 0, SGT_OPT_COUNT, &o.top_k, "K",
     "draw only from the K likeliest tokens; 0 means all tokens", .def = "200"},
    {"top-p", 0, SGT_OPT_REAL, &o.top_p, "P",
     "draw only from the smallest set of likeliest tokens whose probabilities sum to at least P",
     .def = "1", .min = 1e-9, .max = 1},
    {"seed", 's', SGT_OPT_COUNT, &o.seed, "N",
     "seed of the random draws; the same seed gives the same text", .def = "1"},
    {"ignore-eot", 0, SGT_OPT_FLAG, &o.ignore_eot,
     .help = "continue the text even after the model generates an end-of-text token"},

    {.name = "Computation"},
    {"device", 0, SGT_OPT_CHOICE, &o.device, "auto|cpu", "device to use; only the CPU is supported",
     .def = "auto"},
    {"precision", 0, SGT_OPT_CHOICE, &o.precision, "fp32|bf16",
     "number format of the weights; bf16 is faster and needs half the memory", .def = "fp32"},
    {"batch-size", 'b', SGT_OPT_COUNT, &o.batch, "N",
     "number of texts generated at the same time; does not change the texts", .def = "8", .min = 1,
     .max = SGT_DECODER_ROWS},
    {"threads", .as = &sgt_config_rows[SGT_SET_THREADS], .to = &o.threads},
    {"cpu", .as = &sgt_config_rows[SGT_SET_CPU], .to = &o.cpu},

    {.name = "Output"},
    {"no-prompt", 0, SGT_OPT_FLAG, &o.no_prompt, .help = "do not print prompts before the texts"},
    {"json", 0, SGT_OPT_FLAG, &o.json,
     .help = "print the results as one JSON object when all texts are complete"},
    {"quiet", 'q', SGT_OPT_FLAG, &o.quiet, .help = "print only texts, warnings and errors"},
    {0}};

static const sgt_program program = {
    .name = "sgt-sample",
    .usage = "sgt-sample [OPTION]... RUN/ | RUN/step-NNNNNNNN/ | GPT2/ | MODEL.bin",
    .about = "Continues a text with a GPT-2 model from an sgt-train run (even one that is "
             "still in progress), a Hugging Face folder or an llm.c model file.",
    .options = table,
    .examples = "  sgt-sample run/ --prompt 'Once upon a time'\n"
                "  sgt-sample run/step-00001000 --num-samples 3 --temperature 1 --top-p 0.95\n"
                "  sgt-sample gpt2/ --prompt-file story.txt --temperature 0 --tokens 100 --json"};

typedef struct sampling {
    sample_run run;
    sgt_notice notice;
    char held[4096]; /* notices that will be printed after the generated texts, one per line */
    const sgt_stop *stop;
} sampling;

/* Save a notice, which will be printed after the generated texts, because a notice that is printed
 * at once could appear in the middle of a line of generated text. */
static void hold(void *ctx, const char *line)
{
    sampling *s = ctx;
    size_t n = strlen(s->held);
    if (n + strlen(line) + 2 < sizeof s->held) sprintf(s->held + n, "%s\n", line);
}

static void print_held(sampling *s)
{
    for (char *rest = s->held, *line; (line = strsep(&rest, "\n")) && rest;)
        sgt_say(&s->notice, "%s", line);
}

static int generate(sampling *s, sgt_error *err)
{
    sgt_decoder_options d = {.sequences = (uint32_t)o.batch,
                             .threads = sgt_threads(o.threads, 1),
                             .bf16 = strcmp(o.precision, "bf16") == 0};
    sgt_generate_options g = {.choice = {.temperature = o.temperature,
                                         .top_k = o.top_k,
                                         .top_p = o.top_p,
                                         .seed = o.seed},
                              .tokens = o.tokens,
                              .eot = o.ignore_eot ? -1 : 0,
                              .notice = {.say = hold, .ctx = s},
                              .stop = s->stop};
    int rc = sample_generate(&s->run, o.samples, &d, &g, err);
    print_held(s);
    return rc;
}

static double per_second(uint64_t n, double seconds)
{
    return seconds > 0 ? (double)n / seconds : 0;
}

static int print_json(const sampling *s, sgt_error *err)
{
    const sgt_generate_result *r = &s->run.result;
    json_t *top = json_pack(
        "{s:o, s:s, s:I, s:f, s:I, s:f, s:I, s:f, s:f, s:f, s:i, s:I, s:o}", "model",
        sgt_json_string(s->run.model.path), "precision", o.precision, "seed", (json_int_t)o.seed,
        "temperature", o.temperature, "top_k", (json_int_t)o.top_k, "top_p", o.top_p, "tokens",
        (json_int_t)r->tokens, "seconds", r->prompt_seconds + r->token_seconds, "tokens_per_s",
        per_second(r->tokens, r->prompt_seconds + r->token_seconds), "prompt_seconds",
        r->prompt_seconds, "threads", sgt_decoder_threads(s->run.decoder), "memory_bytes",
        (json_int_t)sgt_decoder_bytes(s->run.decoder), "texts", sample_show_json(&s->run.show));
    return sgt_print_json(top, JSON_REAL_PRECISION(9), err);
}

static void print_speed(const sampling *s)
{
    const sgt_generate_result *r = &s->run.result;
    double seconds = r->prompt_seconds + r->token_seconds;
    char rate[48], tokens[48], time[32];
    sgt_say(&s->notice, "%s in %s: %s",
            sgt_format_things(tokens, sizeof tokens, r->tokens, "token", "tokens"),
            sgt_format_duration(time, sizeof time, seconds),
            sgt_format_rate(rate, sizeof rate, per_second(r->tokens, seconds), "tokens/s"));
}

static int run(sampling *s, const char *path, sgt_error *err)
{
    int rc = sample_model_find(&s->run.model, path, o.vocab, &s->notice, err);
    if (rc == SGT_OK) rc = sample_prompts_read(&s->run.prompts, &o.prompts, &o.files, err);
    if (rc == SGT_OK) rc = generate(s, err);
    if (rc == SGT_OK && o.json) rc = print_json(s, err);
    if (rc == SGT_OK) rc = sgt_flush_results(err);
    if (rc == SGT_OK) print_speed(s);
    return rc;
}

/* Exit with a usage error if "-", which stands for standard input, is given for more than one
 * prompt, because standard input can be read only once. */
static void check_input(void)
{
    int times = 0;
    for (size_t i = 0; i < o.prompts.count; i++) times += !strcmp(o.prompts.items[i], "-");
    for (size_t i = 0; i < o.files.count; i++) times += !strcmp(o.files.items[i], "-");
    if (times > 1)
        sgt_usage(&program, "-: standard input can be used for only one prompt, not %d", times);
}

int main(int argc, char **argv)
{
    sgt_error err;
    sampling s = {0};
    int first = sgt_options_parse(&program, argc, argv);
    if (argc - first > 1)
        sgt_usage(&program, "expected one model, not %d arguments (pass the prompt with --prompt)",
                  argc - first);
    check_input();
    sgt_take_cpu(&program, o.cpu);
    s.notice = sgt_talk_notice(program.name, o.quiet);
    s.stop = sgt_catch_signals();
    s.run.show =
        (sample_show){.json = o.json, .terminal = isatty(STDOUT_FILENO), .prompts = !o.no_prompt};
    int rc = run(&s, argv[first], &err);
    sample_run_close(&s.run);
    return sgt_end_program(&program, rc, &err);
}
