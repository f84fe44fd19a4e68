"""Files in the order in which a reader meets what they build upon: each after those that it imports.

The order is that of RepoQA: depth first over the imports, files and their imports in the order given, a file put down
once all that it imports is. A cycle is cut where it comes back to a file that has been entered. Nothing recurses, so a
chain of imports may be as long as it likes.
"""

from collections.abc import Iterator, Mapping, Sequence


def dependency_order(imports: Mapping[str, Sequence[str]]) -> list[str]:
    """Every path of imports and every path imported, once each."""
    entered: set[str] = set()
    order: list[str] = []
    for first in imports:
        if first in entered:
            continue
        entered.add(first)
        open_here: list[tuple[str, Iterator[str]]] = [(first, iter(imports[first]))]
        while open_here:
            path, waiting = open_here[-1]
            for each in waiting:
                if each not in entered:
                    entered.add(each)
                    open_here.append((each, iter(imports.get(each, ()))))
                    break
            else:
                order.append(path)
                open_here.pop()
    return order
