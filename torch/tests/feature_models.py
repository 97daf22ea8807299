# SPDX-License-Identifier: Apache-2.0
"""Features of features.py: DDP, sharding, meshes, pipelines, functional and compiled collectives, checkpoints."""
import datetime
import tempfile

from common import dist, torch
from feature_table import FEATURES, Absent, feature, have, total, whole

# ---- DDP ----

def network(seed=1):
    torch.manual_seed(seed)
    return torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))


def train(model, rank, steps=3, optimizer=None):
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        torch.manual_seed(100 * step + rank)
        model(torch.randn(6, 8)).square().sum().backward()
        optimizer.step()
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def same_everywhere(x, world):
    parts = [torch.empty_like(x) for _ in range(world)]
    dist.all_gather(parts, x)
    assert all(torch.equal(part, x) for part in parts), "ranks differ"


def _ddp(name, hook=None, **more):
    def run(rank, world):
        model = torch.nn.parallel.DistributedDataParallel(network(), **more)
        if hook:
            hook(model)
        same_everywhere(train(model, rank), world)
    FEATURES[name] = run


def _hook(module, name):
    return lambda model: model.register_comm_hook(None, have(module, name))


DEFAULT_HOOKS = "torch.distributed.algorithms.ddp_comm_hooks.default_hooks"
_ddp("ddp")
_ddp("ddp_gradient_as_bucket_view", gradient_as_bucket_view=True)
_ddp("ddp_static_graph", static_graph=True)
_ddp("ddp_find_unused_parameters", find_unused_parameters=True)
_ddp("ddp_small_buckets", bucket_cap_mb=0.0001)
_ddp("ddp_hook_allreduce", _hook(DEFAULT_HOOKS, "allreduce_hook"))
_ddp("ddp_hook_fp16", _hook(DEFAULT_HOOKS, "fp16_compress_hook"))
_ddp("ddp_hook_bf16", _hook(DEFAULT_HOOKS, "bf16_compress_hook"))


@feature
def ddp_hook_powersgd(rank, world):
    state_class, hook = have("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook", "PowerSGDState", "powerSGD_hook")
    model = torch.nn.parallel.DistributedDataParallel(network())
    model.register_comm_hook(state_class(None, matrix_approximation_rank=1, start_powerSGD_iter=2), hook)
    same_everywhere(train(model, rank, 4), world)


@feature
def ddp_no_sync(rank, world):
    model = torch.nn.parallel.DistributedDataParallel(network())
    with model.no_sync():
        model(torch.randn(2, 8)).sum().backward()
    same_everywhere(train(model, rank), world)


@feature
def ddp_join_uneven_inputs(rank, world):
    model = torch.nn.parallel.DistributedDataParallel(network())
    with model.join():
        for _ in range(2 + rank):
            model(torch.randn(2, 8)).sum().backward()


@feature
def ddp_batch_norm_buffers(rank, world):
    torch.manual_seed(0)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8)))
    same_everywhere(train(model, rank), world)


@feature
def zero_redundancy_optimizer(rank, world):
    zero = have("torch.distributed.optim", "ZeroRedundancyOptimizer")
    model = torch.nn.parallel.DistributedDataParallel(network())
    same_everywhere(train(model, rank, optimizer=zero(model.parameters(), torch.optim.Adam, lr=0.01)), world)


@feature
def post_local_sgd(rank, world):
    averager = have("torch.distributed.algorithms.model_averaging.averagers", "PeriodicModelAverager")(period=1)
    model = network(rank)
    train(model, rank)
    averager.average_parameters(model.parameters())
    same_everywhere(torch.cat([p.detach().flatten() for p in model.parameters()]), world)


# ---- FSDP, meshes, DTensor ----

def needs_2():
    if int(torch.__version__.split(".")[0]) < 2:
        raise Absent("torch 2")


@feature
def fsdp(rank, world):
    needs_2()
    model = have("torch.distributed.fsdp", "FullyShardedDataParallel")(network(), device_id=torch.device("cpu"))
    train(model, rank)


@feature
def fsdp_no_shard(rank, world):
    needs_2()
    wrap, strategy = have("torch.distributed.fsdp", "FullyShardedDataParallel", "ShardingStrategy")
    train(wrap(network(), device_id=torch.device("cpu"), sharding_strategy=strategy.NO_SHARD), rank)


@feature
def fsdp_shard_grad_op(rank, world):
    needs_2()
    wrap, strategy = have("torch.distributed.fsdp", "FullyShardedDataParallel", "ShardingStrategy")
    train(wrap(network(), device_id=torch.device("cpu"), sharding_strategy=strategy.SHARD_GRAD_OP), rank)


@feature
def fsdp2(rank, world):
    needs_2()
    fully_shard = have("torch.distributed.fsdp", "fully_shard")
    model = network()
    fully_shard(model, mesh=cpu_mesh(world))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        model(torch.randn(4, 8)).sum().backward()
        optimizer.step()


def cpu_mesh(*shape, names=None):
    make = have("torch.distributed.device_mesh", "init_device_mesh")
    return make("cpu", tuple(shape), mesh_dim_names=names)


@feature
def device_mesh(rank, world):
    mesh = cpu_mesh(world, 1, names=("data", "model"))
    x = torch.ones(4)
    dist.all_reduce(x, group=mesh.get_group("data"))
    assert x[0] == world and mesh["model"].size() == 1


@feature
def dtensor(rank, world):
    distribute, shard, replicate = have("torch.distributed.tensor", "distribute_tensor", "Shard", "Replicate")
    x = distribute(torch.arange(world * 4.0).reshape(world * 2, 2), cpu_mesh(world), [shard(0)])
    assert torch.equal(x.full_tensor(), torch.arange(world * 4.0).reshape(world * 2, 2))
    assert torch.equal((x @ x.t()).redistribute(placements=[replicate()]).to_local(), x.full_tensor() @ x.full_tensor().t())


@feature
def dtensor_partial_sum(rank, world):
    make, partial, replicate = have("torch.distributed.tensor", "DTensor", "Partial", "Replicate")
    x = make.from_local(torch.ones(4), cpu_mesh(world), [partial()])
    assert x.redistribute(placements=[replicate()]).to_local()[0] == world


@feature
def dtensor_all_to_all(rank, world):
    distribute, shard = have("torch.distributed.tensor", "distribute_tensor", "Shard")
    x = distribute(torch.arange(float(4 * world * world)).reshape(2 * world, 2 * world), cpu_mesh(world), [shard(0)])
    y = x.redistribute(placements=[shard(1)])
    assert torch.equal(y.full_tensor(), x.full_tensor())


def parallelized(plan_of, world, inputs=None):
    parallelize = have("torch.distributed.tensor.parallel", "parallelize_module")
    torch.manual_seed(0)
    plain = network()
    torch.manual_seed(0)
    parallel = parallelize(network(), cpu_mesh(world), plan_of())
    torch.manual_seed(7)
    x = torch.randn(2 * world, 8)
    wanted, got = plain(x), parallel(x)
    got = got.full_tensor() if hasattr(got, "full_tensor") else got
    assert torch.allclose(got, wanted, atol=1e-5)
    got.sum().backward()


@feature
def tensor_parallel(rank, world):
    col, row = have("torch.distributed.tensor.parallel", "ColwiseParallel", "RowwiseParallel")
    parallelized(lambda: {"0": col(), "2": row()}, world)


@feature
def sequence_parallel(rank, world):
    sequence, parallelize = have("torch.distributed.tensor.parallel", "SequenceParallel", "parallelize_module")
    make, shard = have("torch.distributed.tensor", "distribute_tensor", "Shard")
    mesh, norm = cpu_mesh(world), torch.nn.LayerNorm(8)
    torch.manual_seed(0)
    x = torch.randn(1, 3 * world, 8)
    wanted = norm(x)
    got = parallelize(norm, mesh, sequence())(make(x, mesh, [shard(1)]))
    assert torch.allclose(got.full_tensor(), wanted)


@feature
def loss_parallel(rank, world):
    loss = have("torch.distributed.tensor.parallel", "loss_parallel")
    make, shard = have("torch.distributed.tensor", "distribute_tensor", "Shard")
    torch.manual_seed(0)
    logits, target = torch.randn(4, 4 * world, requires_grad=True), torch.tensor([0, 1, 2, 3])
    wanted = torch.nn.functional.cross_entropy(logits, target)
    spread = make(logits.detach().requires_grad_(True), cpu_mesh(world), [shard(1)])
    with loss():
        got = torch.nn.functional.cross_entropy(spread, target)
        got.backward()
    assert torch.allclose(got.full_tensor(), wanted)


@feature
def hybrid_sharding(rank, world):
    wrap = have("torch.distributed.fsdp", "fully_shard")
    model = network()
    wrap(model, mesh=cpu_mesh(1, world, names=("replicate", "shard")))
    model(torch.randn(4, 8)).sum().backward()


# ---- pipelines, functional collectives, compiled, checkpoints ----

def _pipeline(schedule_name, chunks):
    def run(rank, world):
        stage_class, schedule = have("torch.distributed.pipelining", "PipelineStage", schedule_name)
        torch.manual_seed(0)
        layers = [torch.nn.Linear(8, 8) for _ in range(world)]
        stage = stage_class(layers[rank], rank, world, torch.device("cpu"))
        plan = schedule(stage, chunks, loss_fn=lambda y, target: (y - target).square().sum())
        torch.manual_seed(3)
        x, target = torch.randn(4, 8), torch.randn(4, 8)
        losses = []
        if rank == 0:
            plan.step(x, **({"target": target, "losses": losses} if world == 1 else {}))
        elif rank == world - 1:
            plan.step(target=target, losses=losses)
        else:
            plan.step()
        wanted = x
        for layer in layers:
            wanted = layer(wanted)
        if rank == world - 1:
            assert abs(float(sum(losses)) - float((wanted - target).square().sum())) < 1e-3
        assert layers[rank].weight.grad is not None
    FEATURES[f"pipeline_{schedule_name.lower()}"] = run


_pipeline("ScheduleGPipe", 2)
_pipeline("Schedule1F1B", 2)

FUNCTIONAL = "torch.distributed._functional_collectives"


def _functional(name, body):
    def eager(rank, world):
        body(have(FUNCTIONAL, name.split("__")[0]), rank, world)

    def compiled(rank, world):
        needs_2()
        function = have(FUNCTIONAL, name.split("__")[0])
        body(function, rank, world, lambda f: torch.compile(f, backend="aot_eager", fullgraph=True))

    FEATURES[f"functional_{name}"], FEATURES[f"compiled_{name}"] = eager, compiled


def _functional_all_reduce(call, rank, world, wrap=lambda f: f):
    group = dist.group.WORLD
    out = wrap(lambda x: call(x + 0, "sum", group) * 2)(torch.full((4,), float(rank)))
    assert out[0] == 2 * total(world)


def _functional_all_gather(call, rank, world, wrap=lambda f: f):
    group = dist.group.WORLD
    out = wrap(lambda x: call(x + 0, 0, group) * 1)(torch.full((4,), float(rank)))
    assert torch.equal(out + 0, torch.arange(world).repeat_interleave(4).float())


def _functional_reduce_scatter(call, rank, world, wrap=lambda f: f):
    group = dist.group.WORLD
    out = wrap(lambda x: call(x + 0, "sum", 0, group) * 1)(torch.arange(world * 2.0))
    assert out[0] == world * 2 * rank


def _functional_all_to_all(call, rank, world, wrap=lambda f: f):
    group = dist.group.WORLD
    splits = [2] * world
    out = wrap(lambda x: call(x + 0, splits, splits, group) * 1)(torch.arange(world).repeat_interleave(2).float())
    assert torch.equal(out + 0, torch.full((2 * world,), float(rank)))


def _functional_broadcast(call, rank, world, wrap=lambda f: f):
    group = dist.group.WORLD
    out = wrap(lambda x: call(x + 0, 0, group) * 1)(torch.full((4,), float(rank)))
    assert out[0] == 0


_functional("all_reduce", _functional_all_reduce)
_functional("all_gather_tensor", _functional_all_gather)
_functional("reduce_scatter_tensor", _functional_reduce_scatter)
_functional("all_to_all_single", _functional_all_to_all)
_functional("broadcast", _functional_broadcast)


@feature
def compiled_dist_all_reduce(rank, world):
    needs_2()

    @torch.compile(backend="aot_eager", fullgraph=True)
    def step(x):
        x = x * 2
        dist.all_reduce(x)
        return x + 1

    assert step(torch.ones(4))[0] == 2 * world + 1


@feature
def compiled_ddp(rank, world):
    needs_2()
    model = torch.nn.parallel.DistributedDataParallel(network())
    same_everywhere(train(torch.compile(model, backend="aot_eager"), rank), world)


@feature
def autograd_collectives(rank, world):
    module = have("torch.distributed.nn.functional", "all_reduce")
    x = torch.full((4,), float(rank), requires_grad=True)
    module(x).sum().backward()
    assert x.grad[0] == world


def shared_folder():
    folder = [tempfile.mkdtemp(prefix="peal-checkpoint-")] if dist.get_rank() == 0 else [None]
    dist.broadcast_object_list(folder, 0)
    return folder[0]


@feature
def checkpoint(rank, world):
    module = whole("torch.distributed.checkpoint")
    if not hasattr(module, "save"):
        raise Absent("checkpoint.save")
    folder, state = shared_folder(), {"weights": torch.arange(4.0), "step": torch.tensor(3)}
    module.save(state, checkpoint_id=folder)
    loaded = {"weights": torch.zeros(4), "step": torch.tensor(0)}
    module.load(loaded, checkpoint_id=folder)
    assert torch.equal(loaded["weights"], state["weights"]) and loaded["step"] == 3


@feature
def checkpoint_async(rank, world):
    module = whole("torch.distributed.checkpoint")
    if not hasattr(module, "async_save"):
        raise Absent("checkpoint.async_save")
    folder, state = shared_folder(), {"weights": torch.arange(4.0)}
    # It wants a backend named for the CPU, which is given for Peal and for Gloo.
    module.async_save(state, checkpoint_id=folder, process_group=dist.new_group()).result()
    loaded = {"weights": torch.zeros(4)}
    module.load(loaded, checkpoint_id=folder)
    assert torch.equal(loaded["weights"], state["weights"])


@feature
def checkpoint_of_dtensor(rank, world):
    module = whole("torch.distributed.checkpoint")
    distribute, shard = have("torch.distributed.tensor", "distribute_tensor", "Shard")
    folder, mesh = shared_folder(), cpu_mesh(world)
    state = {"x": distribute(torch.arange(4.0 * world), mesh, [shard(0)])}
    module.save(state, checkpoint_id=folder)
    loaded = {"x": distribute(torch.zeros(4 * world), mesh, [shard(0)])}
    module.load(loaded, checkpoint_id=folder)
    assert torch.equal(loaded["x"].full_tensor(), torch.arange(4.0 * world))


@feature
def sync_batch_norm_refused_alike(rank, world):
    """SyncBatchNorm is for GPUs only: torch refuses it with any backend."""
    try:
        torch.nn.SyncBatchNorm(4)(torch.randn(2, 4))
    except ValueError as error:
        assert "GPU" in str(error)


@feature
def profiler_sees_calls(rank, world):
    with torch.autograd.profiler.profile() as profile:
        dist.all_reduce(torch.ones(10))
    assert any(event.name.endswith(":all_reduce") for event in profile.function_events)


@feature
def time_out(rank, world):
    group = dist.new_group(timeout=datetime.timedelta(seconds=10))
    store = dist.distributed_c10d._get_default_store()
    if rank == 0:
        try:
            dist.all_reduce(torch.ones(4), group=group)
        except RuntimeError:
            store.set("late", "yes")
            return
        raise AssertionError("nobody noticed")
    store.wait(["late"])
