/* SPDX-License-Identifier: Apache-2.0 */
/* See fit.h. A *guess* is one choice of values; a *form* says which of them are free. */
#include "sim/fit/fit.h"

#include "sim/engine/simulation.h"
#include "sim/fit/search.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RATES = 6 };

/* What simulations say about a point: its time at some speeds of the engine, without protocols. */
struct fit_shape {
    double us[RATES];
    double messages; /* that follow each other on the critical path */
    double bytes;    /* of the largest message */
    double measured, log_measured;
    bool checked;
};

/* Logarithms of us, of ps per byte, of bytes; -INFINITY: 0. */
enum fit_value { LAT, RATE, RAMP, RAMP_BYTES, LL_LAT, LAUNCH, VALUES };

struct guess {
    double at[VALUES];
    double to_bytes; /* messages of up to this go by LL; 0: none */
};

struct fit_form {
    bool ramp, ll, launch;
    uint32_t keys;
};

struct fit {
    const struct peal_machine *machine;
    struct peal_fit_point *points;
    struct fit_shape *shapes;
    size_t count;
    double rates[RATES]; /* ps per byte, rising; the first is no limit */
    const struct fit_form *form;
    struct guess guess; /* while searching: the values that are fixed */
    uint64_t simulations;
    bool failed; /* a run failed */
};

/* --- simulation ---------------------------------------------------------------------------------- */

static uint64_t picoseconds(double log_us)
{
    double ps = exp(log_us) * 1e6;
    if (!(ps < 1e15))
        return (uint64_t)1e15;
    return (uint64_t)llround(ps);
}

static void set_guess(struct peal_machine *m, const struct guess *g)
{
    struct peal_machine_keys *k = &m->keys;
    for (int i = 0; i < PEAL_PROTOCOL_COUNT; i++) {
        k->protocol_lat[i] = k->protocol_ramp[i] = k->protocol_ramp_bytes[i] = 0;
        k->protocol_bw[i] = (struct peal_rate){0, 1};
    }
    k->protocol_to[PEAL_PROTOCOL_LL] = (uint64_t)g->to_bytes;
    k->protocol_to[PEAL_PROTOCOL_LL128] = 0;
    k->protocol_lat[PEAL_PROTOCOL_SIMPLE] = picoseconds(g->at[LAT]);
    k->protocol_lat[PEAL_PROTOCOL_LL] = picoseconds(g->at[LL_LAT]);
    k->protocol_ramp[PEAL_PROTOCOL_SIMPLE] = picoseconds(g->at[RAMP]);
    k->protocol_ramp_bytes[PEAL_PROTOCOL_SIMPLE] =
        (uint64_t)fmin(exp(g->at[RAMP_BYTES]), 4294967295.0);
    k->dma_bw = (struct peal_rate){(uint64_t)llround(fmin(exp(g->at[RATE]), 1e9) * 1e6), 1000000};
    if (g->at[LAUNCH] > -INFINITY)
        k->launch = picoseconds(g->at[LAUNCH]);
}

/* The point's time on the machine; NAN if it has none. log: the messages too. */
static double simulate(struct fit *f, const struct peal_machine *m, size_t point, double *bytes)
{
    struct peal_sim *sim = NULL;
    struct peal_sim_options options = {.log = bytes != NULL};
    struct peal_sim_turns turns = {.options = &options, .launches = 1};
    double us = NAN;
    f->simulations++;
    if (peal_sim_run_plan(m, f->points[point].plan, &turns, NULL, &sim) == PEAL_OK &&
        !peal_sim_deadlock(sim))
        us = (double)peal_sim_stats(sim)->time / 1e6;
    if (bytes) {
        struct peal_sim_log log = {0};
        if (sim)
            peal_sim_log(sim, &log);
        for (uint64_t i = 0; i < log.nmessages; i++) {
            if (log.messages[i].kind != PEAL_MESSAGE_NOTIFY &&
                log.messages[i].kind != PEAL_MESSAGE_CREDIT)
                *bytes = fmax(*bytes, (double)log.messages[i].bytes);
        }
    }
    peal_sim_free(sim);
    f->failed |= isnan(us);
    return us;
}

static struct guess no_costs(void)
{
    struct guess g = {.to_bytes = 0};
    for (int i = 0; i < VALUES; i++)
        g.at[i] = -INFINITY;
    return g;
}

/* The fitted point that takes longest. */
static size_t largest(const struct fit *f)
{
    size_t last = SIZE_MAX;
    for (size_t i = 0; i < f->count; i++) {
        if (!f->points[i].checked && (last == SIZE_MAX || f->points[i].us >= f->points[last].us))
            last = i;
    }
    return last;
}

/* How fast the engine has to be for the largest call: by halving. Links may leave nothing to it. */
static double engine_rate(struct fit *f)
{
    size_t last = largest(f);
    double low = -12, high = 16; /* logarithms */
    struct peal_machine m = *f->machine;
    struct guess g = no_costs();
    for (int step = 0; step < 30 && !f->failed; step++) {
        g.at[RATE] = (low + high) / 2;
        set_guess(&m, &g);
        if (simulate(f, &m, last, NULL) > f->points[last].us)
            high = g.at[RATE];
        else
            low = g.at[RATE];
    }
    return fmax(low, log(2e-3));
}

static void find_shapes(struct fit *f)
{
    static const double steps[RATES] = {0, 0.5, 0.85, 1, 1.15, 2};
    struct peal_machine m = *f->machine;
    double rate = exp(engine_rate(f));
    for (int r = 0; r < RATES; r++)
        f->rates[r] = rate * steps[r];
    for (size_t i = 0; i < f->count && !f->failed; i++) {
        struct fit_shape *s = &f->shapes[i];
        struct guess g = no_costs();
        *s = (struct fit_shape){.measured = f->points[i].us,
                                .log_measured = log(f->points[i].us),
                                .checked = f->points[i].checked};
        for (int r = 0; r < RATES; r++) {
            g.at[RATE] = log(f->rates[r]);
            set_guess(&m, &g);
            s->us[r] = simulate(f, &m, i, r == 0 ? &s->bytes : NULL);
        }
        g.at[LAT] = 0; /* 1 us */
        set_guess(&m, &g);
        s->messages = simulate(f, &m, i, NULL) - s->us[RATES - 1];
    }
}

/* --- the quick model ------------------------------------------------------------------------------- */

static double quick_time(const struct fit *f, const struct fit_shape *s, const struct guess *g)
{
    double rate = exp(g->at[RATE]);
    int r = 1;
    while (r < RATES - 1 && f->rates[r] < rate)
        r++;
    double part = (rate - f->rates[r - 1]) / (f->rates[r] - f->rates[r - 1]);
    double us = s->us[r - 1] + part * (s->us[r] - s->us[r - 1]);
    double cost = exp(g->at[LL_LAT]);
    if (s->bytes > g->to_bytes || g->to_bytes == 0) {
        cost = exp(g->at[LAT]);
        if (s->bytes > 0)
            cost += exp(g->at[RAMP]) * s->bytes / (s->bytes + exp(g->at[RAMP_BYTES]));
    }
    return us + exp(g->at[LAUNCH]) + s->messages * cost;
}

/* The values that a form leaves free, in the order in which a search sees them. */
static size_t list_free(const struct fit_form *form, enum fit_value list[static VALUES])
{
    size_t n = 0;
    list[n++] = LAT;
    list[n++] = RATE;
    if (form->ramp) {
        list[n++] = RAMP;
        list[n++] = RAMP_BYTES;
    }
    if (form->ll)
        list[n++] = LL_LAT;
    if (form->launch)
        list[n++] = LAUNCH;
    return n;
}

static void put_free(const struct fit_form *form, const double *x, struct guess *g)
{
    enum fit_value list[VALUES];
    for (size_t i = 0, n = list_free(form, list); i < n; i++)
        g->at[list[i]] = x[i];
}

/* Values that no machine has end a search in that direction: 10^6 GB/s, 20 hours. */
static bool is_wild(const struct guess *g)
{
    if (g->at[RATE] < log(1e-3))
        return true;
    for (int i = 0; i < VALUES; i++) {
        if (g->at[i] > 25 || isnan(g->at[i]))
            return true;
    }
    return false;
}

static double mean_quick(void *context, const double *x)
{
    struct fit *f = context;
    double sum = 0;
    size_t n = 0;
    put_free(f->form, x, &f->guess);
    if (is_wild(&f->guess))
        return INFINITY;
    for (size_t i = 0; i < f->count; i++) {
        const struct fit_shape *s = &f->shapes[i];
        if (s->checked)
            continue;
        sum += fabs(log(quick_time(f, s, &f->guess)) - s->log_measured);
        n++;
    }
    return sum / (double)n;
}

/* From a start with this ramp and this threshold. */
static double search_from(struct fit *f, const struct fit_form *form, double ramp_bytes,
                          struct guess *out)
{
    enum fit_value list[VALUES];
    double x[VALUES], least = INFINITY, most = 0;
    size_t n = list_free(form, list);
    for (size_t i = 0; i < f->count; i++) {
        if (f->shapes[i].checked)
            continue;
        double per = f->shapes[i].measured / fmax(f->shapes[i].messages, 1);
        least = fmin(least, per);
        most = fmax(most, per);
    }
    f->form = form;
    f->guess = no_costs();
    f->guess.to_bytes = out->to_bytes;
    const double starts[VALUES] = {[LAT] = log(least),      [RATE] = log(f->rates[3]),
                                   [RAMP] = log(least * 3), [RAMP_BYTES] = log(ramp_bytes + 1),
                                   [LL_LAT] = log(least),   [LAUNCH] = log(least)};
    for (size_t i = 0; i < n; i++)
        x[i] = starts[list[i]];
    struct peal_search search = {
        .value = mean_quick, .context = f, .n = n, .step = 0.4, .max_values = 400};
    peal_search_run(&search, x);
    search.step = 0.1; /* again, so that a simplex that has become flat does not count */
    double value = peal_search_run(&search, x);
    put_free(form, x, &f->guess);
    *out = f->guess;
    return value;
}

static double search_ramps(struct fit *f, const struct fit_form *form, double to_bytes,
                           struct guess *out)
{
    static const double starts[] = {3e4, 3e5, 3e6, 3e7};
    double best = INFINITY;
    for (size_t i = 0; i < (form->ramp ? sizeof starts / sizeof *starts : 1); i++) {
        struct guess g = {.to_bytes = to_bytes};
        double value = search_from(f, form, starts[i], &g);
        if (value < best) {
            best = value;
            *out = g;
        }
    }
    return best;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between two sizes of messages, which of the protocols takes what lies in the middle is not known: as
 * in a library that compares, the cheaper one. */
static void place_threshold(struct guess *g, double low, double high)
{
    double middle = sqrt(low * high);
    double simple = exp(g->at[LAT]) + exp(g->at[RAMP]) * middle / (middle + exp(g->at[RAMP_BYTES]));
    g->to_bytes = exp(g->at[LL_LAT]) < simple ? floor(middle) : ceil(middle) - 1;
    g->to_bytes = fmax(g->to_bytes, fmax(low, 1));
}

static double search_form(struct fit *f, const struct fit_form *form, struct guess *out)
{
    double best = INFINITY, *sizes;
    size_t n = 0;
    if (!form->ll)
        return search_ramps(f, form, 0, out);
    sizes = calloc(f->count, sizeof *sizes);
    for (size_t i = 0; i < f->count && sizes; i++) {
        if (!f->shapes[i].checked)
            sizes[n++] = f->shapes[i].bytes;
    }
    if (n)
        qsort(sizes, n, sizeof *sizes, compare_doubles);
    for (size_t i = 0; i + 3 < n; i++) {
        struct guess g;
        if (sizes[i] == sizes[i + 1] || sizes[i] < 1)
            continue;
        double value = search_ramps(f, form, sizes[i], &g);
        if (value < best) {
            best = value;
            place_threshold(&g, sizes[i], sizes[i + 1]);
            *out = g;
        }
    }
    free(sizes);
    return best;
}

/* --- by simulation ----------------------------------------------------------------------------------- */

static double mean_simulated(void *context, const double *x)
{
    struct fit *f = context;
    struct peal_machine m = *f->machine;
    double sum = 0;
    size_t n = 0;
    put_free(f->form, x, &f->guess);
    if (is_wild(&f->guess))
        return INFINITY;
    set_guess(&m, &f->guess);
    for (size_t i = 0; i < f->count; i++) {
        if (f->points[i].checked)
            continue;
        sum += fabs(log(simulate(f, &m, i, NULL)) - f->shapes[i].log_measured);
        n++;
    }
    return sum / (double)n;
}

/* Where the quick model is not exact, the search goes on with the simulator. */
static void improve(struct fit *f, const struct fit_form *form, struct guess *g)
{
    enum fit_value list[VALUES];
    double x[VALUES], x0[VALUES];
    size_t n = list_free(form, list);
    for (size_t i = 0; i < n; i++)
        x[i] = x0[i] = g->at[list[i]];
    f->form = form;
    f->guess = *g;
    double quick = mean_quick(f, x), exact = mean_simulated(f, x);
    if (fabs(quick - exact) < 0.002)
        return;
    struct peal_search search = {
        .value = mean_simulated, .context = f, .n = n, .step = 0.1, .max_values = 250};
    if (peal_search_run(&search, x) < exact)
        put_free(form, x, g);
}

/* Do calls differ in how many messages follow each other? Only then a launch can be told from them. */
static bool tells_launch(const struct fit *f)
{
    double least = INFINITY, most = 0;
    for (size_t i = 0; i < f->count; i++) {
        if (f->shapes[i].checked)
            continue;
        least = fmin(least, f->shapes[i].messages);
        most = fmax(most, f->shapes[i].messages);
    }
    return most > 1.2 * least;
}

/* Akaike's criterion for few points (C. M. Hurvich, C.-L. Tsai, 1989), for errors of which the mean
 * absolute value is what is made small: a key has to pay for itself. */
static double criterion(double error, size_t fitted, uint32_t keys)
{
    double n = (double)fitted, k = keys;
    return 2 * n * log(fmax(error, 1e-4)) + 2 * k + 2 * k * (k + 1) / (n - k - 1);
}

static void choose_form(struct fit *f, uint32_t max_keys, size_t fitted, struct fit_form *out)
{
    double best = INFINITY;
    *out = (struct fit_form){.keys = 2};
    for (int bits = 0; bits < 8; bits++) {
        struct fit_form form = {.ramp = bits & 1, .ll = bits & 2, .launch = bits & 4};
        struct guess g;
        form.keys = 2 + 2 * (uint32_t)form.ramp + 2 * (uint32_t)form.ll + (uint32_t)form.launch;
        if (form.keys > max_keys || form.keys + 2 > fitted || (form.launch && !tells_launch(f)))
            continue;
        double value = criterion(search_form(f, &form, &g), fitted, form.keys);
        if (value < best) {
            best = value;
            *out = form;
        }
    }
}

static enum peal_status put_values(struct peal_machine *machine, const struct fit_form *form,
                                   const struct guess *g, struct peal_diags *diags,
                                   struct peal_fit *out)
{
    const struct {
        enum peal_machine_key key;
        bool used;
        const char *format;
        double value;
    } rows[] = {
        {PEAL_KEY_SIMPLE_LAT, true, "%.3f", exp(g->at[LAT]) * 1e3},
        {PEAL_KEY_DMA_BW, true, "%.4f", fmin(1000 / exp(g->at[RATE]), 1e6)},
        {PEAL_KEY_SIMPLE_RAMP, form->ramp, "%.3f", exp(g->at[RAMP]) * 1e3},
        {PEAL_KEY_SIMPLE_RAMP_BYTES, form->ramp, "%.0f", fmin(exp(g->at[RAMP_BYTES]), UINT32_MAX)},
        {PEAL_KEY_LL_LAT, form->ll, "%.3f", exp(g->at[LL_LAT]) * 1e3},
        {PEAL_KEY_LL_TO, form->ll, "%.0f", g->to_bytes},
        {PEAL_KEY_LAUNCH, form->launch, "%.3f", exp(g->at[LAUNCH]) * 1e3},
    };
    struct peal_machine copy = *machine;
    struct guess none = no_costs();
    set_guess(&copy, &none);
    copy.keys.dma_bw = machine->keys.dma_bw;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char setting[96];
        const char *settings[] = {setting};
        struct peal_text before = {0};
        if (!rows[i].used)
            continue;
        assert(out->nvalues < PEAL_FIT_MAX_KEYS);
        struct peal_fit_value *value = &out->values[out->nvalues++];
        value->key = rows[i].key;
        peal_machine_key_value(machine, rows[i].key, &before);
        snprintf(value->before, sizeof value->before, "%s", peal_text_get(&before));
        peal_text_release(&before);
        snprintf(value->after, sizeof value->after, rows[i].format, rows[i].value);
        snprintf(setting, sizeof setting, "%s=%s", peal_machine_key_path(rows[i].key),
                 value->after);
        enum peal_status status = peal_machine_set(&copy, settings, 1, diags);
        if (status != PEAL_OK)
            return status;
    }
    *machine = copy;
    return PEAL_OK;
}

enum peal_status peal_fit_run(struct peal_machine *machine, struct peal_fit_point *points,
                              size_t count, uint32_t max_keys, struct peal_diags *diags,
                              struct peal_fit *out)
{
    struct fit f = {.machine = machine, .points = points, .count = count};
    struct fit_form form;
    struct guess g = no_costs();
    size_t fitted = 0;
    for (size_t i = 0; i < count; i++)
        fitted += !points[i].checked;
    *out = (struct peal_fit){0};
    if (fitted < 4) {
        peal_diag_error(
            diags, (struct peal_pos){0},
            "%zu size%s: at least 4 are needed to fit a machine, and as many to check it", fitted,
            peal_text_plural((long long)fitted));
        return PEAL_INVALID;
    }
    f.shapes = calloc(count, sizeof *f.shapes);
    if (!f.shapes)
        return PEAL_NO_MEMORY;
    enum peal_status status = PEAL_INVALID;
    find_shapes(&f);
    if (!f.failed) {
        size_t last = largest(&f);
        out->links_us = f.shapes[last].us[0];
        out->links_measured_us = f.shapes[last].measured;
        choose_form(&f, max_keys, fitted, &form);
        search_form(&f, &form, &g);
        improve(&f, &form, &g);
        status = put_values(machine, &form, &g, diags, out);
    }
    for (size_t i = 0; i < count && status == PEAL_OK; i++)
        points[i].simulated_us = simulate(&f, machine, i, NULL);
    if (f.failed) {
        peal_diag_error(diags, (struct peal_pos){0},
                        "a call of the table cannot be simulated on this machine");
        status = PEAL_INVALID;
    }
    out->simulations = f.simulations;
    free(f.shapes);
    return status;
}

double peal_fit_error(const struct peal_fit_point *points, size_t count, bool checked)
{
    double sum = 0;
    size_t n = 0;
    for (size_t i = 0; i < count; i++) {
        if (points[i].checked != checked)
            continue;
        sum += fabs(log(points[i].simulated_us / points[i].us));
        n++;
    }
    return n ? exp(sum / (double)n) - 1 : -1;
}

/* --- a straight line ------------------------------------------------------------------------------- */

struct fit_line {
    const double *x, *us;
    size_t count;
};

static double mean_line(void *context, const double *p)
{
    const struct fit_line *line = context;
    double sum = 0;
    for (size_t i = 0; i < line->count; i++)
        sum += fabs(log((exp(p[0]) + exp(p[1]) * line->x[i]) / line->us[i]));
    return isfinite(sum) ? sum / (double)line->count : INFINITY;
}

void peal_fit_line(const double *x, const double *us, size_t count, double *a, double *b)
{
    struct fit_line line = {x, us, count};
    double p[2] = {log(us[0]), log(us[count - 1] / x[count - 1])};
    struct peal_search search = {
        .value = mean_line, .context = &line, .n = 2, .step = 0.4, .max_values = 600};
    peal_search_run(&search, p);
    peal_search_run(&search, p);
    *a = exp(p[0]);
    *b = exp(p[1]);
}
