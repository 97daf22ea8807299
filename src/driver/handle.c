/* SPDX-License-Identifier: Apache-2.0 */
/* Handles: host (16 bits), generation (24), row plus one (24). A row that is used again has another
 * generation, so that what was freed is known as such for 16 million frees of that row. */
#include "driver/state/state.h"

enum { ROW_BITS = 24, GENERATION_BITS = 24 };
#define ROW_MASK ((UINT64_C(1) << ROW_BITS) - 1)
#define GENERATION_MASK ((UINT64_C(1) << GENERATION_BITS) - 1)

static uint64_t make_id(const struct peal_host *host, uint32_t generation, size_t row)
{
    return (uint64_t)host->number << (ROW_BITS + GENERATION_BITS) |
           (generation & GENERATION_MASK) << ROW_BITS | (row + 1);
}

uint64_t peal_handle_add(struct peal_host *host, struct peal_host_table *table, void *object)
{
    if (table->first_free) {
        size_t row = table->first_free - 1;
        table->first_free = table->rows.at[row].next_free;
        table->rows.at[row].object = object;
        return make_id(host, table->rows.at[row].generation, row);
    }
    struct peal_host_handle made = {.generation = 1, .object = object};
    if (table->rows.len >= ROW_MASK || !peal_vec_push(&table->rows, made))
        return 0;
    return make_id(host, 1, table->rows.len - 1);
}

static int compare_id(const void *id, const void *row)
{
    uint64_t wanted = *(const uint64_t *)id, found = *(const uint64_t *)row;
    if (wanted == found)
        return 0;
    return wanted < found ? -1 : 1;
}

void *peal_row_find(const void *rows, size_t count, size_t row_bytes, uint64_t id)
{
    return count ? bsearch(&id, rows, count, row_bytes, compare_id) : NULL;
}

void *peal_handle_find(struct peal_host *host, struct peal_host_table *table, uint64_t id,
                       const char *noun, enum peal_status *status)
{
    uint64_t row = id & ROW_MASK;
    *status = PEAL_INVALID;
    if (id >> (ROW_BITS + GENERATION_BITS) != host->number && id != 0) {
        peal_host_fail(host, PEAL_INVALID, "this %s belongs to another host", noun);
        return NULL;
    }
    if (row == 0 || row > table->rows.len) {
        peal_host_fail(host, PEAL_INVALID, "there is no such %s", noun);
        return NULL;
    }
    struct peal_host_handle *handle = &table->rows.at[row - 1];
    if (!handle->object ||
        (handle->generation & GENERATION_MASK) != (id >> ROW_BITS & GENERATION_MASK)) {
        *status = peal_host_fail(host, PEAL_CLOSED, "this %s was freed or released", noun);
        return NULL;
    }
    *status = PEAL_OK;
    return handle->object;
}

void peal_handle_drop(struct peal_host_table *table, uint64_t id)
{
    struct peal_host_handle *handle = &table->rows.at[(id & ROW_MASK) - 1];
    handle->object = NULL;
    handle->generation++;
    handle->next_free = table->first_free;
    table->first_free = (uint32_t)(id & ROW_MASK);
}
