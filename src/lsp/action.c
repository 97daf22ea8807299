/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts, fixes and the commands of a lens: the `peal` command runs on a copy of the text, one at a time. A change of
 * the text ends what runs in the background for it; a command that the user asked for goes on. */
#include "lsp/requests.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEBOUNCE_MS = 300, VERDICT_S = 10, FIX_TIMES = 2, COMMAND_TIMES = 6, POLL_MS = 1000 };
static const char background_ranks[] = "2..4", asked_ranks[] = "2..8";

const char *const lsp_commands[] = {"peal.prove", "peal.simulate", "peal.showPlan", NULL};
static const char *const titles[] = {"prove at 2..8", "simulate", "show plan"};

/* How long a job may take, in units of a verdict's limit. */
static uint32_t limit_ms(const struct peal_lsp *server, uint32_t times)
{
    uint32_t limit_s = server->options.limit_s ? server->options.limit_s : VERDICT_S;
    return limit_s * times * 1000;
}

/* ---- what is known ---- */

/* The kernel's verdict, made if there is none; NULL: out of memory. */
static struct lsp_verdict *verdict_of(struct lsp_document *doc, const char *kernel)
{
    for (size_t i = 0; i < doc->verdicts.len; i++) {
        if (strcmp(doc->verdicts.at[i].name, kernel) == 0)
            return &doc->verdicts.at[i];
    }
    struct lsp_verdict new = {.name = strdup(kernel)};
    if (!new.name || !peal_vec_push(&doc->verdicts, new)) {
        free(new.name);
        return NULL;
    }
    return &doc->verdicts.at[doc->verdicts.len - 1];
}

static void forget_verdict(struct lsp_verdict *v)
{
    free(v->summary), free(v->why), free(v->fixed), free(v->fix);
    *v = (struct lsp_verdict){.name = v->name};
}

/* As `peal verify` has it: others call it, and it promises nothing by itself. */
static bool is_helper(const struct lsp_document *doc, const struct peal_kernel *kernel)
{
    return !kernel->implements && peal_module_calls(doc->module, kernel);
}

static char *print_copy(const char *format, const char *a, const char *b)
{
    struct peal_text text = {0};
    char *copy;
    peal_text_printf(&text, format, a, b);
    copy = strdup(peal_text_get(&text));
    peal_text_release(&text);
    return copy;
}

/* ---- starting ---- */

/* The text in a file of the server's folder, named after the document. */
static char *write_copy(struct peal_lsp *server, const struct lsp_document *doc)
{
    const char *slash = strrchr(doc->path ? doc->path : doc->uri, '/');
    char base[64];
    size_t len = 0;
    for (const char *at = slash ? slash + 1 : "text"; *at && *at != '.' && len + 1 < sizeof base;
         at++) {
        bool plain =
            (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9');
        base[len++] = *at;
        if (!plain)
            base[len - 1] = '_';
    }
    base[len] = '\0';
    struct peal_text path = {0};
    peal_text_printf(&path, "%s/%s-%u.peal", server->options.folder, base, ++server->files);
    FILE *file = path.failed ? NULL : fopen(path.at, "wb");
    bool good = file && fwrite(peal_text_get(&doc->text), 1, doc->text.len, file) == doc->text.len;
    good = file && fclose(file) == 0 && good;
    char *copy = good ? strdup(path.at) : NULL;
    peal_text_release(&path);
    return copy;
}

/* Starts `peal WORDS... FILE -k KERNEL MORE...`. False: it could not be started. */
static bool start(struct peal_lsp *server, struct lsp_document *doc, enum lsp_job_kind kind,
                  const char *kernel, const char *command, const char *const *more,
                  uint32_t within_ms)
{
    enum { MAX_WORDS = 24 };
    struct lsp_job *job = &server->job;
    const char *argv[MAX_WORDS];
    size_t n = 0;
    lsp_job_release(job);
    job->path = write_copy(server, doc);
    job->uri = strdup(doc->uri);
    job->kernel = strdup(kernel);
    if (!job->path || !job->uri || !job->kernel)
        return false;
    job->kind = kind;
    job->hash = doc->hash;
    argv[n++] = server->options.program;
    argv[n++] = command;
    argv[n++] = job->path;
    argv[n++] = "-k";
    argv[n++] = job->kernel;
    while (*more && n + 1 < MAX_WORDS)
        argv[n++] = *more++;
    argv[n] = NULL;
    bool good = lsp_job_start(job, argv, within_ms);
    if (!good)
        lsp_job_release(job);
    return good;
}

static bool start_verdict(struct peal_lsp *server, struct lsp_document *doc, struct lsp_verdict *v)
{
    static const char *const words[] = {
        "--json", "-n", background_ranks, "--quick", "--states", "500000", "--memory", "256M", "-j",
        "1",      NULL};
    forget_verdict(v);
    v->hash = doc->hash;
    v->state = LSP_RUNNING;
    return start(server, doc, LSP_JOB_VERDICT, v->name, "verify", words, limit_ms(server, 1));
}

static bool start_fix(struct peal_lsp *server, struct lsp_document *doc, struct lsp_verdict *v)
{
    struct peal_text out = {0};
    peal_text_printf(&out, "%s/fixed-%u.peal", server->options.folder, server->files + 1);
    const char *const words[] = {"--fix",
                                 "-o",
                                 peal_text_get(&out),
                                 "-n",
                                 background_ranks,
                                 "--quick",
                                 "--states",
                                 "200000",
                                 "--memory",
                                 "256M",
                                 "-j",
                                 "1",
                                 NULL};
    v->fix_state = LSP_RUNNING;
    bool good =
        start(server, doc, LSP_JOB_FIX, v->name, "verify", words, limit_ms(server, FIX_TIMES));
    if (good)
        server->job.command = strdup(peal_text_get(&out)); /* where the fix will be */
    peal_text_release(&out);
    return good;
}

/* The next verdict or fix that nobody has asked for. True: something runs. */
static bool start_next(struct peal_lsp *server, bool fixes)
{
    for (size_t i = 0; i < server->documents.len; i++) {
        struct lsp_document *doc = server->documents.at[i];
        if (!lsp_analyse(doc, peal_library_module(server->library)) || doc->diags.errors ||
            !doc->module)
            continue;
        for (const struct peal_kernel *k = doc->module->kernels; k; k = k->next) {
            struct lsp_verdict *v = is_helper(doc, k) ? NULL : verdict_of(doc, k->name);
            bool stale = v && (v->hash != doc->hash || v->state == LSP_UNKNOWN);
            bool wants_fix =
                v && !stale && v->state == LSP_KNOWN && v->refuted && v->fix_state == LSP_UNKNOWN;
            if (!fixes && stale && start_verdict(server, doc, v))
                return true;
            if (fixes && wants_fix && start_fix(server, doc, v))
                return true;
        }
    }
    return false;
}

/* ---- what has come ---- */

/* The first refuted answer of `peal verify --json`: why, and where. */
static void take_refuted(struct lsp_verdict *v, const struct peal_json_value *root,
                         const char *path)
{
    const struct peal_json_value *row = peal_json_first(peal_json_get(root, "answers"));
    for (; row; row = row->next) {
        const struct peal_json_value *answer = peal_json_get(row, "answer"), *place = NULL;
        const char *verdict = peal_json_get_text(answer, "verdict"),
                   *fault = peal_json_get_text(answer, "fault");
        const struct peal_json_value *ranks = peal_json_get(answer, "ranks");
        if (!verdict || strcmp(verdict, "refuted") != 0 || !fault || !ranks)
            continue;
        static const char *const lists[] = {"accesses", "waits", "steps"};
        for (size_t i = 0; i < 3 && !place; i++)
            place = peal_json_get(peal_json_first(peal_json_get(answer, lists[i])), "at");
        const char *file = peal_json_get_text(place, "file"),
                   *why = peal_json_get_text(answer, "why");
        if (file && strcmp(file, path) == 0 && peal_json_get(place, "line") &&
            peal_json_get(place, "col")) {
            v->line = (uint32_t)peal_json_get(place, "line")->number;
            v->col = (uint32_t)peal_json_get(place, "col")->number;
        }
        v->refuted = true;
        v->summary = print_copy("refuted on %s ranks: %s", ranks->text, fault);
        v->why = why ? strdup(why) : NULL;
        return;
    }
}

static void take_verdict(struct lsp_verdict *v, const struct lsp_job *job)
{
    struct peal_source source = {"verdict", peal_text_get(&job->output), job->output.len};
    struct peal_arena arena;
    struct peal_json_value *root = NULL;
    peal_arena_init(&arena, (size_t)256 << 20);
    if (peal_json_read(&source, &arena, NULL, &root) == PEAL_OK) {
        const char *verdict = peal_json_get_text(root, "verdict");
        const struct peal_json_value *proved = peal_json_get(root, "proved");
        take_refuted(v, root, job->path);
        v->proved = verdict && strcmp(verdict, "proved") == 0 && proved && proved->number > 0;
        if (v->proved)
            v->summary = print_copy("proved at %s ranks%s", background_ranks, "");
    }
    peal_arena_release(&arena);
    if (!v->summary)
        v->summary = strdup(job->timed_out ? "not decided in time" : "not decided at 2..4 ranks");
}

static void take_fix(struct lsp_verdict *v, const struct lsp_job *job, int code)
{
    static const char mark[] = ": fixed: ";
    struct peal_text fixed = {0};
    const char *said = strstr(peal_text_get(&job->output), mark);
    v->fix_state = LSP_KNOWN;
    if (code == 0 && said && job->command &&
        peal_text_read(&fixed, job->command, PEAL_FRAME_MAX_BODY)) {
        said += sizeof mark - 1;
        v->fix = strndup(said, strcspn(said, "\n"));
        v->fixed = strdup(peal_text_get(&fixed));
    }
    if (job->command)
        (void)unlink(job->command);
    peal_text_release(&fixed);
}

static void refresh_lenses(struct peal_lsp *server)
{
    if (!server->refreshes_lenses)
        return;
    struct lsp_reply message;
    lsp_message_begin(server, "workspace/codeLens/refresh", true, &message);
    peal_json_null(&message.json);
    lsp_message_end(server, &message);
}

/* The output of a lens, as a file beside the text. */
static void show_output(struct peal_lsp *server, const struct lsp_job *job)
{
    struct peal_text path = {0};
    if (!server->shows_documents)
        return;
    peal_text_printf(&path, "%s/%s-%s.txt", server->options.folder, job->kernel,
                     job->command + sizeof "peal." - 1);
    FILE *file = path.failed ? NULL : fopen(path.at, "wb");
    bool good =
        file && fwrite(peal_text_get(&job->output), 1, job->output.len, file) == job->output.len;
    good = file && fclose(file) == 0 && good;
    if (good) {
        struct lsp_reply message;
        lsp_message_begin(server, "window/showDocument", true, &message);
        struct peal_text uri = {0};
        peal_text_printf(&uri, "file://%s", path.at);
        peal_json_object(&message.json);
        peal_json_put_string(&message.json, "uri", peal_text_get(&uri));
        peal_json_put_bool(&message.json, "takeFocus", true);
        peal_json_object_end(&message.json);
        lsp_message_end(server, &message);
        peal_text_release(&uri);
    }
    peal_text_release(&path);
}

/* The answer to the request that started it. */
static void answer_command(struct peal_lsp *server, const struct lsp_job *job, int code)
{
    struct lsp_reply reply;
    if (!job->id)
        return;
    lsp_reply_begin(&reply);
    if (job->timed_out) {
        lsp_refuse(&reply, LSP_FAILED, "it was ended after %u s",
                   limit_ms(server, COMMAND_TIMES) / 1000);
    } else {
        peal_json_object(&reply.json);
        peal_json_put_string(&reply.json, "kernel", job->kernel);
        peal_json_put_int(&reply.json, "exitCode", code);
        peal_json_key(&reply.json, "text");
        peal_json_bytes(&reply.json, peal_text_get(&job->output), job->output.len);
        peal_json_object_end(&reply.json);
    }
    lsp_answer(server, job->id, &reply);
}

static void take_command(struct peal_lsp *server, struct lsp_document *doc, int code)
{
    struct lsp_job *job = &server->job;
    struct lsp_verdict *v = NULL;
    if (doc && strcmp(job->command, lsp_commands[0]) == 0 && doc->hash == job->hash && code == 0)
        v = verdict_of(doc, job->kernel);
    if (v) {
        forget_verdict(v);
        v->hash = job->hash;
        v->state = LSP_KNOWN;
        v->proved = true;
        v->summary = print_copy("proved at %s ranks%s", asked_ranks, "");
        doc->dirty = true;
    }
    if (!job->timed_out)
        show_output(server, job);
    answer_command(server, job, code);
}

static void take_result(struct peal_lsp *server, int code)
{
    struct lsp_job *job = &server->job;
    struct lsp_document *doc = lsp_find_document(server, job->uri);
    struct lsp_verdict *v = NULL;
    if (job->kind == LSP_JOB_COMMAND) {
        take_command(server, doc, code);
    } else if (doc && doc->hash == job->hash && (v = verdict_of(doc, job->kernel))) {
        if (job->kind == LSP_JOB_VERDICT) {
            v->state = LSP_KNOWN;
            take_verdict(v, job);
            doc->dirty = true;
        } else {
            take_fix(v, job, code);
        }
    }
    lsp_job_release(job);
    refresh_lenses(server);
}

int lsp_background(struct peal_lsp *server)
{
    int code;
    if (server->job.pid && lsp_job_poll(&server->job, &code))
        take_result(server, code);
    if (server->job.pid) {
        uint64_t now = peal_now_ms();
        uint64_t left = server->job.end_ms > now ? server->job.end_ms - now : 0;
        return (int)peal_size_min(left + 1, POLL_MS);
    }
    uint64_t since = peal_now_ms() - server->changed_ms;
    if (since < DEBOUNCE_MS)
        return (int)(DEBOUNCE_MS - since);
    for (size_t i = 0; i < server->documents.len; i++) {
        if (server->documents.at[i]->dirty)
            return 0; /* a verdict that came just now */
    }
    return start_next(server, false) || start_next(server, true) ? POLL_MS : -1;
}

/* ---- ending ---- */

/* Puts back what was running. */
static void give_up(struct peal_lsp *server, const char *why)
{
    struct lsp_job *job = &server->job;
    struct lsp_document *doc = lsp_find_document(server, job->uri);
    struct lsp_reply reply;
    for (size_t i = 0; doc && i < doc->verdicts.len; i++) {
        struct lsp_verdict *v = &doc->verdicts.at[i];
        if (v->state == LSP_RUNNING)
            v->state = LSP_UNKNOWN;
        if (v->fix_state == LSP_RUNNING)
            v->fix_state = LSP_UNKNOWN;
    }
    if (job->id) {
        lsp_reply_begin(&reply);
        lsp_refuse(&reply, LSP_CANCELLED, "%s", why);
        lsp_answer(server, job->id, &reply);
    }
    lsp_job_release(job);
}

void lsp_interrupt(struct peal_lsp *server, const struct lsp_document *doc)
{
    if (!server->job.pid)
        return;
    bool background = server->job.kind != LSP_JOB_COMMAND;
    if (!doc || (background && strcmp(server->job.uri, doc->uri) == 0))
        give_up(server, "the server was shut down");
}

void lsp_cancel(struct peal_lsp *server, const char *id)
{
    if (server->job.id && strcmp(server->job.id, id) == 0)
        give_up(server, "cancelled");
}

/* ---- requests ---- */

void lsp_execute(struct peal_lsp *server, const struct peal_json_value *params,
                 struct lsp_reply *reply)
{
    static const char *const prove[] = {"-n", asked_ranks, "--memory", "1G", NULL},
                             *const simulate[] = {"-m", "mesh4x4", "--count", "4K", NULL},
                             *const plan[] = {"-n", "4", "--count", "16", NULL};
    static const struct {
        const char *command;
        const char *const *more;
    } rows[] = {{"verify", prove}, {"sim", simulate}, {"plan", plan}};
    const char *command = peal_json_get_text(params, "command");
    const struct peal_json_value *uri = peal_json_first(peal_json_get(params, "arguments"));
    const struct peal_json_value *kernel = uri ? uri->next : NULL;
    size_t which = 0;
    while (lsp_commands[which] && (!command || strcmp(lsp_commands[which], command) != 0))
        which++;
    bool good = uri && uri->kind == PEAL_JSON_STRING && kernel && kernel->kind == PEAL_JSON_STRING;
    struct lsp_document *doc = good ? lsp_find_document(server, uri->text) : NULL;
    if (!lsp_commands[which]) {
        lsp_refuse(reply, LSP_INVALID_PARAMS, "'%s' is not a command", peal_text_or_empty(command));
    } else if (!doc) {
        lsp_refuse(reply, LSP_INVALID_PARAMS,
                   "a command takes the URI of an open text, and a kernel's name");
    } else if (!server->options.program || !server->options.folder) {
        lsp_refuse(reply, LSP_FAILED, "this server runs no commands");
    } else {
        if (server->job.pid)
            give_up(server, "another command was started");
        (void)lsp_analyse(doc, peal_library_module(server->library));
        reply->later = start(server, doc, LSP_JOB_COMMAND, kernel->text, rows[which].command,
                             rows[which].more, limit_ms(server, COMMAND_TIMES));
        server->job.command = reply->later ? strdup(command) : NULL;
        if (!reply->later)
            lsp_refuse(reply, LSP_FAILED, "the command could not be started");
    }
}

static void put_lens(struct peal_json *json, const struct lsp_document *doc,
                     const struct lsp_block *block, const char *title, const char *command)
{
    char name[256];
    peal_json_object(json);
    lsp_put_range(json, "range", doc, doc->tokens.at[block->name].range);
    peal_json_put_object(json, "command");
    peal_json_put_string(json, "title", title);
    peal_json_put_string(json, "command", command);
    peal_json_put_array(json, "arguments");
    peal_json_string(json, doc->uri);
    peal_json_string(json, lsp_token_text(doc, block->name, name));
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

void lsp_lenses(struct peal_lsp *server, const struct peal_json_value *params,
                struct lsp_reply *reply)
{
    struct lsp_document *doc = lsp_subject(server, params, reply).doc;
    if (!doc)
        return;
    peal_json_array(&reply->json);
    for (size_t b = 0; b < doc->blocks.len && !doc->diags.errors; b++) {
        const struct lsp_block *block = &doc->blocks.at[b];
        if (!block->kernel)
            continue;
        const char *said = NULL;
        for (size_t i = 0; i < doc->verdicts.len; i++) {
            const struct lsp_verdict *v = &doc->verdicts.at[i];
            if (strcmp(v->name, block->kernel->name) != 0 || v->hash != doc->hash)
                continue;
            said = v->state == LSP_KNOWN ? v->summary : "proving at 2..4 ranks";
        }
        if (said)
            put_lens(&reply->json, doc, block, said, "");
        for (size_t i = 0; lsp_commands[i]; i++)
            put_lens(&reply->json, doc, block, titles[i], lsp_commands[i]);
    }
    peal_json_array_end(&reply->json);
}

static void put_action(struct peal_json *json, const struct lsp_document *doc, const char *title,
                       struct lsp_range range, const char *text, size_t len)
{
    peal_json_object(json);
    peal_json_put_string(json, "title", title);
    peal_json_put_string(json, "kind", "quickfix");
    peal_json_put_object(json, "edit");
    peal_json_put_object(json, "changes");
    peal_json_put_array(json, doc->uri);
    lsp_put_edit(json, doc, range, text, len);
    peal_json_array_end(json);
    peal_json_object_end(json);
    peal_json_object_end(json);
    peal_json_object_end(json);
}

/* The lines that differ between the text and one that is proved. */
static void put_fix(struct peal_json *json, const struct lsp_document *doc,
                    const struct lsp_verdict *v)
{
    const char *old = doc->text.at, *new = v->fixed;
    size_t len = strlen(new), same = 0, tail = 0;
    while (same < doc->text.len && same < len && old[same] == new[same])
        same++;
    while (same && old[same - 1] != '\n')
        same--;
    while (tail < doc->text.len - same && tail < len - same &&
           old[doc->text.len - 1 - tail] == new[len - 1 - tail])
        tail++;
    while (tail && old[doc->text.len - tail - 1] != '\n')
        tail--; /* what is kept begins a line */
    struct peal_text title = {0};
    peal_text_printf(&title, "Fix '%s' (proved at %s ranks): %s", v->name, background_ranks,
                     v->fix);
    put_action(json, doc, peal_text_get(&title), (struct lsp_range){same, doc->text.len - tail},
               new + same, len - tail - same);
    peal_text_release(&title);
}

void lsp_actions(struct peal_lsp *server, const struct peal_json_value *params,
                 struct lsp_reply *reply)
{
    const struct lsp_document *doc = lsp_subject(server, params, reply).doc;
    if (!doc)
        return;
    struct lsp_range asked = lsp_read_range(doc, peal_json_get(params, "range"));
    peal_json_array(&reply->json);
    for (size_t i = 0; i < doc->diags.list.len; i++) {
        struct lsp_range range, place = lsp_place(doc, &doc->diags.list.at[i].pos);
        char word[256];
        bool touches = place.at <= asked.end && place.end >= asked.at;
        if (doc->diags.list.at[i].severity != PEAL_ERROR || !touches ||
            !lsp_meant(doc, i, &range, word))
            continue;
        struct peal_text title = {0};
        peal_text_printf(&title, "Change to '%s'", word);
        put_action(&reply->json, doc, peal_text_get(&title), range, word, strlen(word));
        peal_text_release(&title);
    }
    for (size_t b = 0; b < doc->blocks.len; b++) {
        const struct lsp_block *block = &doc->blocks.at[b];
        uint32_t last =
            block->close < doc->tokens.len ? block->close : (uint32_t)doc->tokens.len - 1;
        bool touches = doc->tokens.at[block->word].range.at <= asked.end &&
                       doc->tokens.at[last].range.end >= asked.at;
        for (size_t i = 0; touches && block->kernel && i < doc->verdicts.len; i++) {
            const struct lsp_verdict *v = &doc->verdicts.at[i];
            if (v->fixed && v->fix && v->hash == doc->hash &&
                strcmp(v->name, block->kernel->name) == 0)
                put_fix(&reply->json, doc, v);
        }
    }
    peal_json_array_end(&reply->json);
}
