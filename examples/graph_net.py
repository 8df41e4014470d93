"""A graph net that names the communities of a graph, of which a few nodes are labelled.

A node hears the mean of its neighbours: a message for each edge, added up by node with
`segment_sum`, in time and memory that grow with the number of edges. The features are noise with a
hint of the community; without the edges they do not suffice.

Run ``mypy --strict examples/graph_net.py`` and then ``python examples/graph_net.py``.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass, replace
from typing import Literal as L
from typing import NewType

import numpy as np

import tapetensor as tt
from tapetensor import NoneTape, Tensor1D, Tensor2D, losses, nn, optim
from tapetensor.typing import T

Nodes = NewType("Nodes", int)
Edges = NewType("Edges", int)
COMMUNITIES: L[4] = 4
FEATURES: L[16] = 16
LABELLED: L[40] = 40


@dataclass
class Graph:
    """Edges from `sources` to `targets`, both ways, and what is known of the nodes."""

    features: Tensor2D[Nodes, L[16]]
    communities: Tensor1D[Nodes, NoneTape, np.int64]
    sources: Tensor1D[Edges, NoneTape, np.int64]
    targets: Tensor1D[Edges, NoneTape, np.int64]
    shares: Tensor2D[Nodes, L[1]]
    """1 / the number of neighbours."""


class Neighbours(nn.Module):
    """One round of messages: a node goes by itself and by the mean of its neighbours."""

    own: nn.Linear[L[16], L[16]]
    heard: nn.UnbiasedLinear[L[16], L[16]]

    def forward(self, x: Tensor2D[Nodes, L[16], T], graph: Graph) -> Tensor2D[Nodes, L[16], T]:
        """Return what the nodes know afterwards."""
        nodes, _ = x.shape
        messages = x.take(graph.sources, axis=0)
        mean = tt.segment_sum(messages, graph.targets, nodes) * graph.shares
        return (self.heard.forward(mean) + self.own.forward(x)).relu()


class GraphNet(nn.Module):
    """Two rounds of messages, and a linear layer."""

    first: Neighbours
    second: Neighbours
    out: nn.Linear[L[16], L[4]]

    def forward(self, graph: Graph, x: Tensor2D[Nodes, L[16], T]) -> Tensor2D[Nodes, L[4], T]:
        """Return the logits of the communities."""
        return self.out.forward(self.second.forward(self.first.forward(x, graph), graph))


def random_graph(nodes: Nodes, rng: np.random.Generator) -> Graph:
    """Return a graph in which most edges stay within a community."""
    community = rng.integers(COMMUNITIES, size=nodes)
    alike = community[:, None] == community
    linked = np.triu(rng.random((nodes, nodes)) < np.where(alike, 0.05, 0.004), 1)
    linked |= linked.T
    targets, sources = np.nonzero(linked)
    edges = Edges(len(sources))
    features = rng.normal(size=(nodes, FEATURES)) + 1.5 * np.eye(FEATURES)[community]
    shares = 1 / np.maximum(linked.sum(axis=1, keepdims=True), 1)
    return Graph(
        features=tt.from_numpy(features, (nodes, FEATURES), np.float32),
        communities=tt.from_numpy(community, (nodes,), np.int64),
        sources=tt.from_numpy(sources, (edges,), np.int64),
        targets=tt.from_numpy(targets, (edges,), np.int64),
        shares=tt.from_numpy(shares, (nodes, 1), np.float32),
    )


def train(graph: Graph, steps: int) -> float:
    """Train on a few labels; return the share of the other nodes that is named rightly."""
    model = tt.build(GraphNet, rng=np.random.default_rng(1))
    optimizer = optim.AdamW(model, lr=1e-2, weight_decay=0.1)
    known: Tensor1D[L[40], NoneTape, np.int64] = tt.arange(LABELLED, np.int64)
    labels = graph.communities.take(known)
    for _ in range(steps):
        logits = model.forward(graph, graph.features.trace()).take(known, axis=0)
        optimizer.step(losses.cross_entropy(logits, labels).backward(wrt=model))
    right = (model.forward(graph, graph.features).argmax(-1) == graph.communities).numpy()
    return float(right[LABELLED:].mean())


def main() -> None:
    """Train without the edges and with them, and compare."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--steps", type=int, default=100)
    arguments = parser.parse_args()
    start = time.perf_counter()
    graph = random_graph(Nodes(arguments.nodes), np.random.default_rng(0))
    deaf = replace(graph, shares=graph.shares * 0.0)
    for name, seen in (("without edges", deaf), ("with edges", graph)):
        right = train(seen, arguments.steps)
        print(f"{name}: {LABELLED} labels, {right:.1%} of the other nodes right")
    print(f"took {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
