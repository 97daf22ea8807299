# SPDX-License-Identifier: Apache-2.0
"""Trees of arrays, as jax takes them apart and puts them together: dictionaries, lists, tuples, and classes that say how."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

from . import core


class PartitionSpec(tuple):
    def __new__(cls, *parts: Any, **_: Any) -> PartitionSpec:
        return super().__new__(cls, parts)


def is_named_tuple(tree: Any) -> bool:
    return isinstance(tree, tuple) and hasattr(tree, "_fields")


def children(tree: Any) -> Optional[List[Tuple[Any, Any]]]:
    """Keys and parts of a tree; None: it is a leaf."""
    if isinstance(tree, dict):
        return [(key, tree[key]) for key in sorted(tree)]
    if isinstance(tree, (list, tuple)) and not isinstance(tree, PartitionSpec):
        return list(enumerate(tree))
    if tree is None:
        return []
    if type(tree) in NODES:
        parts, _ = NODES[type(tree)][0](tree)
        return list(enumerate(parts))
    return None


NODES: Dict[type, Tuple[Callable[[Any], Any], Callable[[Any, Any], Any]]] = {}


def rebuilt(tree: Any, parts: Sequence[Any]) -> Any:
    if isinstance(tree, dict):
        return dict(zip(sorted(tree), parts))
    if is_named_tuple(tree):
        return type(tree)(*parts)
    if isinstance(tree, (list, tuple)):
        return type(tree)(parts)
    if type(tree) in NODES:
        return NODES[type(tree)][1](NODES[type(tree)][0](tree)[1], parts)
    return tree


def leaves(tree: Any, is_leaf: Any = None) -> List[Any]:
    if is_leaf is not None and is_leaf(tree):
        return [tree]
    found = children(tree)
    return [tree] if found is None else [leaf for _, part in found for leaf in leaves(part, is_leaf)]


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Any = None) -> Any:
    found = None if is_leaf is not None and is_leaf(tree) else children(tree)
    if found is None:
        return function(tree, *rest)
    others = [dict(children(one) or []) for one in rest]
    return rebuilt(tree, [tree_map(function, part, *[one[key] for one in others], is_leaf=is_leaf) for key, part in found])


def tree_map_named(function: Callable[[Any, Any], Any], tree: Any, path: Any) -> Any:
    """function(path, leaf); names of dictionaries are parts of the path."""
    found = children(tree)
    if found is None:
        return function(path, tree)
    return rebuilt(tree, [tree_map_named(function, part, (path, key)) for key, part in found])


def flatten(tree: Any, is_leaf: Any = None) -> Tuple[List[Any], Callable[[Sequence[Any]], Any]]:
    """Its leaves, and what makes the same tree of others."""
    found = leaves(tree, is_leaf)

    def unflatten(parts: Sequence[Any]) -> Any:
        left = iter(parts)
        return tree_map(lambda _: next(left), tree, is_leaf=is_leaf)
    return found, unflatten


def spec_leaves(specs: Any, tree: Any, default: Any) -> List[Any]:
    """One specification for every leaf of the tree; a specification above stands for all below."""
    if specs is None:
        return [default] * len(leaves(tree))
    found = children(specs)
    if found is None:
        return [specs] * len(leaves(tree))
    parts = children(tree)
    if parts is None and len(found) == 1:
        return spec_leaves(found[0][1], tree, default)
    if parts is None or len(parts) != len(found):
        raise core.refuse(f"{len(found)} specifications for {1 if parts is None else len(parts)} arrays")
    return [one for (_, spec), (_, part) in zip(found, parts) for one in spec_leaves(spec, part, default)]


class TreeDef:
    def __init__(self, unflatten: Callable[[Sequence[Any]], Any], count: int) -> None:
        self.unflatten, self.num_leaves = unflatten, count


def tree_flatten(tree: Any, is_leaf: Any = None) -> Tuple[List[Any], TreeDef]:
    found, unflatten = flatten(tree, is_leaf)
    return found, TreeDef(unflatten, len(found))


def register_dataclass(cls: Any, data_fields: Any = None, meta_fields: Any = None, **_: Any) -> Any:
    data = list(data_fields) if data_fields is not None else [one.name for one in dataclasses.fields(cls)]
    meta = list(meta_fields or [])
    NODES[cls] = (lambda one: ([getattr(one, name) for name in data], [getattr(one, name) for name in meta]),
                  lambda rest, parts: cls(**dict(zip(data, parts)), **dict(zip(meta, rest))))
    return cls


