"""Programs on tensors in attributes that somebody sets between the calls."""

from __future__ import annotations

_SETUP = """
class Held: pass
def of(*numbers): return tt.from_numpy(np.array(numbers, np.float32))
held = Held()
held.a, held.b = of(1., 2.), of(3., 4.)
"""
# These are planned, and give what the function gives.
TENSORS = {
    "tensors that become one": _SETUP
    + """
def f(x, y):
    return held.a * 2 + held.b, held.a is held.b
---
held.a = of(5., 6.)
held.a = of(7., 8.)
held.a = held.b
held.b = of(1., 1.)
held.a = of(1., 1.)
""",
    "a tensor that is given back": _SETUP
    + """
def f(x, y):
    return held.a, held.a * 2, held.a.id == held.b.id
---
held.a = of(5., 6.)
held.a = of(7., 8.)
held.a, held.b = held.b, held.a
held.b = held.a
""",
    "tensors of other shapes, dtypes and tapes": _SETUP
    + """
def f(x, y):
    plain = held.a.detach() if held.a.owns_tape else held.a
    return held.a.owns_tape, held.a.dtype, plain * 2
---
held.a = of(5., 6.)
held.a = of(7., 8., 9.)
held.a = tt.from_numpy(np.array([1., 2.]))
held.a = of(5., 6.).trace()
held.a = of(7., 6.).trace()
held.a = of(5., 6.)
held.a = of(3., 6.)
""",
    "a tensor or none": _SETUP
    + """
def f(x, y):
    return x if held.a is None else tt.from_numpy(x).sum() * held.a
---
held.a = of(5., 6.)
held.a = of(7., 8.)
held.a = None
held.a = 2.
held.a = of(5., 6.)
held.a = of(5., 6.)
""",
    "a gradient of what is set": _SETUP
    + """
def f(x, y):
    grads = (held.a.trace() * held.b).sum().backward()
    return grads[held.a], grads.get(held.b), held.a in grads
---
held.a = of(5., 6.)
held.a = held.a * 2
held.b = held.a * 2
held.b = held.a
held.b = of(1., 1.)
""",
    "gradients that would be lost": _SETUP
    + """
model = nn.Linear(2, 2, rng=np.random.default_rng(0))
def f(x, y):
    grads = (model(held.a.trace()) * held.b).sum().backward(wrt=model)
    return grads[model.weight]
---
held.b = of(5., 6.)
held.b = of(5., 7.)
held.b = model(of(5., 6.))
held.b = model(of(5., 6.)).detach()
held.b = of(5., 7.)
model.weight = of(1., 2., 3., 4.).reshape((2, 2))
model.weight = of(1., 2., 3., 5.).reshape((2, 2))
held.b = model(of(5., 6.))
held.b = model.bias
""",
    "a parameter that is another than the optimizer has": """
def of(*numbers): return tt.from_numpy(np.array(numbers, np.float32))
model = nn.Linear(4, 2, rng=np.random.default_rng(0))
optimizer = optim.Adam(model)
first = model.bias
def f(x, y):
    loss = model(tt.from_numpy(x).trace()).square().sum()
    value = loss.detach()
    optimizer.step(loss.backward(wrt=model))
    return value, model.bias, first
---
model.bias = of(5., 6.)
model.bias = of(7., 6.)
model.bias = of(8., 6.)
model.bias = first
model.bias = (first * 2).detach()
model.bias = first
""",
    "a parameter of the optimizer's that the function replaces": """
model = nn.Linear(4, 2, rng=np.random.default_rng(0))
optimizer = optim.Sgd(model, lr=0.1)
first = model.bias
def f(x, y):
    optimizer.step(model(tt.from_numpy(x).trace()).square().sum().backward(wrt=model))
    model.bias = (model.bias * 0.5).detach()
    return model.bias
---

model.bias = first

""",
    "parameters that are shared": """
def of(*numbers): return tt.from_numpy(np.array(numbers, np.float32))
one, other = [nn.Linear(4, 4, rng=np.random.default_rng(seed)) for seed in range(2)]
class Held: pass
held = Held()
held.one, held.other = one, other
def f(x, y):
    loss = held.other(held.one(tt.from_numpy(x).trace())).square().sum()
    weights = [one.weight] if one.weight is other.weight else [one.weight, other.weight]
    grads = loss.backward(wrt=weights)
    return grads[one.weight], grads[other.weight]
---
one.weight = (one.weight * 2).detach()
one.weight = (one.weight * 2).detach()
one.weight = other.weight
other.weight = (one.weight * 2).detach()
held.one = nn.Linear(4, 4, rng=np.random.default_rng(5))
held.one.weight = other.weight
""",
    "a state that the function sets, too": _SETUP
    + """
def f(x, y):
    before = held.a
    held.a = held.a * 0.5 + tt.from_numpy(x).sum()
    return before, held.a, before is held.a
---
held.a = of(5., 6.)
held.a = of(7., 8.)
pass
held.a = held.b
held.b = held.a * 2
held.a, held.b = held.b, held.a
pass
""",
    "a mean of parameters that stands in a list, too": """
model = nn.Linear(4, 2, rng=np.random.default_rng(0))
class Held: pass
held = Held()
held.mean = model.bias * 1.
held.means = [held.mean]
def f(x, y):
    held.mean = held.mean * 0.9 + model.bias * 0.1
    return held.mean * len(held.means)
---

held.means = [held.mean]
held.mean = held.means[0] * 2.
""",
    "a state that the function exchanges": _SETUP
    + """
def f(x, y):
    held.a, held.b = held.b, held.a
    return held.a * 2
---
held.a = of(5., 6.)
held.a = of(7., 8.)
pass
held.a = held.b
held.a = of(7., 8.)
""",
    "an argument that is an attribute, too": _SETUP
    + """
class Sub:
    def __init__(self): self.t = of(1., 1.)
sub = Sub()
def inner(t):
    return (t * sub.t).sum(), t is sub.t
step = tt.compile(inner)
def f(x, y):
    return inner(held.a)
---
held.a = sub.t
sub.t = of(2., 3.)
held.a = sub.t
sub.t = held.b
sub.t = of(2., 4.)
""",
    "arrays in tensors that are views": _SETUP
    + """
whole = np.arange(8, dtype=np.float32)
def f(x, y):
    return held.a * 2, held.a.numpy().shape
---
held.a = tt.from_numpy(whole[:2])
held.a = tt.from_numpy(whole[2:4])
held.a = tt.from_numpy(whole[::4])
whole[:] = 3.
whole[0] = 7.
""",
    "a tensor that is deleted": _SETUP
    + """
def f(x, y):
    return held.a * 2 if hasattr(held, 'a') else y
---
held.a = of(5., 6.)
held.a = of(7., 6.)
del held.a
held.a = of(7., 5.)
""",
    "a subclass of a module": """
class Net(nn.Module):
    lin: nn.Linear
    u: tt.Tensor1D = nn.buffer(nn.init.ones)
    def forward(self, x):
        return self.lin.forward(x) - self.u
net = Net(lin=nn.Linear(4, 2, rng=np.random.default_rng(0)), u=tt.ones((2,)))
def f(x, y):
    out = net.forward(tt.from_numpy(x))
    net.u = net.u * 0.9
    return out, net.u, [one.sum() for one in net.parameters().values()], [*net.buffers()]
---
net.u = net.u * 2
net.u = tt.zeros((2,))
net.lin.bias = net.u
net.lin.bias = tt.zeros((2,))
net.u = net.lin.bias
net.u = tt.zeros((2,))
""",
}
