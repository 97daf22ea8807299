/* SPDX-License-Identifier: Apache-2.0 */
/* Messages between two ranks, driven by one thread: fragments of every size, and bytes in a mailbox
 * that no sender would write. */
#include "base/tests/unit.h"
#include "run/call/mail.h"
#include "run/bootstrap/open.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    struct peal_team *teams[2];
    struct peal_mail mails[2];
};

static void open_pair(struct pair *pair)
{
    assert_int_equal(peal_team_open_threads(2, 20000, NULL, pair->teams), PEAL_OK);
    for (int r = 0; r < 2; r++) {
        pair->teams[r]->quiet = true;
        assert_int_equal(peal_mail_init(&pair->mails[r], pair->teams[r]), PEAL_OK);
    }
}

static void close_pair(struct pair *pair)
{
    for (int r = 0; r < 2; r++) {
        peal_mail_release(&pair->mails[r]);
        peal_team_close(pair->teams[r]);
    }
}

TEST(messages_of_every_size_arrive_whole)
{
    enum { SLOTS = PEAL_MAIL_SLOTS, PAYLOAD = PEAL_MAIL_PAYLOAD, LONGEST = 3 * SLOTS * PAYLOAD };
    static const uint64_t sizes[] = {
        0,       1,           39,          PEAL_SLOT_INLINE, 41,          PAYLOAD - 1,
        PAYLOAD, PAYLOAD + 1, 2 * PAYLOAD, SLOTS * PAYLOAD,  LONGEST - 1, LONGEST};
    struct pair pair;
    char *out = malloc(LONGEST), *in = malloc(LONGEST);
    assert_true(out && in);
    for (size_t i = 0; i < LONGEST; i++)
        out[i] = (char)(i * 31 + i / 251);
    open_pair(&pair);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct peal_letter send = {.sends = true, .peer = 1, .data = out, .bytes = sizes[i]};
        struct peal_letter receive = {.peer = 0, .data = in, .bytes = LONGEST};
        memset(in, 0, LONGEST);
        peal_mail_post(&pair.mails[0], &send);
        peal_mail_post(&pair.mails[1], &receive);
        while (send.status == PEAL_PENDING || receive.status == PEAL_PENDING) {
            if (!peal_mail_progress(&pair.mails[0]) && !peal_mail_progress(&pair.mails[1]))
                break;
        }
        if (send.status != PEAL_OK || receive.status != PEAL_OK || receive.length != sizes[i] ||
            memcmp(in, out, sizes[i]) != 0)
            fail_msg("a message of %zu bytes: %s, %s", (size_t)sizes[i],
                     peal_status_text(send.status), peal_status_text(receive.status));
    }
    close_pair(&pair);
    free(out);
    free(in);
}

struct forged {
    bool first;
    uint64_t bytes;
};

/* Writes what rank 1 would have written into its mailbox at rank 0. */
static void forge(const struct pair *pair, uint64_t number, const struct forged *fragment)
{
    const struct peal_team *team = pair->teams[1];
    char *mailbox = peal_team_window(team, 0) + team->layout.mail + peal_mail_bytes();
    struct peal_slot *slot = (struct peal_slot *)(mailbox + PEAL_LINE) +
                             number * (1 + PEAL_MAIL_PAYLOAD / sizeof(struct peal_slot));
    slot->signature = 5;
    slot->launch = fragment->first;
    slot->bytes = fragment->bytes;
    /* Partner: arrived in mail.c. */
    atomic_store_explicit(&slot->seq, number + 1, memory_order_release);
}

TEST(fragments_that_do_not_belong_together_end_the_team)
{
    static const struct {
        int line;
        struct forged fragments[2];
    } rows[] = {
        {__LINE__, {{true, 50000}, {false, 200000}}},
        {__LINE__, {{true, 50000}, {false, 100}}},
        {__LINE__, {{true, 50000}, {true, 50000}}},
        {__LINE__, {{false, 50000}, {false, 50000}}},
        {__LINE__, {{true, UINT64_MAX - 8}, {false, UINT64_MAX - 8}}},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        bool wanted = i % 2; /* a letter takes the message; otherwise it is stored */
        struct pair pair;
        static char room[50000];
        struct peal_letter letter = {
            .peer = 1, .tag = wanted ? 5 : 6, .data = room, .bytes = sizeof room};
        open_pair(&pair);
        peal_mail_post(&pair.mails[0], &letter);
        for (uint64_t k = 0; k < 2; k++)
            forge(&pair, k, &rows[i / 2].fragments[k]);
        while (peal_mail_progress(&pair.mails[0]))
            continue;
        if (pair.teams[0]->failed != PEAL_MISMATCH)
            fail_msg("row at line %d, wanted %d: not refused", rows[i / 2].line, wanted);
        const char *text = peal_text_get(&pair.teams[0]->error);
        assert_non_null(strstr(text, "the messages of rank 1 do not hold together"));
        close_pair(&pair);
    }
}

int main(void)
{
    return unit_run();
}
