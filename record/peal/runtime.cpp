// SPDX-License-Identifier: Apache-2.0
// The part of a recording process that is not the kernel: it writes events, lays out arguments, and is
// what the kernel's scalar loads and stores report to. The kernel is compiled with -fsanitize=thread,
// which puts a call before every load and store; this file has those calls, and is compiled without.
#include "peal/record.hpp"
#include "platform_comm/comm_context.h"
#include "tensor.h"

#include <cxxabi.h>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <csignal>
#include <dlfcn.h>
#include <initializer_list>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

namespace {

const rec_job *job;

// Not exit or _exit, which are refused below.
[[noreturn]] void leave(int code) {
    for (;;) syscall(SYS_exit_group, code);
}

alignas(8) unsigned char buffer[1 << 16];
size_t used;
uint64_t text_begin;

void flush() {
    for (size_t done = 0; done < used;) {
        ssize_t n = write(job->fd, buffer + done, used - done);
        if (n <= 0) leave(3);
        done += static_cast<size_t>(n);
    }
    used = 0;
}

void put(const void *bytes, size_t n) {
    if (used + n > sizeof buffer) flush();
    std::memcpy(buffer + used, bytes, n);
    used += n;
}

struct name {
    const char *text;
    uint32_t number;
};
name names[4096];
uint32_t nnames;

// Strings are literals: their address tells them apart, and equal ones may be sent twice.
uint32_t intern(const char *text) {
    if (!text) return 0;
    for (uint32_t i = nnames; i-- > 0;) {
        if (names[i].text == text) return names[i].number;
    }
    if (nnames == sizeof names / sizeof *names) return 0;
    size_t len = std::strlen(text);
    if (len > 4000) len = 4000;
    rec_event e = {};
    char padded[4008] = {};
    e.kind = REC_STRING;
    e.a = static_cast<int64_t>(len);
    std::memcpy(padded, text, len);
    put(&e, sizeof e);
    put(padded, (len + 7) / 8 * 8);
    names[nnames] = {text, nnames + 1};
    return names[nnames++].number;
}

// A store that the compiler announced and that has not happened yet: its value is read when the next
// thing happens.
struct {
    bool waits;
    uint64_t address;
    uint32_t bytes;
    rec_event place;
} store;

// TTEST said no, and nothing happened since.
struct {
    bool open;
    uint64_t address;
    int64_t value;
    int compare;
    uint32_t line;
} test;

struct {
    uint64_t address, pc, often;
    uint32_t line;
} load;

const rec_region *find(uint64_t address) {
    for (uint32_t i = 0; i < job->nregions; i++) {
        if (address - job->regions[i].address < job->regions[i].bytes) return &job->regions[i];
    }
    return nullptr;
}

// Memory is mapped in pages: what is left of the last one belongs to nothing.
bool is_beyond(uint64_t address) {
    enum { PAGE = 4096 };
    for (uint32_t i = 0; i < job->nregions; i++) {
        uint64_t at = address - job->regions[i].address, bytes = job->regions[i].bytes;
        if (at >= bytes && at < (bytes + PAGE - 1) / PAGE * PAGE) return true;
    }
    return false;
}

// The type of a scalar of this size: that of its region, or an integer.
uint8_t scalar_type(const rec_region *region, uint32_t bytes) {
    static const uint8_t integers[] = {0, REC_U8, REC_I16, 0, REC_I32, 0, 0, 0, REC_I64};
    return rec_size(static_cast<uint8_t>(region->dtype)) == bytes ? static_cast<uint8_t>(region->dtype)
                                                                   : integers[bytes];
}

double value_at(uint64_t address, uint8_t dtype) {
    const void *at = reinterpret_cast<const void *>(address);
    switch (dtype) {
#define CASE(type, c)                    \
    case type: {                         \
        c v;                             \
        std::memcpy(&v, at, sizeof v);   \
        return static_cast<double>(v);   \
    }
        CASE(REC_F32, float)
        CASE(REC_F64, double)
        CASE(REC_I8, int8_t)
        CASE(REC_U8, uint8_t)
        CASE(REC_I16, int16_t)
        CASE(REC_U16, uint16_t)
        CASE(REC_I32, int32_t)
        CASE(REC_U32, uint32_t)
        CASE(REC_I64, int64_t)
        CASE(REC_U64, uint64_t)
#undef CASE
    }
    return 0;
}

void end_store() {
    if (!store.waits) return;
    store.waits = false;
    const rec_region *region = find(store.address);
    rec_event e = store.place;
    e.kind = REC_WRITE;
    e.ndst = e.nsrc = 1;
    uint8_t dtype = scalar_type(region, store.bytes);
    rec_span dst = rec_flat(store.address, 1, dtype);
    rec_span src = rec_number(value_at(store.address, dtype), dtype);
    put(&e, sizeof e);
    put(&dst, sizeof dst);
    put(&src, sizeof src);
}

void begin_event() {
    end_store();
    load = {};
    if (test.open) {
        test.open = false;
        rec_refuse("TTEST", "its answer steers the kernel: only a loop that does nothing but TTEST can be recorded, as a wait",
                   "", test.line);
    }
}

[[noreturn]] void refuse_here(rec_event e, const char *why) {
    e.kind = REC_REFUSE;
    e.c = intern(why);
    put(&e, sizeof e);
    flush();
    leave(0);
}

bool is_inside(uint64_t pc) {
    Dl_info info;
    return dladdr(reinterpret_cast<void *>(pc), &info) && reinterpret_cast<uint64_t>(info.dli_fbase) == job->base;
}

// The places in this object from `start` outwards. Which of them is the kernel's own is seen by their files.
struct frames {
    uint64_t start;
    bool found;
    int n;
};
void put_frame(uint64_t pc) {
    rec_event e = {};
    e.kind = REC_FRAME;
    e.pc = pc - job->base;
    put(&e, sizeof e);
}
_Unwind_Reason_Code add_frame(_Unwind_Context *context, void *data) {
    enum { MANY = 64 };
    frames *f = static_cast<frames *>(data);
    int exact = 0;
    uint64_t pc = _Unwind_GetIPInfo(context, &exact);
    f->found = f->found || pc == f->start;
    if (f->found && is_inside(pc)) {
        put_frame(exact ? pc : pc - 1);
        f->n++;
    }
    return f->n < MANY ? _URC_NO_REASON : _URC_END_OF_STACK;
}

[[noreturn]] void refuse_from(uint64_t start, const char *why) {
    frames f = {start, false, 0};
    _Unwind_Backtrace(add_frame, &f);
    if (!f.n && is_inside(start)) put_frame(start);
    refuse_here({}, why);
}
[[noreturn]] void refuse_at(void *caller, const char *why) { refuse_from(reinterpret_cast<uint64_t>(caller), why); }

rec_event at_pc(void *caller) {
    rec_event e = {};
    if (job) e.pc = reinterpret_cast<uint64_t>(caller) - job->base - 1;
    return e;
}

// A load that one instruction repeats while nothing else happens is recorded once. `place` says where it is.
void access(uint64_t address, uint32_t bytes, bool writes, rec_event place) {
    enum { MANY = 10000 };
    const rec_region *region = job ? find(address) : nullptr;
    if (!region) {
        if (job && is_beyond(address)) refuse_here(place, "the kernel uses memory here that is beyond the end of what it was given");
        return;
    }
    if (writes) {
        begin_event();
        store = {true, address, bytes, place};
        return;
    }
    bool again = load.address == address && load.pc == place.pc && load.line == place.line && !store.waits && !test.open;
    rec_event e = place;
    if (again && ++load.often > MANY)
        refuse_here(e, "this loop waits for memory by plain loads, and what it waits for cannot be seen: TWAIT and TTEST can be "
                       "recorded");
    if (again) return;
    begin_event();
    load = {address, place.pc, 1, place.line};
    e.kind = REC_READ;
    e.nsrc = 1;
    e.a = region->known;
    rec_span src = rec_flat(address, 1, scalar_type(region, bytes));
    put(&e, sizeof e);
    put(&src, sizeof src);
}

void crashed(int signal, siginfo_t *info, void *context) {
    bool is_null = signal == SIGSEGV && reinterpret_cast<uint64_t>(info->si_addr) < 4096;
    used = used / 8 * 8;
#if defined(__x86_64__)
    uint64_t pc = static_cast<uint64_t>(static_cast<ucontext_t *>(context)->uc_mcontext.gregs[REG_RIP]);
#elif defined(__aarch64__)
    uint64_t pc = static_cast<ucontext_t *>(context)->uc_mcontext.pc;
#else
    uint64_t pc = 0;
#endif
    refuse_from(pc, signal == SIGFPE    ? "the kernel divides by zero here"
                    : signal == SIGABRT ? "the kernel ends itself here"
                    : signal == SIGILL  ? "the kernel has an instruction here that this processor does not know"
                    : is_null           ? "the kernel uses memory at address 0 here: is an argument missing in --args?"
                    : signal == SIGXCPU ? "the kernel is here when its time is over: a loop without end?"
                                        : "the kernel uses memory here that it was not given");
}

} // namespace

void rec_put(rec_event e, const char *op, const char *text, const char *file, const rec_span *spans) {
    begin_event();
    e.op = intern(op);
    if (text) e.c = intern(text);
    e.file = intern(file);
    if (file) {
        rec_last_line = static_cast<int>(e.line);
        rec_last_file = file;
    }
    put(&e, sizeof e);
    put(spans, (size_t(e.ndst) + e.nsrc) * sizeof *spans);
}

void rec_refuse(const char *op, const char *why, const char *file, int line) {
    rec_event e = {};
    char *text = static_cast<char *>(std::malloc(std::strlen(op) + std::strlen(why) + 3));
    std::sprintf(text, "%s: %s", op, why);
    e.kind = REC_REFUSE;
    e.line = static_cast<uint32_t>(line);
    e.c = intern(text);
    e.file = intern(file);
    put(&e, sizeof e);
    flush();
    leave(0);
}

void rec_scalar(uint64_t address, uint32_t bytes, bool writes, int line, const char *file) {
    rec_event e = {};
    e.line = static_cast<uint32_t>(line);
    e.file = intern(file);
    access(address, bytes, writes, e);
}

// A loop of TTEST that does nothing else is a wait: the second time in a row.
bool rec_test(rec_event e, const char *op, const char *file, const rec_span *cell) {
    bool again = test.open && test.address == cell->address && test.value == e.a && test.compare == e.b &&
                 test.line == e.line;
    if (again) {
        test.open = false;
        rec_put(e, op, nullptr, file, cell);
        rec_event polled = {};
        polled.kind = REC_POLLED;
        rec_put(polled, nullptr, nullptr, nullptr, nullptr);
        return true;
    }
    begin_event();
    test = {true, cell->address, e.a, static_cast<int>(e.b), e.line};
    return false;
}

int32_t rec_block, rec_blocks = 1;
int rec_last_line;
const char *rec_last_file = "";

static void mark(rec_kind kind, int64_t a) {
    rec_event e = {};
    e.kind = kind;
    e.a = a;
    rec_put(e, nullptr, nullptr, nullptr, nullptr);
}

static void call(const rec_call &kernel, const int64_t *all) {
    using i = int64_t;
    int64_t args[REC_MAX_ARGS + 16] = {};
    for (uint32_t k = 0; k < kernel.nargs; k++) args[k] = all[kernel.args[k]];
    if (job->packed) {
        reinterpret_cast<void (*)(int64_t *)>(kernel.entry)(args);
        return;
    }
    reinterpret_cast<void (*)(i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i)>(kernel.entry)(
        args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[7], args[8], args[9], args[10], args[11],
        args[12], args[13], args[14], args[15]);
}

extern "C" void peal_rec_run(const rec_job *given) {
    static CommContext context;
    static ChipTensor tensors[REC_MAX_ARGS];
    int64_t args[REC_MAX_ARGS] = {};
    struct sigaction act = {};
    job = given;
    act.sa_sigaction = crashed;
    act.sa_flags = SA_SIGINFO | SA_ONSTACK;
    static char stack[1 << 16]; // for the signal of a stack that is full
    stack_t other = {};
    other.ss_sp = stack;
    other.ss_size = sizeof stack;
    sigaltstack(&other, nullptr);
    for (int s : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGXCPU}) sigaction(s, &act, nullptr);
    context.rankId = job->rank;
    context.rankNum = job->ranks;
    context.winSize = job->window_bytes;
    for (uint32_t r = 0; r < job->ranks; r++) context.windowsIn[r] = context.windowsOut[r] = job->windows[r];
    for (uint32_t i = 0; i < job->nargs; i++) {
        const rec_arg *a = &job->args[i];
        if (a->kind == rec_arg::REC_ARG_INT) {
            args[i] = a->value;
        } else if (a->kind == rec_arg::REC_ARG_CONTEXT) {
            args[i] = reinterpret_cast<int64_t>(&context);
        } else if (!job->packed) {
            args[i] = static_cast<int64_t>(a->address);
        } else {
            ChipTensor *t = &tensors[i];
            t->buffer.addr = a->address;
            t->buffer.size = a->bytes;
            t->ndims = a->ndims;
            uint32_t stride = 1;
            for (uint32_t d = a->ndims; d-- > 0;) {
                t->shapes[d] = a->shape[d];
                t->strides[d] = stride;
                stride *= a->shape[d];
            }
            args[i] = reinterpret_cast<int64_t>(t);
        }
    }
    rec_blocks = static_cast<int32_t>(job->blocks);
    for (uint32_t c = 0; c < job->ncalls; c++) {
        if (c > 0) mark(REC_JOIN, 0);
        for (rec_block = 0; rec_block < rec_blocks; rec_block++) {
            mark(REC_BLOCK, rec_block);
            call(job->calls[c], args);
            begin_event();
        }
    }
    mark(REC_END, 0);
    flush();
}

// What a kernel cannot do in a recording, because it would not be seen or would differ from run to run. These are in
// place of the system's, for the kernel alone, unless it has functions of its own by these names.
#define INSTEAD(id, symbol, words)                                                       \
    extern "C" __attribute__((weak)) void *rec_no_##id() asm(symbol);                    \
    extern "C" void *rec_no_##id() {                                                     \
        if (job) refuse_at(__builtin_return_address(0), words ", which cannot be recorded"); \
        return nullptr;                                                                  \
    }
#define NO(name) INSTEAD(name, #name, "the kernel calls " #name)
#define NO_FILES(name) INSTEAD(name, #name, "the kernel uses files by " #name)
#define NO_CLOCK(name) INSTEAD(name, #name, "the kernel reads a clock by " #name)
#define NO_CHANCE(name) INSTEAD(name, #name, "the kernel asks for random numbers by " #name)
NO(fork) NO(vfork) NO(clone) NO(system) NO(popen) NO(posix_spawn) NO(posix_spawnp) NO(execv) NO(execve) NO(execvp) NO(execl) NO(execlp)
NO(exit) NO(_exit) NO(_Exit) NO(quick_exit) NO(kill) NO(raise) NO(pthread_create) NO(thrd_create)
NO(dlopen) NO(dlsym) NO(socket) NO(pipe) NO(mmap) NO(shm_open) NO(ptrace) NO(getenv) NO(secure_getenv) NO(getpid)
NO_FILES(fopen) NO_FILES(fopen64) NO_FILES(freopen) NO_FILES(open) NO_FILES(open64) NO_FILES(openat) NO_FILES(creat)
NO_FILES(tmpfile) NO_FILES(mkstemp) NO_FILES(opendir) NO_FILES(remove) NO_FILES(unlink) NO_FILES(rename) NO_FILES(mkdir)
INSTEAD(filebuf, "_ZNSt13basic_filebufIcSt11char_traitsIcEE4openEPKcSt13_Ios_Openmode", "the kernel uses files")
INSTEAD(ifstream, "_ZNSt14basic_ifstreamIcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode", "the kernel uses files")
INSTEAD(ofstream, "_ZNSt14basic_ofstreamIcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode", "the kernel uses files")
INSTEAD(fstream, "_ZNSt13basic_fstreamIcSt11char_traitsIcEEC1EPKcSt13_Ios_Openmode", "the kernel uses files")
NO_CLOCK(time) NO_CLOCK(clock) NO_CLOCK(clock_gettime) NO_CLOCK(gettimeofday) NO_CLOCK(timespec_get) NO_CLOCK(ftime)
INSTEAD(system_clock, "_ZNSt6chrono3_V212system_clock3nowEv", "the kernel reads a clock")
INSTEAD(steady_clock, "_ZNSt6chrono3_V212steady_clock3nowEv", "the kernel reads a clock")
NO_CHANCE(rand) NO_CHANCE(rand_r) NO_CHANCE(random) NO_CHANCE(drand48) NO_CHANCE(erand48) NO_CHANCE(lrand48) NO_CHANCE(mrand48)
NO_CHANCE(getrandom) NO_CHANCE(getentropy) NO_CHANCE(arc4random)
INSTEAD(random_device, "_ZNSt13random_device9_M_getvalEv", "the kernel asks for random numbers")
INSTEAD(random_token, "_ZNSt13random_device7_M_initERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
        "the kernel asks for random numbers")
INSTEAD(thread, "_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE", "the kernel starts a thread")

extern "C" char *rec_demangle(const char *symbol) {
    int status;
    return abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
}

// Functions that are nowhere: see compile.c.
extern "C" void rec_missing(void *caller, const char *symbol) {
    char why[1024];
    char *name = rec_demangle(symbol);
    std::snprintf(why, sizeof why, "the kernel calls '%.900s', which is not there", name ? name : symbol);
    refuse_at(caller, why);
}

// Atomics of C++. Those of memory that ranks share would have to be ops.
static void check_atomic(const volatile void *at, void *caller) {
    if (job && find(uint64_t(at)))
        refuse_at(caller, "an atomic of C++ on memory that the kernel was given: TNOTIFY, TWAIT and TSTORE with AtomicAdd are recorded");
}
#define ATOMIC_FETCH(n, T, op)                                                    \
    extern "C" T __tsan_atomic##n##_fetch_##op(volatile T *at, T v, int) {        \
        check_atomic(at, __builtin_return_address(0));                            \
        return __atomic_fetch_##op(at, v, __ATOMIC_SEQ_CST);                      \
    }
#define ATOMIC(n, T)                                                              \
    extern "C" T __tsan_atomic##n##_load(const volatile T *at, int) {             \
        check_atomic(at, __builtin_return_address(0));                            \
        return __atomic_load_n(at, __ATOMIC_SEQ_CST);                             \
    }                                                                             \
    extern "C" void __tsan_atomic##n##_store(volatile T *at, T v, int) {          \
        check_atomic(at, __builtin_return_address(0));                            \
        __atomic_store_n(at, v, __ATOMIC_SEQ_CST);                                \
    }                                                                             \
    extern "C" T __tsan_atomic##n##_exchange(volatile T *at, T v, int) {          \
        check_atomic(at, __builtin_return_address(0));                            \
        return __atomic_exchange_n(at, v, __ATOMIC_SEQ_CST);                      \
    }                                                                             \
    ATOMIC_FETCH(n, T, add) ATOMIC_FETCH(n, T, sub) ATOMIC_FETCH(n, T, and) ATOMIC_FETCH(n, T, or) ATOMIC_FETCH(n, T, xor) \
    extern "C" int __tsan_atomic##n##_compare_exchange_strong(volatile T *at, T *was, T v, int, int) { \
        check_atomic(at, __builtin_return_address(0));                            \
        return __atomic_compare_exchange_n(at, was, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }                                                                             \
    extern "C" int __tsan_atomic##n##_compare_exchange_weak(volatile T *at, T *was, T v, int, int) { \
        check_atomic(at, __builtin_return_address(0));                            \
        return __atomic_compare_exchange_n(at, was, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    }
ATOMIC(8, uint8_t) ATOMIC(16, uint16_t) ATOMIC(32, uint32_t) ATOMIC(64, uint64_t)
extern "C" void __tsan_atomic_thread_fence(int) {}
extern "C" void __tsan_atomic_signal_fence(int) {}

#define RW(n)                                                                                                       \
    extern "C" void __tsan_read##n(void *at) { access(uint64_t(at), n, false, at_pc(__builtin_return_address(0))); }        \
    extern "C" void __tsan_write##n(void *at) { access(uint64_t(at), n, true, at_pc(__builtin_return_address(0))); }        \
    extern "C" void __tsan_unaligned_read##n(void *at) { access(uint64_t(at), n, false, at_pc(__builtin_return_address(0))); } \
    extern "C" void __tsan_unaligned_write##n(void *at) { access(uint64_t(at), n, true, at_pc(__builtin_return_address(0))); } \
    extern "C" void __tsan_volatile_read##n(void *at) { access(uint64_t(at), n, false, at_pc(__builtin_return_address(0))); } \
    extern "C" void __tsan_volatile_write##n(void *at) { access(uint64_t(at), n, true, at_pc(__builtin_return_address(0))); }
RW(1) RW(2) RW(4) RW(8)
extern "C" void __tsan_read16(void *at) {
    access(uint64_t(at), 8, false, at_pc(__builtin_return_address(0)));
    access(uint64_t(at) + 8, 8, false, at_pc(__builtin_return_address(0)));
}
extern "C" void __tsan_write16(void *at) {
    access(uint64_t(at), 8, true, at_pc(__builtin_return_address(0)));
    access(uint64_t(at) + 8, 8, true, at_pc(__builtin_return_address(0)));
}
extern "C" void __tsan_unaligned_read16(void *at) { __tsan_read16(at); }
extern "C" void __tsan_unaligned_write16(void *at) { __tsan_write16(at); }
// Ranges, of copies of structures and of memcpy and memset.
static void range(uint64_t at, uint64_t n, bool writes, rec_event place) {
    for (uint64_t i = 0; i < n; i++) access(at + i, 1, writes, place);
}
extern "C" void __tsan_read_range(void *at, unsigned long n) { range(uint64_t(at), n, false, at_pc(__builtin_return_address(0))); }
extern "C" void __tsan_write_range(void *at, unsigned long n) { range(uint64_t(at), n, true, at_pc(__builtin_return_address(0))); }
extern "C" void *__tsan_memcpy(void *to, const void *from, unsigned long n) {
    range(uint64_t(from), n, false, at_pc(__builtin_return_address(0)));
    range(uint64_t(to), n, true, at_pc(__builtin_return_address(0)));
    return std::memcpy(to, from, n);
}
extern "C" void *__tsan_memmove(void *to, const void *from, unsigned long n) {
    range(uint64_t(from), n, false, at_pc(__builtin_return_address(0)));
    range(uint64_t(to), n, true, at_pc(__builtin_return_address(0)));
    return std::memmove(to, from, n);
}
extern "C" void *__tsan_memset(void *to, int c, unsigned long n) {
    range(uint64_t(to), n, true, at_pc(__builtin_return_address(0)));
    return std::memset(to, c, n);
}
extern "C" void __tsan_init() {}
extern "C" void __tsan_func_entry(void *) {}
extern "C" void __tsan_func_exit() {}
extern "C" void __tsan_vptr_read(void **) {}
extern "C" void __tsan_vptr_update(void **, void *) {}
