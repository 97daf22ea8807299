/* SPDX-License-Identifier: Apache-2.0 */
/* Walks libyaml's document, no deeper than this form: deep or aliased documents cost nothing.
 *
 *   workers: 4                                 kernels:   NAME: Peal text
 *   machine: mesh4x4                           functions: NAME: {parameters: "in, inout", cost_ps: N}
 *   domains: NAME: [worker, ...]
 *   tensors: NAME: {shape: [n, ...], dtype: f32, on: DOMAIN, shard: DIMENSION, worker: W}
 *   tasks:   - {run: NAME, on: DOMAIN or [DOMAIN, ...], worker: W, args: [...], name: TEXT}
 *
 * An argument is a tensor's name, an integer, a reduce operation, or a list of integers.
 */
#include "cli/graph/graph_file.h"
#include "driver/driver.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <yaml.h>

enum { MAX_NAMES = 4096, MAX_INTS = 65536 };

enum section { KERNELS, FUNCTIONS, DOMAINS, TENSORS, TASKS, SECTIONS };
static const char *const section_names[SECTIONS] = {"kernels", "functions", "domains", "tensors",
                                                    "tasks"};

/* A name in the file, and what was made for it. */
struct named {
    const char *name;
    enum section section;
    const yaml_node_t *node;
    struct peal_domain domain;
    struct peal_tensor tensor;
    struct peal_work work;
};

struct peal_graph_file {
    const struct peal_source *source;
    yaml_document_t document;
    bool has_document;
    uint32_t workers;
    const yaml_node_t *workers_node, *machine; /* NULL: none */
    const yaml_node_t *sections[SECTIONS];
    PEAL_VEC(struct named) names;
    PEAL_VEC(struct peal_function) functions;
    PEAL_VEC(int64_t) ints;
    struct peal_diags *diags;
    struct peal_host *host;
};

static struct peal_pos pos_of(const struct peal_graph_file *f, const yaml_node_t *node)
{
    return (struct peal_pos){.source = f->source,
                             .line = (uint32_t)node->start_mark.line + 1,
                             .col = (uint32_t)node->start_mark.column + 1,
                             .len = 1};
}

static const char *scalar_of(const yaml_node_t *node)
{
    if (!node || node->type != YAML_SCALAR_NODE)
        return NULL;
    const char *text = (const char *)node->data.scalar.value;
    if (strlen(text) == node->data.scalar.length)
        return text;
    return NULL;
}

static yaml_node_t *node_at(struct peal_graph_file *f, int index)
{
    return yaml_document_get_node(&f->document, index);
}

/* The value of a key of a mapping; NULL: none. */
static yaml_node_t *find(struct peal_graph_file *f, const yaml_node_t *mapping, const char *key)
{
    if (mapping->type != YAML_MAPPING_NODE)
        return NULL;
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const char *name = scalar_of(node_at(f, pair->key));
        if (name && strcmp(name, key) == 0)
            return node_at(f, pair->value);
    }
    return NULL;
}

/* Reports keys that are not in the list ("a b c"). */
static bool check_keys(struct peal_graph_file *f, const yaml_node_t *mapping, const char *known)
{
    const yaml_node_pair_t *pair = mapping->data.mapping.pairs.start;
    bool right = true;
    for (; pair < mapping->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(f, pair->key);
        const char *name = scalar_of(key);
        size_t len = name ? strlen(name) : 0;
        const char *at = len ? strstr(known, name) : NULL;
        while (at && ((at > known && at[-1] != ' ') || (at[len] != ' ' && at[len] != '\0')))
            at = strstr(at + 1, name);
        if (at)
            continue;
        peal_diag_error(f->diags, pos_of(f, key), "unknown key '%s': there are %s",
                        name ? name : "?", known);
        right = false;
    }
    return right;
}

static bool read_int(struct peal_graph_file *f, const yaml_node_t *node, int64_t least,
                     int64_t max_value, int64_t *out)
{
    const char *text = scalar_of(node);
    char *end = NULL;
    errno = 0;
    long long value = text ? strtoll(text, &end, 10) : 0;
    if (text && *text && *end == '\0' && errno == 0 && value >= least && value <= max_value) {
        *out = value;
        return true;
    }
    peal_diag_error(f->diags, pos_of(f, node),
                    "'%s' is not an integer from %" PRId64 " to %" PRId64, text ? text : "?", least,
                    max_value);
    return false;
}

/* ---- form ---- */

static struct named *find_name(struct peal_graph_file *f, enum section section, const char *name)
{
    if (!name)
        return NULL;
    for (size_t i = 0; i < f->names.len; i++) {
        if (f->names.at[i].section == section && strcmp(f->names.at[i].name, name) == 0)
            return &f->names.at[i];
    }
    return NULL;
}

static bool collect_names(struct peal_graph_file *f, enum section section)
{
    const yaml_node_t *node = f->sections[section];
    if (!node)
        return true;
    if (node->type != YAML_MAPPING_NODE) {
        peal_diag_error(f->diags, pos_of(f, node), "'%s' is a list of names with values",
                        section_names[section]);
        return false;
    }
    const yaml_node_pair_t *pair = node->data.mapping.pairs.start;
    for (; pair < node->data.mapping.pairs.top; pair++) {
        const yaml_node_t *key = node_at(f, pair->key);
        struct named made = {scalar_of(key), section, node_at(f, pair->value), {0}, {0}, {0}};
        if (!made.name || find_name(f, section, made.name)) {
            peal_diag_error(f->diags, pos_of(f, key),
                            "a name that is not a text, or is there twice");
            return false;
        }
        if (f->names.len >= MAX_NAMES || !peal_vec_push(&f->names, made)) {
            peal_diag_error(f->diags, pos_of(f, key), "more than %d names", MAX_NAMES);
            return false;
        }
    }
    return true;
}

static enum peal_status stand_in(const struct peal_function_call *call, void *context)
{
    uint64_t ps = *(const uint64_t *)context;
    (void)call;
    nanosleep(&(struct timespec){(time_t)(ps / 1000000000000), (long)(ps / 1000 % 1000000000)},
              NULL);
    return PEAL_OK;
}

static bool collect_functions(struct peal_graph_file *f)
{
    bool right = true;
    for (size_t i = 0; i < f->names.len; i++) {
        const struct named *named = &f->names.at[i];
        int64_t cost = 0;
        if (named->section != FUNCTIONS)
            continue;
        if (named->node->type != YAML_MAPPING_NODE) {
            peal_diag_error(f->diags, pos_of(f, named->node),
                            "a function has parameters and cost_ps");
            return false;
        }
        const yaml_node_t *ps = find(f, named->node, "cost_ps");
        right = check_keys(f, named->node, "parameters cost_ps") && right;
        if (ps)
            right = read_int(f, ps, 0, INT64_C(1000000000000000), &cost) && right;
        const yaml_node_t *list = find(f, named->node, "parameters");
        struct peal_function made = {.name = named->name,
                                     .run = stand_in,
                                     .parameters = scalar_of(list),
                                     .cost_ps = (uint64_t)cost};
        bool known = !made.parameters || peal_function_takes(made.parameters);
        if (!known)
            peal_diag_error(f->diags, pos_of(f, list),
                            "parameters of '%s' are a list of in, out, inout, int, ints, not '%s'",
                            named->name, made.parameters);
        right = known && right;
        right = peal_vec_push(&f->functions, made) && right;
    }
    /* The table does not move from here on. */
    for (size_t i = 0; i < f->functions.len; i++)
        f->functions.at[i].context = &f->functions.at[i].cost_ps;
    return right;
}

static bool read_form(struct peal_graph_file *f)
{
    const yaml_node_t *root = yaml_document_get_root_node(&f->document);
    struct peal_pos top = {.source = f->source, .line = 1, .col = 1};
    int64_t workers = 0;
    if (!root || root->type != YAML_MAPPING_NODE) {
        peal_diag_error(f->diags, root ? pos_of(f, root) : top,
                        "a graph has workers, domains, tensors and tasks");
        return false;
    }
    bool right = check_keys(f, root, "workers machine kernels functions domains tensors tasks");
    const yaml_node_t *count = find(f, root, "workers");
    if (!count)
        peal_diag_error(f->diags, pos_of(f, root), "'workers' is missing");
    right = count && read_int(f, count, 1, PEAL_MOST_RANKS, &workers) && right;
    f->workers = (uint32_t)workers;
    f->workers_node = count;
    f->machine = find(f, root, "machine");
    for (int s = 0; s < SECTIONS; s++)
        f->sections[s] = find(f, root, section_names[s]);
    for (int s = 0; s < TASKS; s++)
        right = collect_names(f, (enum section)s) && right;
    right = right && collect_functions(f);
    const yaml_node_t *tasks = f->sections[TASKS];
    if (tasks && tasks->type == YAML_SEQUENCE_NODE)
        return right;
    peal_diag_error(f->diags, pos_of(f, tasks ? tasks : root), "'tasks' is not a list");
    return false;
}

enum peal_status peal_graph_file_open(const struct peal_source *source, struct peal_diags *diags,
                                      struct peal_graph_file **out)
{
    struct peal_graph_file *f = calloc(1, sizeof *f);
    yaml_parser_t parser;
    if (!f)
        return PEAL_NO_MEMORY;
    f->source = source;
    f->diags = diags;
    if (!yaml_parser_initialize(&parser)) {
        free(f);
        return PEAL_NO_MEMORY;
    }
    yaml_parser_set_input_string(&parser, (const unsigned char *)source->text, source->len);
    f->has_document = yaml_parser_load(&parser, &f->document) != 0;
    if (!f->has_document) {
        struct peal_pos pos = {.source = source,
                               .line = (uint32_t)parser.problem_mark.line + 1,
                               .col = (uint32_t)parser.problem_mark.column + 1};
        peal_diag_error(diags, pos, "%s", parser.problem ? parser.problem : "this is no YAML");
    }
    yaml_parser_delete(&parser);
    if (f->has_document && read_form(f)) {
        *out = f;
        return PEAL_OK;
    }
    peal_graph_file_close(f);
    return PEAL_INVALID;
}

void peal_graph_file_close(struct peal_graph_file *file)
{
    if (!file)
        return;
    if (file->has_document)
        yaml_document_delete(&file->document);
    peal_vec_release(&file->names);
    peal_vec_release(&file->functions);
    peal_vec_release(&file->ints);
    free(file);
}

uint32_t peal_graph_file_workers(const struct peal_graph_file *file)
{
    return file->workers;
}

const char *peal_graph_file_machine(const struct peal_graph_file *file)
{
    return scalar_of(file->machine);
}

const struct peal_function *peal_graph_file_functions(const struct peal_graph_file *file,
                                                      size_t *count)
{
    *count = file->functions.len;
    return file->functions.at;
}

void peal_graph_file_refuse(struct peal_graph_file *file, enum peal_status status,
                            const char *words)
{
    const yaml_node_t *about = file->machine;
    if (status == PEAL_UNSUPPORTED || !about)
        about = file->workers_node;
    peal_diag_error(file->diags, pos_of(file, about), "%s", words);
}

/* ---- domains and tensors ---- */

static enum peal_status pass_on(struct peal_graph_file *f, const yaml_node_t *node,
                                enum peal_status status)
{
    if (status != PEAL_OK)
        peal_diag_error(f->diags, pos_of(f, node), "%s", peal_host_error(f->host));
    return status;
}

static enum peal_status make_domain(struct peal_graph_file *f, struct named *named)
{
    uint32_t members[PEAL_MOST_RANKS];
    struct peal_domain_spec spec = {.name = named->name, .workers = members};
    if (named->node->type != YAML_SEQUENCE_NODE) {
        peal_diag_error(f->diags, pos_of(f, named->node), "a domain is a list of workers");
        return PEAL_INVALID;
    }
    const yaml_node_item_t *item = named->node->data.sequence.items.start;
    for (; item < named->node->data.sequence.items.top; item++) {
        int64_t worker;
        if (!read_int(f, node_at(f, *item), 0, f->workers - 1, &worker))
            return PEAL_INVALID;
        if (spec.nworkers < PEAL_MOST_RANKS)
            members[spec.nworkers++] = (uint32_t)worker;
    }
    return pass_on(f, named->node, peal_domain_new(f->host, &spec, &named->domain));
}

static bool read_shape(struct peal_graph_file *f, const yaml_node_t *node,
                       struct peal_tensor_spec *spec)
{
    if (!node || node->type != YAML_SEQUENCE_NODE)
        return false;
    const yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        int64_t extent;
        if (spec->ndims == PEAL_MOST_DIMS ||
            !read_int(f, node_at(f, *item), 0, INT64_C(1) << 40, &extent))
            return false;
        spec->shape[spec->ndims++] = (uint64_t)extent;
    }
    return true;
}

/* "all", or a domain of the file; false after a message. */
static bool read_domain(struct peal_graph_file *f, const yaml_node_t *node, struct peal_domain *out)
{
    const char *name = scalar_of(node);
    *out = (struct peal_domain){0};
    if (name && strcmp(name, "all") == 0)
        return true;
    const struct named *named = find_name(f, DOMAINS, name);
    if (named)
        *out = named->domain;
    else
        peal_diag_error(f->diags, pos_of(f, node), "there is no domain '%s'", name ? name : "?");
    return named != NULL;
}

static enum peal_status make_tensor(struct peal_graph_file *f, struct named *named)
{
    struct peal_tensor_spec spec = {
        .name = named->name, .dtype = PEAL_F32, .place = PEAL_REPLICATED};
    int64_t number;
    if (named->node->type != YAML_MAPPING_NODE ||
        !check_keys(f, named->node, "shape dtype on shard worker")) {
        peal_diag_error(f->diags, pos_of(f, named->node), "a tensor has a shape");
        return PEAL_INVALID;
    }
    if (!read_shape(f, find(f, named->node, "shape"), &spec)) {
        peal_diag_error(f->diags, pos_of(f, named->node), "a shape is a list of 1 to 4 integers");
        return PEAL_INVALID;
    }
    const yaml_node_t *dtype = find(f, named->node, "dtype"), *on = find(f, named->node, "on");
    const yaml_node_t *shard = find(f, named->node, "shard"),
                      *worker = find(f, named->node, "worker");
    const char *type = "f32";
    if (dtype)
        type = scalar_of(dtype);
    if (!type || !peal_dtype_find(type, strlen(type), &spec.dtype)) {
        peal_diag_error(f->diags, pos_of(f, dtype), "there is no data type '%s'",
                        type ? type : "?");
        return PEAL_INVALID;
    }
    if (on && !read_domain(f, on, &spec.domain))
        return PEAL_INVALID;
    if (shard) {
        if (!read_int(f, shard, 0, PEAL_MOST_DIMS - 1, &number))
            return PEAL_INVALID;
        spec.place = PEAL_SHARDED;
        spec.shard_dim = (uint32_t)number;
    }
    if (worker) {
        if (!read_int(f, worker, 0, f->workers - 1, &number))
            return PEAL_INVALID;
        spec.place = PEAL_ON_WORKER;
        spec.worker = (uint32_t)number;
    }
    return pass_on(f, named->node, peal_tensor_new(f->host, &spec, &named->tensor));
}

static enum peal_status make_kernel(struct peal_graph_file *f, struct named *named)
{
    const char *text = scalar_of(named->node);
    if (!text) {
        peal_diag_error(f->diags, pos_of(f, named->node), "a kernel is a text");
        return PEAL_INVALID;
    }
    return pass_on(f, named->node, peal_work_kernel(f->host, text, NULL, &named->work));
}

/* ---- tasks ---- */

/* A kernel of the file, a function, or one of the library. */
static enum peal_status find_work(struct peal_graph_file *f, const yaml_node_t *node,
                                  struct peal_work *out)
{
    const char *name = scalar_of(node);
    struct named *named = find_name(f, KERNELS, name);
    if (!name) {
        peal_diag_error(f->diags, pos_of(f, node), "a task runs a kernel or a function");
        return PEAL_INVALID;
    }
    if (!named)
        named = find_name(f, FUNCTIONS, name);
    if (named && named->work.id) {
        *out = named->work;
        return PEAL_OK;
    }
    bool function = strcmp(name, "matmul") == 0 || (named && named->section == FUNCTIONS);
    enum peal_status status = function ? peal_work_function(f->host, name, out)
                                       : peal_work_kernel(f->host, NULL, name, out);
    if (named)
        named->work = *out;
    return pass_on(f, node, status);
}

static bool read_list(struct peal_graph_file *f, const yaml_node_t *node, struct peal_task_arg *out)
{
    size_t first = f->ints.len;
    const yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        int64_t value;
        if (f->ints.len >= MAX_INTS ||
            !read_int(f, node_at(f, *item), INT64_MIN, INT64_MAX, &value) ||
            !peal_vec_push(&f->ints, value))
            return false;
    }
    *out = (struct peal_task_arg){.kind = PEAL_TASK_INTS,
                                  /* the index, until the list is complete */
                                  .value = (int64_t)first,
                                  .nvalues = f->ints.len - first};
    return true;
}

static bool read_arg(struct peal_graph_file *f, const yaml_node_t *node, struct peal_task_arg *out)
{
    const char *text = scalar_of(node);
    enum peal_reduction reduce;
    const struct named *tensor = find_name(f, TENSORS, text);
    if (node->type == YAML_SEQUENCE_NODE)
        return read_list(f, node, out);
    if (tensor)
        *out = peal_arg_tensor(tensor->tensor);
    else if (text && peal_reduce_find(text, strlen(text), &reduce))
        *out = peal_arg_reduce(reduce);
    else if (text && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9'))) {
        int64_t value;
        if (!read_int(f, node, INT64_MIN, INT64_MAX, &value))
            return false;
        *out = peal_arg_int(value);
    } else {
        peal_diag_error(f->diags, pos_of(f, node), "there is no tensor '%s'", text ? text : "?");
        return false;
    }
    return true;
}

static enum peal_status submit_on(struct peal_graph_file *f, const yaml_node_t *task,
                                  const yaml_node_t *on, struct peal_task_spec *spec)
{
    if (!read_domain(f, on, &spec->domain))
        return PEAL_INVALID;
    spec->everyone = spec->domain.id == 0;
    return pass_on(f, task, peal_host_submit(f->host, spec, NULL));
}

static enum peal_status read_args(struct peal_graph_file *f, const yaml_node_t *node,
                                  struct peal_task_arg *args, size_t *count)
{
    *count = 0;
    f->ints.len = 0;
    if (!node)
        return PEAL_OK;
    if (node->type != YAML_SEQUENCE_NODE) {
        peal_diag_error(f->diags, pos_of(f, node), "'args' is not a list");
        return PEAL_INVALID;
    }
    const yaml_node_item_t *item = node->data.sequence.items.start;
    for (; item < node->data.sequence.items.top; item++) {
        if (*count == PEAL_MOST_ARGS || !read_arg(f, node_at(f, *item), &args[*count]))
            return PEAL_INVALID;
        ++*count;
    }
    for (size_t i = 0; i < *count; i++) {
        if (args[i].kind == PEAL_TASK_INTS)
            args[i].values = f->ints.at + args[i].value;
    }
    return PEAL_OK;
}

static enum peal_status submit_task(struct peal_graph_file *f, const yaml_node_t *task)
{
    struct peal_task_arg args[PEAL_MOST_ARGS];
    struct peal_task_spec spec = {.args = args};
    if (task->type != YAML_MAPPING_NODE || !check_keys(f, task, "run on worker args name")) {
        peal_diag_error(f->diags, pos_of(f, task), "a task has run, on and args");
        return PEAL_INVALID;
    }
    const yaml_node_t *run = find(f, task, "run"), *on = find(f, task, "on");
    const yaml_node_t *worker = find(f, task, "worker");
    enum peal_status status = find_work(f, run ? run : task, &spec.work);
    if (status == PEAL_OK)
        status = read_args(f, find(f, task, "args"), args, &spec.nargs);
    if (status != PEAL_OK)
        return status;
    spec.name = scalar_of(find(f, task, "name"));
    if (worker) {
        int64_t number;
        if (!read_int(f, worker, 0, f->workers - 1, &number))
            return PEAL_INVALID;
        spec.worker = (uint32_t)number;
        return pass_on(f, task, peal_host_submit(f->host, &spec, NULL));
    }
    if (!on) {
        spec.everyone = 1;
        return pass_on(f, task, peal_host_submit(f->host, &spec, NULL));
    }
    if (on->type != YAML_SEQUENCE_NODE)
        return submit_on(f, task, on, &spec);
    const yaml_node_item_t *item = on->data.sequence.items.start;
    for (; item < on->data.sequence.items.top; item++) {
        status = submit_on(f, task, node_at(f, *item), &spec);
        if (status != PEAL_OK)
            return status;
    }
    return PEAL_OK;
}

enum peal_status peal_graph_file_submit(struct peal_graph_file *file, struct peal_host *host,
                                        uint32_t repeat, struct peal_diags *diags)
{
    enum peal_status status = PEAL_OK;
    file->host = host;
    file->diags = diags;
    for (size_t i = 0; i < file->names.len; i++) {
        struct named *named = &file->names.at[i];
        if (named->section == DOMAINS)
            status = make_domain(file, named);
        else if (named->section == TENSORS)
            status = make_tensor(file, named);
        else if (named->section == KERNELS)
            status = make_kernel(file, named);
        if (status != PEAL_OK)
            return status;
    }
    const yaml_node_t *tasks = file->sections[TASKS];
    for (uint32_t r = 0; r < repeat; r++) {
        const yaml_node_item_t *item = tasks->data.sequence.items.start;
        for (; item < tasks->data.sequence.items.top; item++) {
            status = submit_task(file, node_at(file, *item));
            if (status != PEAL_OK)
                return status;
        }
    }
    return PEAL_OK;
}
