/* all_page.c: the page of sgt-bench all: a section a part, with its picture, its command and what that printed. */
#include <string.h>

#include "base/cpu.h"
#include "tools/bench/all.h"
#include "tools/bench/bench.h"
#include "tools/cli/talk.h"
#include "tools/page/page.h"

char *all_command(char *buf, size_t n, const all_part *p)
{
    size_t at = (size_t)snprintf(buf, n, "sgt-bench");
    for (int i = 0; p->args[i] && at < n; i++) {
        if (!strcmp(p->args[i], "--plot")) i++;
        else at += (size_t)snprintf(buf + at, n - at, " %s", p->args[i]);
    }
    return buf;
}

static void put_part(FILE *page, const all_part *p)
{
    char command[1024], shown[1024];
    fprintf(page, "<section id=\"%s\">\n<h2>%s</h2>\n<p class=\"command\">$ ", p->name, p->title);
    sgt_page_text(page, sgt_printable(shown, sizeof shown, all_command(command, sizeof command, p)));
    fputs("</p>\n", page);
    if (!p->said) {
        fputs("<p class=\"none\">Left out: ", page);
        sgt_page_text(page, p->why);
        fputs("</p>\n</section>\n", page);
        return;
    }
    if (p->picture) fprintf(page, "<figure class=\"bench\" tabindex=\"0\">\n%s</figure>\n", p->picture);
    fputs("<pre class=\"card\" tabindex=\"0\">", page);
    sgt_page_text(page, p->said);
    fputs("</pre>\n</section>\n", page);
}

static void put_data(FILE *page, const all_data *d)
{
    char size[32];
    fputs("<ul class=\"notes\">\n", page);
    if (d->own_text)
        fprintf(page, "<li>text: %s of words drawn as often as words are (Zipf's law), made for this page</li>\n",
                sgt_format_bytes(size, sizeof size, d->text_bytes));
    if (d->own_set)
        fprintf(page, "<li>set: %s of random ids in two shards, made for this page</li>\n",
                sgt_format_bytes(size, sizeof size, d->set_bytes));
    fputs("<li>A star marks the best of a table; a dashed line is the limit.</li>\n</ul>\n", page);
}

void all_put_page(FILE *page, const all_report *r)
{
    char machine[160], took[32], model[128];
    sgt_page_begin(page, sgt_printable(model, sizeof model, sgt_cpu_model()), "sgt-bench");
    fputs("<p class=\"about\">", page);
    sgt_page_text(page, bench_machine(machine, sizeof machine));
    fprintf(page, " \u00b7 measured in %s</p>\n</header>\n", sgt_format_time(took, sizeof took, r->seconds));
    put_data(page, r->data);
    for (int i = 0; i < ALL_PARTS; i++)
        if (r->parts[i].wanted) put_part(page, &r->parts[i]);
    sgt_page_end(page, "sgt-bench");
}
