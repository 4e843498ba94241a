/* page.c: writes the head and the foot of a page. */
#include "tools/page/page.h"

#include <time.h>

#include "loader/base/version.h"

void sgt_page_text(FILE *page, const char *text)
{
    for (; *text; text++) {
        if (*text == '&') fputs("&amp;", page);
        else if (*text == '<') fputs("&lt;", page);
        else if (*text == '>') fputs("&gt;", page);
        else if (*text == '"') fputs("&quot;", page);
        else if (*text == '\'') fputs("&#39;", page);
        else fputc(*text, page);
    }
}

void sgt_page_begin(FILE *page, const char *title, const char *program)
{
    fputs("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; "
          "img-src data:\">\n<meta name=\"viewport\" content=\"width=device-width, "
          "initial-scale=1\">\n"
          "<meta name=\"color-scheme\" content=\"light dark\">\n<link rel=\"icon\" "
          "href=\"data:,\">\n<title>",
          page);
    sgt_page_text(page, title);
    fprintf(page,
            " \u00b7 %s</title>\n<style>\n%s</style>\n</head>\n<body>\n<main>\n<header>\n<h1>",
            program, sgt_page_style);
    sgt_page_text(page, title);
    fputs("</h1>\n", page);
}

void sgt_page_end(FILE *page, const char *program)
{
    char when[64] = "";
    time_t now = time(NULL);
    struct tm t;
    if (gmtime_r(&now, &t)) strftime(when, sizeof when, "%Y-%m-%d %H:%M UTC", &t);
    fprintf(page, "<footer>Made by %s " SGT_VERSION ", %s.</footer>\n</main>\n</body>\n</html>\n",
            program, when);
}
