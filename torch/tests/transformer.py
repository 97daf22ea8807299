# SPDX-License-Identifier: Apache-2.0
"""A small transformer, trained 12 steps with DDP: losses equal Gloo's, weights are the same bits on all ranks.

    /usr/bin/python3 torch/tests/transformer.py WORLD_SIZE
"""
import datetime

from common import dist, ranks, say, torch, world_size

STEPS, WORDS, LENGTH, WIDTH = 12, 17, 10, 16


class Transformer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.words = torch.nn.Embedding(WORDS, WIDTH)
        self.places = torch.nn.Parameter(torch.randn(LENGTH, WIDTH) * 0.1)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 2, 32, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2)
        self.out = torch.nn.Linear(WIDTH, WORDS)

    def forward(self, text):
        return self.out(self.layers(self.words(text) + self.places))


def trained(backend, rank, world, folder):
    """The losses of all steps, and all weights at the end."""
    dist.init_process_group(backend, init_method=f"file://{folder}/{backend}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=600))
    torch.manual_seed(5)
    model = torch.nn.parallel.DistributedDataParallel(Transformer(), bucket_cap_mb=0.01)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        text = torch.randint(WORDS, (4, LENGTH + 1), generator=torch.Generator().manual_seed(1000 * step + rank))
        loss = torch.nn.functional.cross_entropy(model(text[:, :-1]).reshape(-1, WORDS), text[:, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        losses.append(float(mean) / world)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    parts = [torch.empty_like(weights) for _ in range(world)]
    dist.all_gather(parts, weights)
    assert all(torch.equal(part, weights) for part in parts), f"{backend}: ranks differ"
    dist.destroy_process_group()
    return losses


def compare(rank, world, folder):
    torch.set_num_threads(1)
    peal, gloo = (trained(backend, rank, world, folder) for backend in ("peal", "gloo"))
    # Gloo may add more than two terms in another order.
    close = torch.allclose(torch.tensor(peal), torch.tensor(gloo), rtol=1e-4)
    assert peal == gloo if world == 2 else close, (peal, gloo)
    assert peal[-1] < peal[0]
    say(rank, f"transformer: {STEPS} steps at world size {world}, loss {peal[0]:.4f} to {peal[-1]:.4f}, as with Gloo")


def main(world):
    ranks(compare, world)


if __name__ == "__main__":
    main(world_size())
