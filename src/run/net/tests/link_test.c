/* SPDX-License-Identifier: Apache-2.0 */
/* Connections of the TCP transport: which peers are accepted, which are refused and why, and which
 * are lost. */
#include "run/net/tests/pair.h"

#include "run/net/frame.h"
#include "run/net/handshake.h"
#include "run/net/tcp.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Two ranks of the same job that differ in something. */
struct side {
    struct peal_meet *meet;
    struct peal_net_config config;
    struct peal_net *net;
    struct peal_text why;
    enum peal_status status;
    char lost[320];
    enum peal_status lost_status;
    uint64_t cell;
};

static void on_lost(void *context, uint32_t rank, enum peal_status status, const char *why)
{
    struct side *side = context;
    (void)rank;
    side->lost_status = status;
    snprintf(side->lost, sizeof side->lost, "%s", why);
}

static void *open_side(void *argument)
{
    struct side *side = argument;
    side->status = peal_net_open(&side->config, side->meet, &side->why, &side->net);
    return NULL;
}

static void open_sides(struct side sides[2])
{
    pthread_t threads[2];
    struct peal_meet *meets[2];
    assert_int_equal(peal_meet_open_local(2, 600000, meets), PEAL_OK);
    for (uint32_t r = 0; r < 2; r++) {
        sides[r].meet = meets[r];
        sides[r].config.rank = r;
        sides[r].config.size = 2;
        if (sides[r].config.connect_ms == 0)
            sides[r].config.connect_ms = 600000;
        if (!sides[r].config.transport)
            sides[r].config.transport = "tcp";
        sides[r].config.events = (struct peal_net_events){.context = &sides[r], .lost = on_lost};
        pthread_create(&threads[r], NULL, open_side, &sides[r]);
    }
    for (uint32_t r = 0; r < 2; r++) {
        pthread_join(threads[r], NULL);
        peal_meet_close(meets[r]);
        if (sides[r].status == PEAL_OK)
            (void)peal_net_expose(sides[r].net, 0, &sides[r].cell, sizeof sides[r].cell);
    }
}

static void close_sides(struct side sides[2])
{
    for (uint32_t r = 0; r < 2; r++) {
        peal_net_close(sides[r].net, 0);
        peal_text_release(&sides[r].why);
    }
}

static void progress_sides(struct side sides[2])
{
    for (uint32_t r = 0; r < 2; r++) {
        if (sides[r].net)
            (void)peal_net_progress(sides[r].net);
    }
}

static enum peal_status knock(struct side sides[2], uint32_t from)
{
    const struct peal_net_signal signal = {0, PEAL_NET_ADD, 0, 1};
    enum peal_status status;
    uint64_t start = peal_now_ns();
    while ((status = peal_net_signal(sides[from].net, 1 - from, &signal)) == PEAL_PENDING) {
        progress_sides(sides);
        peal_pair_check_time(start);
    }
    while (status == PEAL_OK && sides[1 - from].cell == 0) {
        progress_sides(sides);
        peal_pair_check_time(start);
    }
    progress_sides(sides);
    return status;
}

static const uint8_t secret[PEAL_NET_SECRET] = {1}, other[PEAL_NET_SECRET] = {2};

static bool has_crypto(void)
{
    struct peal_text why = {0};
    bool has = peal_crypto_load(&why) == PEAL_OK;
    peal_text_release(&why);
    return has;
}

static void differences_are_refused_in_words(void **state)
{
    (void)state;
    static const struct {
        int line;
        struct peal_net_config a, b;
        enum peal_status status;
        const char *words;
    } rows[] = {
        {__LINE__, {.job = "j", .secret = secret}, {.job = "j", .secret = secret}, PEAL_OK, ""},
        {__LINE__,
         {.job = "j", .secret = secret},
         {.job = "j", .secret = other},
         PEAL_MISMATCH,
         "rank 1 has another secret than rank 0"},
        {__LINE__,
         {.job = "j", .secret = secret},
         {.job = "k", .secret = secret},
         PEAL_PEER_DEAD,
         "it is of another job, or has another secret"},
        {__LINE__,
         {.job = "j", .secret = secret, .versions = {.library = "1.0"}},
         {.job = "j", .secret = secret, .versions = {.library = "1.1"}},
         PEAL_MISMATCH,
         "another version of libpeal"},
        {__LINE__,
         {.job = "j", .secret = secret, .versions = {.kernels = "abc"}},
         {.job = "j", .secret = secret, .versions = {.kernels = "abd"}},
         PEAL_MISMATCH,
         "another kernel library"},
        {__LINE__,
         {.job = "j", .secret = secret, .versions = {.tune = "abc"}},
         {.job = "j", .secret = secret, .versions = {.tune = ""}},
         PEAL_MISMATCH,
         "another table of algorithms"},
        {__LINE__,
         {.job = "j", .secret = secret, .crypt = true},
         {.job = "j", .secret = secret},
         PEAL_MISMATCH,
         "PEAL_NET_CRYPT is 0 on rank 1 and 1 on rank 0"},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        struct side sides[2] = {0};
        uint32_t from = i % 2;
        sides[0].config = rows[i / 2].a;
        sides[1].config = rows[i / 2].b;
        open_sides(sides);
        /* Refused on both sides when they open, or when one connects. */
        assert_int_equal(sides[0].status, sides[1].status);
        bool opened = sides[0].status == PEAL_OK;
        enum peal_status status = opened ? knock(sides, from) : sides[from].status;
        const char *words = opened ? sides[from].lost : peal_text_get(&sides[from].why);
        if (status != rows[i / 2].status || !strstr(words, rows[i / 2].words))
            fail_msg("row of line %d, rank %u: %s: %s", rows[i / 2].line, from,
                     peal_status_text(status), words);
        close_sides(sides);
    }
}

static void no_secret_is_refused_at_once(void **state)
{
    (void)state;
    struct side sides[2] = {{.config = {.secret = secret}}, {0}};
    open_sides(sides);
    assert_int_equal(sides[0].status, PEAL_INVALID);
    assert_int_equal(sides[1].status, PEAL_INVALID);
    assert_string_equal(peal_text_get(&sides[0].why),
                        "rank 1: ranks on several hosts need a secret that all of them know");
    close_sides(sides);
}

static void settings_that_make_no_sense_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"udp", "there is no transport 'udp'"},
        {"tcp:nosuch0", "'nosuch0' is neither an interface of this host nor a subnet"},
        {"tcp:198.51.100.0/24", "no address of this host is among those named"},
        {"tcp:127.0.0.1/40", "is neither an interface"},
        {"tcp:lo,,", "separated by commas"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct side sides[2] = {{.config = {.secret = secret, .transport = rows[i].text}},
                                {.config = {.secret = secret, .transport = rows[i].text}}};
        open_sides(sides);
        if (sides[0].status == PEAL_OK || !strstr(peal_text_get(&sides[0].why), rows[i].words))
            fail_msg("'%s': %s", rows[i].text, peal_text_get(&sides[0].why));
        close_sides(sides);
    }
}

static void interfaces_and_subnets_are_chosen(void **state)
{
    (void)state;
    static const char *const texts[] = {"tcp:lo", "tcp:127.0.0.0/8", "tcp:127.0.0.1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct side sides[2] = {{.config = {.secret = secret, .transport = texts[i]}},
                                {.config = {.secret = secret, .transport = texts[i]}}};
        open_sides(sides);
        assert_int_equal(sides[0].status, PEAL_OK);
        assert_int_equal(knock(sides, 0), PEAL_OK);
        const struct peal_tcp *tcp = (const struct peal_tcp *)(const void *)sides[0].net;
        for (uint32_t k = 0; k < tcp->own.count; k++)
            assert_true(tcp->own.at[k].loopback);
        close_sides(sides);
    }
}

/* Both begin at once, many times: in the end there is one link, and it works in both directions. */
static void two_ranks_may_connect_at_once(void **state)
{
    (void)state;
    for (int round = 0; round < 50; round++) {
        struct side sides[2] = {{.config = {.secret = secret}}, {.config = {.secret = secret}}};
        const struct peal_net_signal signal = {0, PEAL_NET_ADD, 0, 1};
        uint64_t start = peal_now_ns();
        bool done[2] = {false, false};
        open_sides(sides);
        while (!done[0] || !done[1] || sides[0].cell != 1 || sides[1].cell != 1) {
            for (uint32_t i = 0; i < 2; i++) {
                uint32_t r = (i + (uint32_t)round) % 2;
                if (!done[r])
                    done[r] = peal_net_signal(sides[r].net, 1 - r, &signal) == PEAL_OK;
            }
            for (int k = 0; k <= round % 5; k++)
                (void)peal_net_progress(sides[round / 5 % 2].net);
            progress_sides(sides);
            peal_pair_check_time(start);
        }
        assert_string_equal(sides[0].lost, "");
        assert_string_equal(sides[1].lost, "");
        close_sides(sides);
    }
}

/* ---- ends ---- */

/* As when a process exits: its descriptors are closed without a message. */
static void end_side(struct side *side)
{
    peal_net_abandon(side->net);
    side->net = NULL;
}

static void who_was_never_connected_is_known_to_have_ended(void **state)
{
    (void)state;
    uint64_t start = peal_now_ns();
    struct side sides[2] = {{.config = {.secret = secret, .connect_ms = 3600000}},
                            {.config = {.secret = secret, .connect_ms = 3600000}}};
    open_sides(sides);
    end_side(&sides[1]);
    while (sides[0].lost[0] == '\0') {
        (void)peal_net_health(sides[0].net, 1, NULL);
        progress_sides(sides);
        peal_pair_check_time(start);
    }
    assert_int_equal(sides[0].lost_status, PEAL_PEER_DEAD);
    assert_non_null(strstr(sides[0].lost, "rank 1's process has ended"));
    close_sides(sides);
}

/* Rank 1 sends, and exits without having read: the next message of rank 0 is answered by a reset,
 * but the data of rank 1 came before it. */
static void what_was_sent_before_an_end_arrives(void **state)
{
    (void)state;
    uint64_t start = peal_now_ns();
    struct side sides[2] = {{.config = {.secret = secret}}, {.config = {.secret = secret}}};
    const struct peal_net_signal one = {0, PEAL_NET_ADD, 0, 1}, last = {0, PEAL_NET_ADD, 0, 10};
    open_sides(sides);
    for (uint32_t r = 0; r < 2; r++) {
        while (peal_net_signal(sides[r].net, 1 - r, &one) == PEAL_PENDING) {
            progress_sides(sides);
            peal_pair_check_time(start);
        }
    }
    while (sides[0].cell != 1 || sides[1].cell != 1) {
        progress_sides(sides);
        peal_pair_check_time(start);
    }
    assert_int_equal(peal_net_signal(sides[0].net, 1, &one), PEAL_OK);
    assert_int_equal(peal_net_signal(sides[1].net, 0, &last), PEAL_OK);
    end_side(&sides[1]);
    (void)peal_net_signal(sides[0].net, 1, &one);
    (void)peal_net_signal(sides[0].net, 1, &one);
    while (sides[0].lost[0] == '\0') {
        progress_sides(sides);
        peal_pair_check_time(start);
    }
    assert_int_equal(sides[0].lost_status, PEAL_PEER_DEAD);
    assert_int_equal(sides[0].cell, 11);
    close_sides(sides);
}

/* ---- strangers ---- */

static int connect_stranger(const struct side *side)
{
    const struct peal_tcp *tcp = (const struct peal_tcp *)(const void *)side->net;
    struct sockaddr_storage at;
    for (uint32_t i = 0; i < tcp->own.count; i++) {
        if (tcp->own.at[i].family != 4 || !tcp->own.at[i].loopback)
            continue;
        socklen_t len = peal_address_socket(&tcp->own.at[i], &at);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(fd, (struct sockaddr *)&at, len), 0);
        return fd;
    }
    skip();
    return -1;
}

/* The answer that the stranger gets, after `sides` have progressed. */
static void hear(struct side sides[2], int fd, struct peal_net_hello_answer *answer)
{
    uint64_t start = peal_now_ns();
    size_t have = 0;
    memset(answer, 0, sizeof *answer);
    while (have < sizeof *answer) {
        ssize_t got = recv(fd, (uint8_t *)answer + have, sizeof *answer - have, MSG_DONTWAIT);
        if (got == 0 || (got < 0 && errno != EAGAIN))
            return;
        have += got > 0 ? (size_t)got : 0;
        progress_sides(sides);
        peal_pair_check_time(start);
    }
}

static void garbage_is_refused_in_words(void **state)
{
    (void)state;
    struct side sides[2] = {{.config = {.secret = secret}}, {.config = {.secret = secret}}};
    struct peal_net_hello_answer answer;
    struct peal_net_hello hello;
    open_sides(sides);
    const struct peal_tcp *tcp = (const struct peal_tcp *)(const void *)sides[0].net;
    struct {
        const void *bytes;
        size_t len;
        const char *words;
    } rows[] = {
        {"GET / HTTP/1.1\r\n\r\n", 18, "it does not speak Peal's protocol"},
        {&hello, sizeof hello, "it says it is rank 7"},
        {"pealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealp"
         "ealpe"
         "alpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpea"
         "lpeal"
         "pealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealpealp"
         "ealpe"
         "alpealpealpealpeal",
         296, "it does not speak Peal's protocol"},
    };
    hello = tcp->identity.hello;
    hello.kind = PEAL_HELLO_DATA;
    hello.from = 7;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int fd = connect_stranger(&sides[0]);
        assert_int_equal(send(fd, rows[i].bytes, rows[i].len, MSG_NOSIGNAL), rows[i].len);
        hear(sides, fd, &answer);
        assert_int_equal(answer.code, PEAL_HELLO_REFUSED);
        if (!strstr(answer.words, rows[i].words))
            fail_msg("row %zu: %.200s", i, answer.words);
        close(fd);
    }
    assert_int_equal(knock(sides, 1), PEAL_OK); /* members of the job are accepted */
    close_sides(sides);
}

/* It knows everything but the secret, and repeats what it has received. */
static void a_proof_cannot_be_guessed(void **state)
{
    (void)state;
    struct side sides[2] = {{.config = {.secret = secret}}, {.config = {.secret = secret}}};
    struct peal_net_hello hello, theirs;
    struct peal_net_hello_answer answer = {.code = PEAL_HELLO_PROOF};
    open_sides(sides);
    const struct peal_tcp *tcp = (const struct peal_tcp *)(const void *)sides[1].net;
    assert_true(peal_hello_make(&tcp->identity, 0, PEAL_HELLO_DATA, &hello));
    int fd = connect_stranger(&sides[0]);
    assert_int_equal(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
    uint64_t start = peal_now_ns();
    while (recv(fd, &theirs, sizeof theirs, MSG_DONTWAIT | MSG_PEEK) < (ssize_t)sizeof theirs) {
        progress_sides(sides);
        peal_pair_check_time(start);
    }
    assert_int_equal(recv(fd, &theirs, sizeof theirs, 0), sizeof theirs);
    assert_int_equal(send(fd, &answer, sizeof answer, MSG_NOSIGNAL), sizeof answer);
    hear(sides, fd, &answer);
    assert_int_equal(answer.code, PEAL_HELLO_REFUSED);
    assert_string_equal(answer.words, "it does not know the job's secret");
    assert_int_equal(knock(sides, 1), PEAL_OK); /* the rank that it claimed to be is not harmed */
    close(fd);
    close_sides(sides);
}

/* More connections than there are slots, all of them silent: ranks still find each other. */
static void silent_strangers_do_not_keep_ranks_out(void **state)
{
    (void)state;
    enum { STRANGERS = 2 * PEAL_TCP_HALF_OPEN };
    struct side sides[2] = {{.config = {.secret = secret}}, {.config = {.secret = secret}}};
    int fds[STRANGERS];
    open_sides(sides);
    for (int i = 0; i < STRANGERS; i++) {
        fds[i] = connect_stranger(&sides[0]);
        for (int k = 0; k < 8; k++)
            progress_sides(sides);
    }
    const struct peal_tcp *tcp = (const struct peal_tcp *)(const void *)sides[0].net;
    assert_true(tcp->nhands <= PEAL_TCP_HALF_OPEN);
    assert_int_equal(knock(sides, 1), PEAL_OK);
    for (int i = 0; i < STRANGERS; i++)
        close(fds[i]);
    close_sides(sides);
}

/* ---- proofs ---- */

static void a_proof_fits_one_connection_and_one_side(void **state)
{
    (void)state;
    struct peal_text why = {0};
    struct peal_net_identity a, b;
    struct peal_net_hello first, second;
    uint8_t proofs[4][PEAL_MAC], keys[2][PEAL_CIPHER_KEY];
    const struct peal_net_config config = {.rank = 0, .size = 2, .job = "j", .secret = secret};
    struct peal_net_config wrong = config;
    wrong.secret = other;
    assert_int_equal(peal_identity_init(&a, &config, &why), PEAL_OK);
    assert_int_equal(peal_identity_init(&b, &wrong, &why), PEAL_OK);
    assert_true(peal_hello_make(&a, 1, PEAL_HELLO_DATA, &first));
    assert_true(peal_hello_make(&a, 1, PEAL_HELLO_DATA, &second));
    assert_true(peal_hello_prove(&a, &first, &second, true, proofs[0]));
    assert_true(peal_hello_prove(&a, &first, &second, false, proofs[1]));
    assert_true(peal_hello_prove(&b, &first, &second, true, proofs[2]));
    second.versions[0][0] ^= 1;
    assert_true(peal_hello_prove(&a, &first, &second, true, proofs[3]));
    for (int i = 1; i < 4; i++)
        assert_false(peal_mac_is_equal(proofs[0], proofs[i]));
    assert_true(peal_hello_key(&a, &first, &second, true, keys[0]));
    assert_true(peal_hello_key(&a, &first, &second, false, keys[1]));
    assert_memory_not_equal(keys[0], keys[1], PEAL_CIPHER_KEY);
    peal_text_release(&why);
}

static void records_cannot_be_changed_or_repeated(void **state)
{
    (void)state;
    uint8_t key[PEAL_CIPHER_KEY] = {5}, head[4] = {4}, bytes[4] = {'a', 'b', 'c', 'd'},
            tag[PEAL_CIPHER_TAG];
    struct peal_cipher *seal = peal_cipher_new(key, true);
    for (int change = 0; change < 4; change++) {
        struct peal_cipher *open = peal_cipher_new(key, false);
        struct peal_cipher *fresh = peal_cipher_new(key, true);
        uint8_t copy[4], again[4];
        memcpy(copy, bytes, 4);
        assert_true(peal_cipher_seal(fresh, head, copy, 4, tag));
        memcpy(again, copy, 4);
        copy[0] ^= change == 1;
        tag[3] ^= change == 2;
        head[1] ^= change == 3;
        assert_int_equal(peal_cipher_open(open, head, copy, 4, tag), change == 0);
        head[1] = 0;
        if (change == 0) {
            assert_memory_equal(copy, bytes, 4);
            assert_false(peal_cipher_open(open, head, again, 4, tag)); /* the same record twice */
        }
        peal_cipher_free(open);
        peal_cipher_free(fresh);
    }
    peal_cipher_free(seal);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_refused_in_words),
        cmocka_unit_test(no_secret_is_refused_at_once),
        cmocka_unit_test(settings_that_make_no_sense_are_refused),
        cmocka_unit_test(interfaces_and_subnets_are_chosen),
        cmocka_unit_test(two_ranks_may_connect_at_once),
        cmocka_unit_test(who_was_never_connected_is_known_to_have_ended),
        cmocka_unit_test(what_was_sent_before_an_end_arrives),
        cmocka_unit_test(garbage_is_refused_in_words),
        cmocka_unit_test(a_proof_cannot_be_guessed),
        cmocka_unit_test(silent_strangers_do_not_keep_ranks_out),
        cmocka_unit_test(a_proof_fits_one_connection_and_one_side),
        cmocka_unit_test(records_cannot_be_changed_or_repeated),
    };
    if (!has_crypto()) {
        print_message("no libcrypto: ranks on several hosts are refused\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
