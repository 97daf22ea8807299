# SPDX-License-Identifier: Apache-2.0
"""Random kernels in which launches with different roots and counts can collide.

A root sends to all or reduces from all, by pushing or pulling. They differ in their cells (by root, by rank, single, shared), in the
place in a window that a launch writes (all of it, or halves by launch at a distance of n or of `most`), in the acknowledgements
that they have, and in the launch that waits refer to. About half of them are right for one root and count.
"""


class Turns:
    def __init__(self, rng):
        self.r = rng
        self.slot = rng.choice(['', '', '[(launch mod 2) * n +: n]', '[(launch mod 2) * most +: n]', '[(launch mod 2) * most +: n]'])
        self.ready = rng.choice(['root', 'root', 'single', 'shared'])
        self.taken = rng.choice(['rank', 'rank', 'shared', 'none'])
        self.back = rng.choice([0, 0, 0, 1, 2])  # acknowledgements are waited for this many launches later
        self.push = rng.random() < 0.4

    def cell(self, kind, name, index):
        return f'{name}[{index}]' if kind in ('root', 'rank') else name

    def declare(self):
        out = []
        for kind, name in ((self.ready, 'ready'), (self.taken, 'taken')):
            if kind != 'none':
                out.append(f"    signal {'shared ' if kind == 'shared' else ''}{name}{'[nranks]' if kind in ('root', 'rank') else ''}")
        return out

    def acknowledged(self):
        """The root's waits before others may write again."""
        at = f' at launch - {self.back}' if self.back else ''
        if self.taken == 'rank':
            return [f'for p in peers {{ wait taken[p] >= 1{at} }}']
        if self.taken == 'shared':
            return [f"wait taken >= {self.r.choice(['nranks - 1', 'nranks - 1', 'nranks - 1', '1'])}{at}"]
        return []

    def give(self):
        """A broadcast: the branches of the root and of the others."""
        r, s, ready = self.r, self.slot, self.cell(self.ready, 'ready', 'root')
        here = f'slot{s}'
        write = [f'for p in peers {{ slot@p{s} = x }}'] if self.push else [f'{here} = x']
        announce, copy = [f'for p in peers {{ notify {ready}@p += 1 }}'], ['y = x']
        root = write + announce + copy + ([] if self.back else self.acknowledged())
        if self.back:
            root = self.acknowledged() + root
        if r.random() < 0.1:
            root = announce + write + copy + self.acknowledged()
        read = f'y = {here}' if self.push else f'y = slot@root{s}'
        acknowledgements = {'rank': ['notify taken[rank]@root += 1'], 'shared': ['notify taken@root += 1'], 'none': []}[self.taken]
        if self.taken == 'rank' and (self.back or r.random() < 0.2):
            acknowledgements = ['for p in peers { notify taken[rank]@p += 1 }']  # any rank may be the next root
            root += ['for p in peers { notify taken[rank]@p += 1 }'] if self.back else []
        others = [f'wait {ready} >= 1', read] + acknowledgements
        if r.random() < 0.08:
            others = [f'wait {ready} >= 1'] + acknowledgements + [read]
        return root, others

    def take(self):
        """A reduction to the root."""
        s = self.slot
        given = self.cell('rank', 'ready', 'rank') if self.ready != 'shared' else 'ready'
        root = ['for p in peers { wait ready[p] >= 1 }'] if self.ready != 'shared' else ['wait ready >= nranks - 1']
        root += ['let acc = x', f'for p in peers {{ acc = op(acc, slot@p{s}) }}', 'y = final(op, acc)']
        others = [f'slot{s} = x', f'notify {given}@root += 1']
        if self.taken != 'none':
            cell = 'taken[root]' if self.taken == 'rank' else 'taken'
            root += [f"for p in peers {{ notify {'taken[rank]' if self.taken == 'rank' else 'taken'}@p += 1 }}"]
            others += [f'wait {cell} >= 1']
        return root, others

    def text(self):
        gives = self.r.random() < 0.65
        if not gives and self.ready == 'single':
            self.ready = 'root'
        root, others = self.give() if gives else self.take()
        size = 'n' if not self.slot else '2 * n' if '* n' in self.slot else '2 * most'
        lines = [f'    window slot: T[{size}]'] + self.declare() + ['    if rank == root {']
        lines += ['        ' + line for line in root] + ['    } else {'] + ['        ' + line for line in others] + ['    }']
        reduce = '' if gives else ', op: reduce'
        most = ', most: int = n' if 'most' in size else ''
        contract = 'broadcast' if gives else 'reduce'
        return f'kernel t(in x: T[n], out y: T[n]{reduce}, root: int{most}) implements {contract} {{\n' + '\n'.join(lines) + '\n}\n'
