/* SPDX-License-Identifier: Apache-2.0 */
/* What is written beside the recording headers for one kernel, and the names in its object.
 *
 *   Names that kernels include, and that are parts of the recording headers.
 *   Macros of the device's compiler, from rows `define` of the table of pipes.
 *   A copy of the kernel's text, if it has launches: `kernel<<<blocks, memory, stream>>>(x)` is a call. */
#include "cli/record/record.h"

#include <ctype.h>
#include <elf.h>
#include <string.h>

static const struct {
    const char *name, *includes;
} forwards[] = {
    {"common/comm_context.h", "platform_comm/comm_context.h"},
    {"hccl/hccl.h", "acl/acl.h"},
    {"hccl/hccl_comm.h", "acl/acl.h"},
    {"hccl/hccl_types.h", "acl/acl.h"},
    {"pto/comm/comm_types.hpp", "pto/pto-inst.hpp"},
    {"pto/comm/pto_comm_inst.hpp", "pto/pto-inst.hpp"},
    {"pto/comm/async/sdma/sdma_types.hpp", "pto/pto-inst.hpp"},
    {"pto/comm/async/sdma/sdma_workspace_manager.hpp", "acl/acl.h"},
    {"pto/comm/async_common/async_types.hpp", "pto/pto-inst.hpp"},
    {"pto/common/constants.hpp", "pto/pto-inst.hpp"},
    {"pto/common/debug.h", "pto/pto-inst.hpp"},
    {"pto/common/event.hpp", "pto/pto-inst.hpp"},
    {"pto/common/memory.hpp", "pto/pto-inst.hpp"},
    {"pto/common/pto_instr.hpp", "pto/pto-inst.hpp"},
    {"pto/common/pto_tile.hpp", "pto/pto-inst.hpp"},
    {"pto/common/type.hpp", "pto/pto-inst.hpp"},
    {"pto/common/utils.hpp", "pto/pto-inst.hpp"},
};

bool peal_source_write_forwards(const struct compiled *c)
{
    bool good = true;
    for (size_t i = 0; i < sizeof forwards / sizeof *forwards && good; i++) {
        struct peal_text text = {0};
        peal_text_printf(&text, "#pragma once\n#include \"%s\"\n", forwards[i].includes);
        good = peal_compile_write(c, forwards[i].name, peal_text_get(&text), text.len);
        peal_text_release(&text);
    }
    return good;
}

static bool mentions(const struct peal_text *text, const struct pipe_table *t, char core)
{
    for (uint32_t i = 0; i < t->ndefines; i++) {
        if (t->defines[i].core == core && text->len &&
            strstr(peal_text_get(text), t->defines[i].name))
            return true;
    }
    return false;
}

/* Macros of one kind of core, unless the user's own options define one. A text that speaks of the matrix
 * unit alone is for it; any other is for the vector unit. */
bool peal_source_write_defines(const struct compiled *c, const struct pipe_table *t,
                               const struct peal_text *text)
{
    char core = mentions(text, t, 'c') && !mentions(text, t, 'v') ? 'c' : 'v';
    struct peal_text out = {0};
    peal_text_puts(&out, "#if 1");
    for (uint32_t i = 0; i < t->ndefines; i++) {
        if (t->defines[i].core != 'a')
            peal_text_printf(&out, " && !defined(%s)", t->defines[i].name);
    }
    peal_text_puts(&out, "\n");
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < t->ndefines; i++) {
            if (t->defines[i].core == (pass ? 'a' : core))
                peal_text_printf(&out, "#ifndef %s\n#define %s 1\n#endif\n", t->defines[i].name,
                                 t->defines[i].name);
        }
        peal_text_puts(&out, pass ? "" : "#endif\n");
    }
    bool good = peal_compile_write(c, "peal/defines.h", peal_text_get(&out), out.len);
    peal_text_release(&out);
    return good;
}

bool peal_source_has_launches(const struct peal_text *text)
{
    return text->len && strstr(peal_text_get(text), "<<<");
}

/* Lines stay where they are. */
void peal_source_without_launches(const char *path, const struct peal_text *text,
                                  struct peal_text *out)
{
    const char *from = peal_text_get(text), *launch;
    peal_text_puts(out, "#line 1 \"");
    for (const char *at = path; *at; at++)
        peal_text_printf(out, *at == '"' || *at == '\\' ? "\\%c" : "%c", *at);
    peal_text_puts(out, "\"\n");
    while ((launch = strstr(from, "<<<"))) {
        const char *end = strstr(launch, ">>>");
        if (!end)
            break;
        peal_text_printf(out, "%.*s", (int)(launch - from), from);
        for (const char *at = launch; at < end; at++) {
            if (*at == '\n')
                peal_text_puts(out, "\n");
        }
        from = end + 3;
    }
    peal_text_puts(out, from);
}

/* The table of names that the object exports, and its texts. */
struct names {
    const Elf64_Sym *at;
    size_t len, texts_len;
    const char *texts;
};

static bool find_names(const struct peal_text *object, struct names *out)
{
    const char *bytes = peal_text_get(object);
    Elf64_Ehdr head;
    if (object->len < sizeof head)
        return false;
    memcpy(&head, bytes, sizeof head);
    if (memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 || head.e_ident[EI_CLASS] != ELFCLASS64 ||
        head.e_shoff > object->len ||
        head.e_shnum > (object->len - head.e_shoff) / sizeof(Elf64_Shdr))
        return false;
    const Elf64_Shdr *sections = (const Elf64_Shdr *)(const void *)(bytes + head.e_shoff);
    for (uint32_t i = 0; i < head.e_shnum; i++) {
        const Elf64_Shdr *s = &sections[i], *t = &sections[s->sh_link];
        if (s->sh_type != SHT_DYNSYM || s->sh_link >= head.e_shnum || s->sh_offset > object->len ||
            s->sh_size > object->len - s->sh_offset || t->sh_offset > object->len ||
            t->sh_size > object->len - t->sh_offset || !t->sh_size ||
            bytes[t->sh_offset + t->sh_size - 1])
            continue;
        *out = (struct names){(const Elf64_Sym *)(const void *)(bytes + s->sh_offset),
                              s->sh_size / sizeof(Elf64_Sym), t->sh_size, bytes + t->sh_offset};
        return true;
    }
    return false;
}

/* Is it the name of a function `name` of C++ that is in no namespace? `args` gets what follows the name. */
static bool is_mangled(const char *symbol, const char *name, size_t len, const char **args)
{
    size_t given = 0;
    if (strncmp(symbol, "_Z", 2) != 0)
        return false;
    for (symbol += 2; isdigit((unsigned char)*symbol) && given < 4096; symbol++)
        given = given * 10 + (size_t)(*symbol - '0');
    *args = symbol + len;
    return given == len && strncmp(symbol, name, len) == 0;
}

/* Does the readable name have these arguments of the template, and perhaps more? Blanks and the suffixes of
 * numbers do not count: "<float, 256" is the beginning of "<float, 256ul, 3>". */
static bool has_arguments(const char *readable, const char *wanted)
{
    const char *at = strchr(readable, '<');
    bool number = false;
    while (at && *wanted && *wanted != '>') {
        if (isspace((unsigned char)*wanted)) {
            wanted++;
        } else if (isspace((unsigned char)*at) || (number && (*at == 'u' || *at == 'l'))) {
            at++;
        } else if (*at == *wanted) {
            number = isdigit((unsigned char)*at);
            at++;
            wanted++;
        } else {
            return false;
        }
    }
    while (at && number && (*at == 'u' || *at == 'l'))
        at++;
    return at && (*at == ',' || *at == '>');
}

/* A function beats instances of a template. */
bool peal_source_find_name(const char *path, const char *name, char *(*demangle)(const char *),
                           struct peal_text *out)
{
    enum { LARGEST = 64 << 20, PLAIN = 0, INSTANCE = 1 };
    struct peal_text object = {0};
    struct names names = {0};
    size_t len = strcspn(name, "<");
    const char *found[] = {NULL, NULL}, *args;
    int count[] = {0, 0};
    if (!peal_text_read(&object, path, LARGEST) || !find_names(&object, &names))
        names.len = 0;
    for (size_t i = 0; i < names.len; i++) {
        const Elf64_Sym *s = &names.at[i];
        const char *symbol = names.texts + s->st_name;
        if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
            s->st_name >= names.texts_len || !is_mangled(symbol, name, len, &args))
            continue;
        bool instance = *args == 'I';
        char *readable = name[len] && instance ? demangle(symbol) : NULL;
        if (name[len] && (!readable || !has_arguments(readable, name + len)))
            continue;
        found[instance] = symbol;
        count[instance]++;
    }
    int kind = count[PLAIN] ? PLAIN : INSTANCE;
    if (count[kind] == 1)
        peal_text_puts(out, found[kind]);
    peal_text_release(&object);
    return count[kind] == 1;
}
