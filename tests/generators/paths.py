# SPDX-License-Identifier: Apache-2.0
"""Random kernels in which data moves along paths that depend on the root.

A chain or star, from the root or to it; each edge is a channel, a push or a pull, chosen by the parity of the rank or of the root;
one lane, or two with half of the data each; cells indexed by writer, by root or not at all; acknowledged or not. Launches with
different roots use the same channels, cells and windows in other directions. About two thirds are right for one root.
"""


class Paths:
    def __init__(self, rng):
        r = self.r = rng
        self.lanes = r.random() < 0.3
        self.gives = r.random() < 0.6  # a broadcast; otherwise a reduction
        self.chain = r.random() < 0.6
        self.acknowledged = r.random() < 0.7
        self.cells = r.choice(['writer', 'writer', 'root', 'single'])
        self.mod = r.choice([1, 1, 2])
        self.kinds = [r.choice(['channel', 'push', 'pull']) for _ in range(2)]
        self.by = r.choice(['rank', 'root', '0', '0'])
        self.named = r.random() < 0.3
        self.part = '[way of 2]' if self.lanes else ''
        self.slot = f'slot[(launch mod {self.mod}) * most +: n]' if self.mod > 1 else 'slot[0 +: n]'

    def at(self, peer):
        """The place of a message on another rank."""
        return self.slot.replace('slot', f'slot@{peer}', 1) + self.part

    def cell(self, name, writer):
        index = {'writer': writer, 'root': 'root', 'single': None}[self.cells]
        if self.lanes:
            return f'{name}[way]' if index is None else f'{name}[2 * {index} + way]'
        return name if index is None else f'{name}[{index}]'

    def declare(self, name):
        if self.cells == 'single':
            return f"    signal {name}{'[2]' if self.lanes else ''}"
        return f"    signal {name}[{'2 * ' if self.lanes else ''}nranks]"

    def sends(self, kind, to, value):
        """The statements of an edge's near end."""
        on = ' on up' if self.named else ''
        if kind == 'channel':
            return [f'send {value} to {to}{on}']
        late = [f'wait {self.cell("taken", to)} >= 1'] if self.acknowledged else []
        if kind == 'push':
            return [f'{self.at(to)} = {value}', f'notify {self.cell("ready", "rank")}@{to} += 1'] + late
        return [f'{self.slot}{self.part} = {value}', f'notify {self.cell("ready", "rank")}@{to} += 1'] + late

    def receives(self, kind, peer, store):
        """The statements of the far end; `store` turns a value into a statement."""
        if kind == 'channel':
            return [store(f'recv from {peer}' + (' on up' if self.named else ''))]
        value = self.slot + self.part if kind == 'push' else self.at(peer)
        late = [f'notify {self.cell("taken", "rank")}@{peer} += 1'] if self.acknowledged else []
        return [f'wait {self.cell("ready", peer)} >= 1', store(value)] + late

    def edge(self, near, lines):
        """An edge of either kind, by a condition on which its two ends agree."""
        if self.kinds[0] == self.kinds[1]:
            return lines(self.kinds[0])
        key = {'rank': near, 'root': 'root', '0': '0'}[self.by]
        return [f'if {key} % 2 == 0 {{'] + lines(self.kinds[0]) + ['} else {'] + lines(self.kinds[1]) + ['}']

    def hop(self):
        """One edge in, one edge out; a chain runs away from the root or towards it."""
        x, y = 'x' + self.part, 'y' + self.part
        out, into = ('right', 'left') if self.gives else ('left', 'right')
        first, last = ('v == 0', 'v == nranks - 1') if self.gives else ('v == nranks - 1', 'v == 0')
        got = (lambda v: f'{y} = {v}') if self.gives else (lambda v: f'acc = op(acc, {v})')
        value = y if self.gives else 'acc'
        lines = [f'{y} = {x}'] if self.gives else [f'let acc = {x}']
        lines = ([f'if {first} {{ {lines[0]} }}'] if self.gives else lines)
        lines += [f'if not {first} {{'] + self.edge(into, lambda k: self.receives(k, into, got)) + ['}']
        lines += [f'if not {last} {{'] + self.edge('rank', lambda k: self.sends(k, out, value)) + ['}']
        return lines + ([] if self.gives else [f'if {last} {{ {y} = final(op, acc) }}'])

    def star(self):
        x, y = 'x' + self.part, 'y' + self.part
        if self.gives:
            root = [f'{y} = {x}', 'for p in peers {'] + self.edge('root', lambda k: self.sends(k, 'p', x)) + ['}']
            other = self.edge('root', lambda k: self.receives(k, 'root', lambda v: f'{y} = {v}'))
        else:
            got = lambda v: f'acc = op(acc, {v})'
            root = [f'let acc = {x}', 'for p in peers {'] + self.edge('p', lambda k: self.receives(k, 'p', got)) + ['}', f'{y} = final(op, acc)']
            other = self.edge('rank', lambda k: self.sends(k, 'root', x))
        return ['if rank == root {'] + root + ['} else {'] + other + ['}']

    def text(self):
        body = self.hop() if self.chain else self.star()
        if self.r.random() < 0.15 and len(body) > 3:  # exchanges two lines
            i = self.r.randrange(len(body) - 1)
            if not set('{}') & set(body[i] + body[i + 1]):
                body[i], body[i + 1] = body[i + 1], body[i]
        used = '\n'.join(body)
        lines = [f'    window slot: T[{self.mod} * most]'] if 'slot' in used else []
        lines += [self.declare(s) for s in ('ready', 'taken') if s in used]
        lines += ['    channel up'] if self.named and 'on up' in used else []
        lines += ['    let v = (rank - root) % nranks', '    let right = (rank + 1) % nranks', '    let left = (rank - 1) % nranks']
        lines += ['    lane way in 0 .. 2 {'] if self.lanes else []
        lines += ['    ' + line for line in body] + (['    }'] if self.lanes else [])
        reduce, contract = ('', 'broadcast') if self.gives else (', op: reduce', 'reduce')
        return (f'kernel p(in x: T[n], out y: T[n]{reduce}, root: int, most: int = n) implements {contract} {{\n' +
                '\n'.join(lines) + '\n}\n')
