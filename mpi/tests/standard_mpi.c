/* SPDX-License-Identifier: Apache-2.0 */
/* A stand-in for an MPI with the standard ABI of MPI 5: libmpi_abi.so over Open MPI.
 *
 * Predefined handles are small numbers in the standard, and are converted to Open MPI's; all other
 * handles are pointers in both, and are passed on. Open MPI is loaded with its symbols hidden, and
 * finds its own functions first. Only the functions that the test program and libpeal_mpi.so call
 * are here. */
#include <dlfcn.h>
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>

static void *library(void)
{
    static void *found;
    if (!found)
        found = dlopen("libmpi.so.40", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
    return found ? found : (abort(), NULL);
}

static const struct {
    uintptr_t number;
    const char *symbol;
} handles[] = {
    {0x20, "ompi_mpi_op_null"},    {0x21, "ompi_mpi_op_sum"},     {0x22, "ompi_mpi_op_min"},
    {0x23, "ompi_mpi_op_max"},     {0x24, "ompi_mpi_op_prod"},    {0x28, "ompi_mpi_op_band"},
    {0x29, "ompi_mpi_op_bor"},     {0x2a, "ompi_mpi_op_bxor"},    {0x30, "ompi_mpi_op_land"},
    {0x31, "ompi_mpi_op_lor"},     {0x32, "ompi_mpi_op_lxor"},    {0x38, "ompi_mpi_op_minloc"},
    {0x39, "ompi_mpi_op_maxloc"},  {0x100, "ompi_mpi_comm_null"}, {0x101, "ompi_mpi_comm_world"},
    {0x102, "ompi_mpi_comm_self"}, {0x180, "ompi_request_null"},  {0x200, "ompi_mpi_datatype_null"},
    {0x209, "ompi_mpi_int"},       {0x20a, "ompi_mpi_long"},      {0x20d, "ompi_mpi_unsigned"},
    {0x210, "ompi_mpi_float"},     {0x214, "ompi_mpi_double"},    {0x229, "ompi_mpi_double_int"},
    {0x22b, "ompi_mpi_2int"},      {0x243, "ompi_mpi_char"},      {0x247, "ompi_mpi_byte"},
    {0x248, "ompi_mpi_int16_t"},   {0x259, "ompi_mpi_uint64_t"},
};

static void *H(const void *handle)
{
    if ((uintptr_t)handle >= 0x1000)
        return (void *)(uintptr_t)handle;
    for (size_t i = 0; i < sizeof handles / sizeof *handles; i++) {
        if (handles[i].number == (uintptr_t)handle)
            return dlsym(library(), handles[i].symbol);
    }
    abort(); /* a number that the standard does not define, or this test does not use */
}

/* Requests converted to Open MPI's, and back. */
static void in(int count, MPI_Request *requests)
{
    for (int i = 0; i < count; i++)
        requests[i] = H(requests[i]);
}

static int out(int code, int count, MPI_Request *requests)
{
    void *null = H((void *)0x180);
    for (int i = 0; i < count; i++) {
        if ((void *)requests[i] == null)
            requests[i] = (void *)0x180;
    }
    return code;
}

#define REAL(name) ((__typeof__(&PMPI_##name))dlsym(library(), "PMPI_" #name))

#define F(name, params, args)                                                                      \
    int PMPI_##name params                                                                         \
    {                                                                                              \
        return REAL(name) args;                                                                    \
    }                                                                                              \
    int MPI_##name params __attribute__((weak, alias("PMPI_" #name)));

/* Of requests. */
#define R(name, params, count, requests, args)                                                     \
    int PMPI_##name params                                                                         \
    {                                                                                              \
        in(count, requests);                                                                       \
        return out(REAL(name) args, count, requests);                                              \
    }                                                                                              \
    int MPI_##name params __attribute__((weak, alias("PMPI_" #name)));

#define SR const void *s, void *r, int n, MPI_Datatype t, MPI_Op o
#define TWO const void *s, int n, MPI_Datatype t, void *r, int m, MPI_Datatype u
typedef MPI_Comm C;
typedef MPI_Datatype T;
typedef MPI_Request Q;
typedef MPI_Status S;

F(Init, (int *argc, char ***argv), (argc, argv))
F(Finalize, (void), ())
F(Initialized, (int *flag), (flag))
F(Finalized, (int *flag), (flag))
F(Query_thread, (int *level), (level))
F(Barrier, (C c), (H(c)))
F(Bcast, (void *b, int n, T t, int root, C c), (b, n, H(t), root, H(c)))
F(Allreduce, (SR, C c), (s, r, n, H(t), H(o), H(c)))
F(Reduce, (SR, int root, C c), (s, r, n, H(t), H(o), root, H(c)))
F(Reduce_scatter_block, (SR, C c), (s, r, n, H(t), H(o), H(c)))
F(Reduce_scatter, (const void *s, void *r, const int n[], T t, MPI_Op o, C c),
  (s, r, n, H(t), H(o), H(c)))
F(Scan, (SR, C c), (s, r, n, H(t), H(o), H(c)))
F(Exscan, (SR, C c), (s, r, n, H(t), H(o), H(c)))
F(Allgather, (TWO, C c), (s, n, H(t), r, m, H(u), H(c)))
F(Alltoall, (TWO, C c), (s, n, H(t), r, m, H(u), H(c)))
F(Gather, (TWO, int root, C c), (s, n, H(t), r, m, H(u), root, H(c)))
F(Scatter, (TWO, int root, C c), (s, n, H(t), r, m, H(u), root, H(c)))
F(Allgatherv, (const void *s, int n, T t, void *r, const int m[], const int d[], T u, C c),
  (s, n, H(t), r, m, d, H(u), H(c)))
F(Gatherv, (const void *s, int n, T t, void *r, const int m[], const int d[], T u, int root, C c),
  (s, n, H(t), r, m, d, H(u), root, H(c)))
F(Scatterv, (const void *s, const int n[], const int d[], T t, void *r, int m, T u, int root, C c),
  (s, n, d, H(t), r, m, H(u), root, H(c)))
F(Alltoallv,
  (const void *s, const int n[], const int d[], T t, void *r, const int m[], const int e[], T u,
   C c),
  (s, n, d, H(t), r, m, e, H(u), H(c)))
F(Alltoallw,
  (const void *s, const int n[], const int d[], const T t[], void *r, const int m[], const int e[],
   const T u[], C c),
  (s, n, d, t, r, m, e, u, H(c)))
F(Ibarrier, (C c, Q *q), (H(c), q))
F(Ibcast, (void *b, int n, T t, int root, C c, Q *q), (b, n, H(t), root, H(c), q))
F(Iallreduce, (SR, C c, Q *q), (s, r, n, H(t), H(o), H(c), q))
F(Ireduce, (SR, int root, C c, Q *q), (s, r, n, H(t), H(o), root, H(c), q))
F(Ireduce_scatter_block, (SR, C c, Q *q), (s, r, n, H(t), H(o), H(c), q))
F(Ireduce_scatter, (const void *s, void *r, const int n[], T t, MPI_Op o, C c, Q *q),
  (s, r, n, H(t), H(o), H(c), q))
F(Iscan, (SR, C c, Q *q), (s, r, n, H(t), H(o), H(c), q))
F(Iexscan, (SR, C c, Q *q), (s, r, n, H(t), H(o), H(c), q))
F(Iallgather, (TWO, C c, Q *q), (s, n, H(t), r, m, H(u), H(c), q))
F(Ialltoall, (TWO, C c, Q *q), (s, n, H(t), r, m, H(u), H(c), q))
F(Igather, (TWO, int root, C c, Q *q), (s, n, H(t), r, m, H(u), root, H(c), q))
F(Iscatter, (TWO, int root, C c, Q *q), (s, n, H(t), r, m, H(u), root, H(c), q))
F(Iallgatherv, (const void *s, int n, T t, void *r, const int m[], const int d[], T u, C c, Q *q),
  (s, n, H(t), r, m, d, H(u), H(c), q))
F(Ialltoallv,
  (const void *s, const int n[], const int d[], T t, void *r, const int m[], const int e[], T u,
   C c, Q *q),
  (s, n, d, H(t), r, m, e, H(u), H(c), q))
F(Igatherv,
  (const void *s, int n, T t, void *r, const int m[], const int d[], T u, int root, C c, Q *q),
  (s, n, H(t), r, m, d, H(u), root, H(c), q))
F(Iscatterv,
  (const void *s, const int n[], const int d[], T t, void *r, int m, T u, int root, C c, Q *q),
  (s, n, d, H(t), r, m, H(u), root, H(c), q))
F(Ialltoallw,
  (const void *s, const int n[], const int d[], const T t[], void *r, const int m[], const int e[],
   const T u[], C c, Q *q),
  (s, n, d, t, r, m, e, u, H(c), q))
R(Wait, (Q * q, S *s), 1, q, (q, s))
R(Test, (Q * q, int *flag, S *s), 1, q, (q, flag, s))
R(Waitall, (int n, Q q[], S s[]), n, q, (n, q, s))
R(Testall, (int n, Q q[], int *flag, S s[]), n, q, (n, q, flag, s))
R(Waitany, (int n, Q q[], int *i, S *s), n, q, (n, q, i, s))
R(Testany, (int n, Q q[], int *i, int *flag, S *s), n, q, (n, q, i, flag, s))
R(Waitsome, (int n, Q q[], int *m, int i[], S s[]), n, q, (n, q, m, i, s))
R(Testsome, (int n, Q q[], int *m, int i[], S s[]), n, q, (n, q, m, i, s))
F(Request_get_status, (Q q, int *flag, S *s), (H(q), flag, s))
F(Grequest_start,
  (MPI_Grequest_query_function * a, MPI_Grequest_free_function *b, MPI_Grequest_cancel_function *c,
   void *x, Q *q),
  (a, b, c, x, q))
F(Grequest_complete, (Q q), (H(q)))
F(Status_set_elements, (S * s, T t, int n), (s, H(t), n))
F(Status_set_cancelled, (S * s, int flag), (s, flag))
F(Isend, (const void *s, int n, T t, int to, int tag, C c, Q *q), (s, n, H(t), to, tag, H(c), q))
F(Recv, (void *r, int n, T t, int from, int tag, C c, S *s), (r, n, H(t), from, tag, H(c), s))
F(Iprobe, (int from, int tag, C c, int *flag, S *s), (from, tag, H(c), flag, s))
F(Comm_split, (C c, int color, int key, C *d), (H(c), color, key, d))
F(Comm_dup, (C c, C *d), (H(c), d))
F(Comm_free, (C * c), (c))
F(Comm_create_keyval,
  (MPI_Comm_copy_attr_function * a, MPI_Comm_delete_attr_function *b, int *key, void *x),
  (a, b, key, x))
F(Comm_get_attr, (C c, int key, void *x, int *flag), (H(c), key, x, flag))
F(Comm_set_attr, (C c, int key, void *x), (H(c), key, x))
F(Comm_test_inter, (C c, int *flag), (H(c), flag))
F(Comm_rank, (C c, int *rank), (H(c), rank))
F(Comm_size, (C c, int *size), (H(c), size))
F(Comm_group, (C c, MPI_Group *g), (H(c), g))
F(Group_translate_ranks, (MPI_Group a, int n, const int *i, MPI_Group b, int *j), (a, n, i, b, j))
F(Group_free, (MPI_Group * g), (g))
F(Comm_get_name, (C c, char *name, int *len), (H(c), name, len))
F(Comm_call_errhandler, (C c, int code), (H(c), code))
F(Add_error_class, (int *n), (n))
F(Add_error_code, (int n, int *m), (n, m))
F(Add_error_string, (int n, const char *text), (n, text))
F(Type_size_x, (T t, MPI_Count *n), (H(t), n))
F(Type_get_extent, (T t, MPI_Aint *lb, MPI_Aint *extent), (H(t), lb, extent))
F(Type_vector, (int n, int m, int step, T t, T *u), (n, m, step, H(t), u))
F(Type_contiguous, (int n, T t, T *u), (n, H(t), u))
F(Type_create_hindexed_block, (int n, int m, const MPI_Aint *at, T t, T *u), (n, m, at, H(t), u))
F(Type_commit, (T * t), (t))
F(Type_free, (T * t), (t))
F(Pack, (const void *s, int n, T t, void *r, int m, int *at, C c), (s, n, H(t), r, m, at, H(c)))
F(Unpack, (const void *s, int m, int *at, void *r, int n, T t, C c), (s, m, at, r, n, H(t), H(c)))
