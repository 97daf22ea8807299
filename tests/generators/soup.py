# SPDX-License-Identifier: Apache-2.0
"""Random kernels of all elements of the language, combined so that many are right.

Windows, private memory, tiles, signals of every kind, channels, lanes, phases, accumulates, several destinations, composites,
roots, parts by counts, columns of several rows, loops whose length depends on the rank.
"""
PEERS = ['right', 'left', '((rank + 2) % nranks)', '0', '(nranks - 1)']
BACK = {'right': 'left', 'left': 'right', '((rank + 2) % nranks)': '((rank - 2) % nranks)'}


class Kernel:
    def __init__(self, rng):
        self.r = rng
        self.root = rng.random() < 0.3
        self.xwin = rng.random() < 0.2
        self.phases = rng.choice([1, 1, 2, 2, 3])
        self.windows = ['w%d' % i for i in range(rng.randint(1, 2))]
        self.signals = []
        for i in range(rng.randint(1, 4)):
            kind = rng.choice(['', '', '', 'shared', 'shared', 'raw'] + (['raw'] if rng.random() < 0.3 else []))
            self.signals.append(('s%d' % i, kind, rng.random() < 0.5))
        self.count = {}
        self.relaxed = rng.random() < 0.08
        self.lines = []
        self.depth = 1
        self.open = []  # sends without their recvs
        self.tiles = 0
        self.counts = rng.random() < 0.2
        self.columns = rng.random() < 0.2  # a window of two dimensions, and an integer k from 0 to 4
        self.mine = ''  # with lanes: the part of x, y and q that a lane has

    def put(self, text):
        self.lines.append('    ' * self.depth + text)

    def part(self):
        r = self.r
        phase = '(launch mod %d) * n +: n' % self.phases if self.phases > 1 else '0 +: n'
        if self.mine:
            return '[%s]%s' % (phase, self.mine)
        return r.choice(['[%s]' % phase, '[%s]' % phase, '[%s][rank of nranks]' % phase, '[%s][0 of 2]' % phase,
                         '[0 +: n]', '[%s][right of nranks]' % phase])

    def short(self, part):
        """The same part of a buffer of n elements."""
        return part[part.index(']') + 1:] or ''

    def peer(self):
        return self.r.choice(PEERS[:3] * 3 + PEERS + (['root'] * 4 if self.root else []))

    def some(self):
        """Statements with parts by counts, columns, and loops whose length depends on the rank."""
        r = self.r
        kind = r.random()
        w, mine = r.choice(self.windows), 'sum(counts, rank) +: counts[rank]'
        if self.columns and kind < 0.4:
            cols = r.choice(['k +: 2', '4 +: 3', '(launch mod 2) * k +: 2', ':'])
            rows = r.choice(['0 +: 2', '1 +: 2', '2', ':'])
            self.put('m%s[%s, %s] = %d' % (r.choice(['', '', '@' + self.peer()]), rows, cols, r.randint(1, 3)))
        elif self.columns and kind < 0.6:
            self.put('if n > 2 { y[0 +: 2] = m%s[%d, %s] }' % (r.choice(['', '@right']), r.randint(0, 2),
                                                               r.choice(['k +: 2', '5 +: 2'])))
        elif self.counts and kind < 0.5:
            self.put('%s@%s[%s] = x[%s]' % (w, self.peer(), mine, mine))
        elif self.counts and kind < 0.7:
            self.put('y[sum(counts, left) +: counts[left]] = %s@%s[sum(counts, left) +: counts[left]]' % (w, self.peer()))
        elif self.counts and kind < 0.85:
            self.put('send x[%s] to right on parts' % mine)
            self.put('send x[0 +: counts[rank]] to right on parts')
            self.put('q[sum(counts, left) +: counts[left]] = recv from left on parts')
            self.put('%s[0 +: counts[left]] = recv from left on parts' % r.choice(['q', 'y']))
        else:
            name, _, array = r.choice(self.signals)
            cell = '[rank]' if array else ''
            self.put('for i in 0 .. rank + 1 { notify %s%s@right += 1 }' % (name, cell))
            self.put('wait %s%s >= left + 1' % (name, '[left]' if array else ''))

    def sync(self):
        r = self.r
        name, kind, array = r.choice(self.signals)
        peer = self.peer()
        relaxed = 'relaxed ' if self.relaxed and r.random() < 0.5 else ''
        cell = '[rank]' if array else ''
        raw = kind == 'raw'
        style = r.random()
        if array and style < 0.5:
            self.count[name] = n = self.count.get(name, 0) + 1
            self.put('for p in peers { notify %s%s[rank]@p += 1 }' % (relaxed, name))
            self.put('for p in peers { wait %s%s[p] >= %d }' % (relaxed, name, r.choice([n, n, n, max(1, n - 1)])))
            return
        if peer in BACK:
            key = (name, peer if array else '')
            self.count[key] = n = self.count.get(key, 0) + 1
            self.put('notify %s%s%s@%s += 1' % (relaxed, name, cell, peer))
            if r.random() < 0.85:
                source = '[%s]' % BACK[peer] if array else ''
                back = ' at launch - %d' % r.randint(1, 2) if not raw and r.random() < 0.15 else ''
                op = '==' if r.random() < 0.04 else '>='
                self.put('wait %s%s%s %s %d%s' % (relaxed, name, source, op, n, back))
            if raw and r.random() < 0.5:
                self.put('notify %s%s += -1' % (name, '[%s]' % BACK[peer] if array else ''))
            return
        # Many to one.
        total = 'nranks' if kind == 'shared' else '1'
        if kind == 'shared' and not array:
            key = (name, 'all' + peer)
            self.count[key] = n = self.count.get(key, 0) + 1
            self.put('notify %s%s@%s += 1' % (relaxed, name, peer))
            self.put('if rank == %s { wait %s >= %s * %d }' % (peer, name, total, n))
        elif array:
            key = (name, 'one' + peer)
            self.count[key] = n = self.count.get(key, 0) + 1
            self.put('if rank != %s { notify %s%s[rank]@%s += 1 }' % (peer, relaxed, name, peer))
            self.put('if rank == %s { for p in peers { wait %s[p] >= %d } }' % (peer, name, n))

    def data(self):
        r = self.r
        w, part = r.choice(self.windows), self.part()
        rest = self.short(part)
        peer = self.peer()
        kind = r.random()
        if kind < 0.2:
            self.put('%s%s = x%s' % (w, part, rest))
        elif kind < 0.4:
            self.put('y%s = %s@%s%s' % (rest, w, peer, part))
        elif kind < 0.5:
            self.put('%s@%s%s = x%s' % (w, peer, part, rest))
        elif kind < 0.6:
            self.put('y%s = sum(x%s, %s%s, %s@%s%s)' % (rest, rest, w, part, w, peer, part))
        elif kind < 0.68:
            self.put('%s%s@%s%s += x%s' % (r.choice(['', '', '', 'exclusive ']), w, peer, part, rest))
        elif kind < 0.74:
            self.tiles += 1
            self.put('let t%d = sum(x%s, %s@%s%s)' % (self.tiles, rest, w, peer, part))
            self.put('%s%s = t%d' % (w, part, self.tiles))
            self.put('y%s = t%d' % (rest, self.tiles))
        elif kind < 0.8:
            self.put('q%s = %s%s' % (rest, w, part))
            self.put('y%s = q%s' % (rest, rest))
        elif kind < 0.86:
            a, b = part, self.part()
            if self.short(a) == self.short(b):
                self.put('%s%s = %s@%s%s' % (w, a, r.choice(self.windows), peer, b))
        elif kind < 0.9 and self.xwin:
            self.put('y%s = x@%s%s' % (rest, peer, rest))
        else:
            self.put('%s@%s%s max= q%s' % (w, peer, part, rest))

    def channel(self):
        r = self.r
        if self.open and r.random() < 0.6:
            peer, rest = self.open.pop(0)
            if r.random() < 0.3:
                self.tiles += 1
                self.put('let t%d: T[len(x%s)] = recv_slot from %s' % (self.tiles, rest, BACK[peer]))
                self.put('y%s = sum(x%s, t%d)' % (rest, rest, self.tiles))
            else:
                self.put('%s%s = recv from %s' % (r.choice(['q', 'y']), rest, BACK[peer]))
            return
        peer = r.choice(list(BACK))
        if any(p == peer for p, _ in self.open) and r.random() < 0.5:
            return
        rest = self.mine or r.choice(['', '', '[0 of 2]', '[rank of nranks]'])
        mine = rest
        self.put('send %s%s to %s' % (r.choice(['x', 'x', 'q']), mine, peer))
        self.open.append((peer, rest if rest != '[rank of nranks]' else '[%s of nranks]' % BACK[peer]))

    def barrier(self):
        for name, kind, array in self.signals:
            if array and kind == '':
                self.count[name] = n = self.count.get(name, 0) + 1
                self.put('for p in peers { notify %s[rank]@p += 1 }' % name)
                self.put('for p in peers { wait %s[p] >= %d }' % (name, n))
                return

    def block(self, n, lane):
        r = self.r
        for _ in range(n):
            kind = r.random()
            if (self.counts or self.columns) and not self.mine and r.random() < 0.4:
                self.some()
            elif kind < 0.42:
                self.sync()
            elif kind < 0.8:
                self.data()
            elif kind < 0.9:
                self.channel()
            elif kind < 0.95 and self.root:
                self.put('if rank %s root {' % r.choice(['==', '!=']))
                self.depth += 1
                self.data()
                self.depth -= 1
                self.put('}')
            elif kind < 0.97 and not self.mine and any(k == 'raw' for _, k, _ in self.signals):
                name, _, array = next(s for s in self.signals if s[1] == 'raw')
                self.tiles += 1
                self.put('let t%d = peek %s%s' % (self.tiles, name, '[rank]' if array else ''))
                self.put('notify %s%s%s += t%d%s' % (name, '[rank]' if array else '', r.choice(['', '@right']), self.tiles,
                                                     r.choice(['', ' + 1'])))
            else:
                self.barrier()
        while self.open:
            peer, rest = self.open.pop(0)
            self.put('q%s = recv from %s' % (rest, BACK[peer]))

    def text(self):
        r = self.r
        more = [', root: int'] * self.root + [', counts: int[nranks]'] * self.counts + [', k: int'] * self.columns
        head = 'kernel soup(in x: %sT[n], out y: T[n]%s) {' % ('window ' if self.xwin else '', ''.join(more))
        self.lines = [head]
        for w in self.windows:
            self.put('window %s: T[%d * n]' % (w, self.phases))
        self.put('private q: T[n]')
        if self.columns:
            self.put('window m: T[4, 9]')
        if self.counts:
            self.put('channel parts')
        for name, kind, array in self.signals:
            self.put(('signal %s %s%s' % (kind, name, '[nranks]' if array else '')).replace('  ', ' '))
        self.put('let right = (rank + 1) % nranks')
        self.put('let left = (rank - 1) % nranks')
        lanes = r.choice([0, 0, 0, 2])
        if lanes:
            apart = r.random() < 0.8
            windows, signals = self.windows, self.signals
            for lane in range(lanes):
                self.put('lane {')
                self.depth += 1
                if apart:
                    self.windows = [windows[lane % len(windows)]]
                    self.signals = signals[lane::lanes] or signals
                    self.mine = ['[0 of 2]', '[1 of 2]'][lane]
                if lane == 0 or apart:
                    self.start()
                self.block(r.randint(2, 5), lane)
                self.depth -= 1
                self.put('}')
        else:
            self.start()
            self.block(r.randint(3, 8), 0)
            if r.random() < 0.6:
                self.barrier()
        return '\n'.join(self.lines) + '\n}\n'

    def start(self):
        self.put('q%s = x%s' % (self.mine, self.mine))
        self.put('y%s = x%s' % (self.mine, self.mine))
        if self.r.random() < 0.85:
            for w in self.windows + ['m'] * (self.columns and not self.mine):
                self.put('%s = 0' % w)
            self.barrier()
        if self.r.random() < 0.2 and not self.mine:
            self.put(self.r.choice(['barrier()', 'allreduce(%s[0 +: n], sum)' % self.windows[0],
                                    'broadcast(q, q, 0, binomial)', 'allreduce(q, sum, ring)']))
