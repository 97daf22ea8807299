#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""mutants.py SEED COUNT FOLDER FILE.peal...: writes COUNT texts, each one kernel of the files with a few lines changed.

Every text is a function of SEED and its number. Most do not pass the front end or are refuted; what is
still proved is what the oracle is for.
"""
import os
import random
import re
import sys


def kernels_of(path):
    """(name, lines) of every kernel of a file."""
    out, lines = [], []
    for line in open(path).read().split('\n'):
        m = re.match(r'kernel (\w+)', line)
        if m:
            lines = [line]
            name = m.group(1)
        elif lines:
            lines.append(line)
        if lines and line == '}':
            out.append((name, lines))
            lines = []
    return out


def is_simple(line):
    text = line.split('//')[0].strip()
    return bool(text) and not text.endswith('{') and not text.startswith('}') and text != ''


SPOTS = [
    (r'>= (\w+)', lambda r, m: r.choice(['>= %s + 1', '>= %s - 1', '== %s', '>= 2 * %s']) % m.group(1)),
    (r'\+= 1\b', lambda r, m: r.choice(['+= 2', '= 1', '+= 1', '= 2'])),
    (r'rank \+ 1', lambda r, m: r.choice(['rank - 1', 'rank + 2', 'rank'])),
    (r'rank - 1', lambda r, m: r.choice(['rank + 1', 'rank - 2', 'rank'])),
    (r'\bnotify (?!relaxed)', lambda r, m: 'notify relaxed '),
    (r'\bwait (?!relaxed)', lambda r, m: 'wait relaxed '),
    (r'\bnotify ', lambda r, m: 'notify '),
    (r'signal (?!shared|raw)', lambda r, m: r.choice(['signal shared ', 'signal raw ', 'signal '])),
    (r'signal shared ', lambda r, m: r.choice(['signal ', 'signal raw '])),
    (r'signal raw ', lambda r, m: r.choice(['signal ', 'signal shared '])),
    (r'launch - (\d)', lambda r, m: 'launch - %d' % r.randint(1, 4)),
    (r'launch mod (\d)', lambda r, m: 'launch mod %d' % r.randint(1, 3)),
    (r'\(launch mod \d\) \* most', lambda r, m: '0'),
    (r'\broot\b', lambda r, m: r.choice(['0', 'root', '(nranks - 1)', 'rank'])),
    (r'\bleft\b', lambda r, m: 'right'),
    (r'\bright\b', lambda r, m: 'left'),
    (r'in peers', lambda r, m: r.choice(['in 0 .. nranks', 'in 1 .. nranks', 'in peers'])),
    (r'of nranks', lambda r, m: r.choice(['of nranks', 'of 2', 'of nranks + 1'])),
    (r'in 1 \.\. nranks', lambda r, m: r.choice(['in 0 .. nranks', 'in 1 .. nranks - 1', 'in 2 .. nranks'])),
    (r'\[rank\]', lambda r, m: r.choice(['[(rank + 1) % nranks]', '[0]', '[p]'])),
    (r'\[p\]', lambda r, m: r.choice(['[rank]', '[(p + 1) % nranks]', '[0]'])),
    (r'@p\b', lambda r, m: r.choice(['@((p + 1) % nranks)', '', '@root', '@left'])),
    (r' = op\((\S+), ', lambda r, m: r.choice([' = op(%s, ', ' op= op(%s, ']) % m.group(1)),
    (r' op= ', lambda r, m: r.choice([' = ', ' max= '])),
    (r'(\w+)\[(\w+) of', lambda r, m: '%s[%s + 1 of' % (m.group(1), m.group(2))),
    (r'\+: (\w+)', lambda r, m: r.choice(['+: %s - 1', '+: %s / 2']) % m.group(1)),
    (r'recv_slot', lambda r, m: 'recv'),
    (r' recv ', lambda r, m: ' recv_slot '),
    (r'wait (.*)$', lambda r, m: 'if rank %% 2 == %d { wait %s }' % (r.randint(0, 1), m.group(1))),
    (r'notify (.*)$', lambda r, m: 'if rank != %d { notify %s }' % (r.randint(0, 2), m.group(1))),
]


def mutate(rng, lines):
    simple = [i for i in range(1, len(lines)) if is_simple(lines[i])]
    if not simple:
        return
    i = rng.choice(simple)
    kind = rng.random()
    if kind < 0.15:
        del lines[i]
    elif kind < 0.3:
        k = rng.choice(simple)
        lines[i], lines[k] = lines[k], lines[i]
    elif kind < 0.4 and i + 1 < len(lines) and is_simple(lines[i + 1]):
        lines[i], lines[i + 1] = lines[i + 1], lines[i]
    elif kind < 0.5:
        lines.insert(rng.choice(simple), lines.pop(i))
    elif kind < 0.55:
        lines.insert(rng.choice(simple), lines[i])
    else:
        for _ in range(20):
            i = rng.randrange(len(lines))
            pattern, change = rng.choice(SPOTS)
            found = list(re.finditer(pattern, lines[i]))
            if found:
                m = rng.choice(found)
                lines[i] = lines[i][:m.start()] + change(rng, m) + lines[i][m.end():]
                return


def main():
    seed, count, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    pool = []
    for path in sys.argv[4:]:
        pool += kernels_of(path)
    for i in range(count):
        rng = random.Random(seed * 1000003 + i)
        name, lines = rng.choice(pool)
        lines = list(lines)
        for _ in range(rng.choice([1, 1, 2, 2, 3, 4])):
            mutate(rng, lines)
        with open(os.path.join(folder, 'm%d_%s.peal' % (i, name)), 'w') as f:
            f.write('\n'.join(lines) + '\n')


main()
