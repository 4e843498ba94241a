/* option_table.c: lists the options of a program one after the other, including the rows of its
 * settings. */
#include "tools/cli/options.h"

/* Return an option of a table; fields that it leaves out are taken from its row, o->as. */
static sgt_option filled_in(const sgt_option *o)
{
    sgt_option f = *o;
    const sgt_option *row = o->as;
    if (!row) return f;
    f = *row;
    f.name = o->name;
    f.to = o->to;
    f.given = o->given;
    if (o->help) f.help = o->help;
    if (o->def) f.def = o->def;
    if (o->choices) f.choices = o->choices;
    return f;
}

int sgt_option_at(const sgt_program *p, size_t i, sgt_option *out)
{
    for (const sgt_option *o = p->options; o->name; o++) {
        int rows = o->kind == SGT_OPT_ROWS;
        if (*o->name && i-- == 0) {
            *out = filled_in(o);
            if (rows) out->kind = SGT_OPT_HEADING;
            return 1;
        }
        for (const sgt_option *row = p->rows; rows && row->name; row++) {
            if (row->section != o->section || i-- > 0) continue;
            *out = *row;
            out->to = (char *)p->settings + row->offset;
            out->given = &p->given[row - p->rows];
            return 1;
        }
    }
    return 0;
}
