"""The cases of spec/golden/ops.jsonl: for scripts/gen-golden.

At least two of every op of the table that is not random: one with its defaults, and others with every option that
changes what it computes."""

import torch
import torch.nn.functional as F

INF, NAN = float("inf"), float("nan")


def unary(c):
    plain = {
        "neg": torch.neg, "abs": torch.abs, "sign": torch.sign, "square": torch.square, "exp": torch.exp,
        "expm1": torch.expm1, "sin": torch.sin, "cos": torch.cos, "tan": torch.tan, "atan": torch.atan,
        "sinh": torch.sinh, "cosh": torch.cosh, "tanh": torch.tanh, "erf": torch.erf, "sigmoid": torch.sigmoid,
        "logsigmoid": F.logsigmoid, "floor": torch.floor, "ceil": torch.ceil, "trunc": torch.trunc,
        "relu": F.relu, "selu": F.selu, "silu": F.silu, "mish": F.mish, "hardswish": F.hardswish,
        "hardsigmoid": F.hardsigmoid, "softsign": F.softsign, "relu6": F.relu6,
    }
    positive = {
        "sqrt": torch.sqrt, "rsqrt": torch.rsqrt, "reciprocal": torch.reciprocal, "log": torch.log,
        "log1p": torch.log1p, "log2": torch.log2, "log10": torch.log10,
    }
    inside = {"asin": torch.asin, "acos": torch.acos, "erfinv": torch.erfinv}
    for name, fn in plain.items():
        c(name, [c.f(2, 3)], fn)
        c(name, [c.f(4, lo=-1.25, hi=1.25)], fn)
    for name, fn in positive.items():
        c(name, [c.f(2, 3, lo=0.25)], fn)
        c(name, [c.f(4, lo=0.5, hi=3.5)], fn)
    for name, fn in inside.items():
        c(name, [c.f(2, 3, lo=-0.9, hi=0.9)], fn)
        c(name, [c.f(4, lo=-0.75, hi=0.5)], fn)
    for name in "hardswish", "hardsigmoid", "relu6":
        c(name, [c.v([-4.0, -2.5, 2.5, 7.0])], plain[name])
    c("round", [c.v([0.5, 1.5, 2.5, -0.5, -1.5, 1.25, -2.75])], torch.round)
    c("round", [c.v([1.125, -2.375, 3.5])], lambda x: torch.round(x, decimals=1), decimals=1, only=["f64", "f32"])
    c("round", [c.v([115.0, -226.0, 34.0])], lambda x: torch.round(x, decimals=-1), decimals=-1)
    c("nan_to_num", [c.v([NAN, 1.5, -2.0])], torch.nan_to_num)
    c("nan_to_num", [c.v([NAN, INF, -INF, 1.5])], lambda x: torch.nan_to_num(x, 0.5, 4.0, -8.0), nan=0.5, posinf=4.0,
      neginf=-8.0)
    c("hardtanh", [c.f(2, 3)], F.hardtanh)
    c("hardtanh", [c.f(2, 3)], lambda x: F.hardtanh(x, -0.5, 0.75), min_val=-0.5, max_val=0.75)
    c("leaky_relu", [c.f(2, 3)], F.leaky_relu)
    c("leaky_relu", [c.f(2, 3)], lambda x: F.leaky_relu(x, 0.25), negative_slope=0.25)
    for name, fn in ("elu", F.elu), ("celu", F.celu):
        c(name, [c.f(2, 3)], fn)
        c(name, [c.f(2, 3)], lambda x, fn=fn: fn(x, 1.5), alpha=1.5)
    c("gelu", [c.f(2, 3)], F.gelu)
    c("gelu", [c.f(2, 3)], lambda x: F.gelu(x, approximate="tanh"), approximate="tanh")
    c("softplus", [c.f(2, 3)], F.softplus)
    c("softplus", [c.f(2, 3)], lambda x: F.softplus(x, 2, 1.5), beta=2, threshold=1.5)
    special = [NAN, INF, -INF, 0.0, -1.5]
    for name, fn in ("isnan", torch.isnan), ("isinf", torch.isinf), ("isfinite", torch.isfinite):
        c(name, [c.v(special)], fn)
        c(name, [c.v([[2.0, NAN], [-INF, 0.5]])], fn)
    c("logical_not", [c.v([0.0, 1.5, -2.0])], torch.logical_not)
    c("logical_not", [c.b([[True, False], [False, False]])], torch.logical_not)


def binary(c):
    c("add", [c.f(2, 3), c.f(3)], torch.add)
    c("add", [c.f(2, 3), c.f(2, 3)], lambda x, y: torch.add(x, y, alpha=2.5), alpha=2.5)
    c("sub", [c.f(2, 3), c.f(2, 1)], torch.sub)
    c("sub", [c.f(2, 3), c.f(2, 3)], lambda x, y: torch.sub(x, y, alpha=-0.5), alpha=-0.5)
    c("mul", [c.f(2, 3), c.f(3)], torch.mul)
    c("mul", [c.f(2, 3), 2.5], lambda x: x * 2.5)
    c("div", [c.f(2, 3), c.f(3, lo=0.5)], torch.div)
    c("div", [c.f(2, 3), c.f(2, 3, lo=0.5)], lambda x, y: torch.div(x, y, rounding_mode="floor").detach(),
      rounding_mode="floor")
    c("div", [c.f(2, 3, grad=False), c.f(2, 3, lo=0.5, grad=False)],
      lambda x, y: torch.div(x, y, rounding_mode="trunc"), rounding_mode="trunc")
    c("floor_div", [c.f(2, 3, grad=False), c.f(3, lo=0.25, grad=False)], torch.floor_divide)
    c("floor_div", [c.n([7, -7, 9]), c.n([2, 2, -4])], torch.floor_divide)
    c("remainder", [c.f(2, 3), c.v([0.75, -0.75, 0.5], grad=False)], torch.remainder)
    c("remainder", [c.n([7, -7, 9]), c.n([2, 2, -4])], torch.remainder)
    c("pow", [c.f(2, 3, lo=0.25), c.f(3)], torch.pow)
    c("pow", [c.f(2, 3), 3], lambda x: x**3)
    c("atan2", [c.f(2, 3), c.f(3)], torch.atan2)
    c("atan2", [c.f(4), c.f(4)], torch.atan2)
    for name, fn in ("minimum", torch.minimum), ("maximum", torch.maximum):
        c(name, [c.f(2, 3), c.f(3)], fn)
        c(name, [c.v([1.0, NAN, 2.0], grad=False), c.v([1.5, 0.0, NAN], grad=False)], fn)
    for name in "eq", "ne", "lt", "le", "gt", "ge":
        fn = getattr(torch, name)
        c(name, [c.v([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]], grad=False), c.v([1.0, 3.0, 3.0], grad=False)], fn)
        c(name, [c.n([1, 2, 3]), c.n([3, 2, 1])], fn)
    for name in "logical_and", "logical_or", "logical_xor":
        fn = getattr(torch, name)
        c(name, [c.b([True, True, False, False]), c.b([True, False, True, False])], fn)
        c(name, [c.v([0.0, 1.5, -2.0], grad=False), c.v([2.0, 0.0, 1.0], grad=False)], fn)
    c("lerp", [c.f(2, 3), c.f(2, 3), c.f(3)], torch.lerp)
    c("lerp", [c.f(4), c.f(4), 0.75], lambda a, b: torch.lerp(a, b, 0.75))
    for name, fn in ("addcmul", torch.addcmul), ("addcdiv", torch.addcdiv):
        c(name, [c.f(2, 3), c.f(3), c.f(2, 3, lo=0.5)], fn)
        c(name, [c.f(4), c.f(4), c.f(4, lo=0.5)], lambda x, a, b, fn=fn: fn(x, a, b, value=-1.5), value=-1.5)
    mask = [[True, False, True], [False, False, True]]
    c("where", [c.b(mask), c.f(2, 3), c.f(3)], torch.where)
    c("where", [c.b([True, False]), c.f(2), 0.5], lambda m, x: torch.where(m, x, 0.5))
    c("masked_fill", [c.f(2, 3), c.b(mask), -7.5], lambda x, m: x.masked_fill(m, -7.5))
    c("masked_fill", [c.f(2, 3), c.b([True, False, False]), 2], lambda x, m: x.masked_fill(m, 2))
    c("clamp", [c.f(2, 3)], lambda x: x.clamp(-0.5, 0.75), min=-0.5, max=0.75)
    c("clamp", [c.f(2, 3)], lambda x: x.clamp(min=0.25), min=0.25)
    c("clamp", [c.f(2, 3)], lambda x, hi, lo: x.clamp(lo, hi), max=c.f(3, lo=0.5), min=c.f(3, hi=-0.25))


def reductions(c):
    for name in "sum", "mean", "amax", "amin", "var", "std", "logsumexp":
        fn = getattr(torch, name)
        if name == "logsumexp":
            c(name, [c.f(2, 3)], lambda x: torch.logsumexp(x, (0, 1)))
        else:
            c(name, [c.f(2, 3)], fn)
        c(name, [c.f(2, 3)], lambda x, fn=fn: fn(x, dim=1), dim=2)
        c(name, [c.f(2, 3, 2)], lambda x, fn=fn: fn(x, dim=(0, 2), keepdim=True), dim=[1, 3], keepdim=True)
    for name in "var", "std":
        fn = getattr(torch, name)
        c(name, [c.f(2, 3)], lambda x, fn=fn: fn(x, dim=1, correction=0), dim=2, correction=0)
    c("prod", [c.f(2, 3)], torch.prod)
    c("prod", [c.f(2, 3)], lambda x: x.prod(0, keepdim=True), dim=1, keepdim=True)
    c("prod", [c.v([[0.0, 2.0, 3.0], [0.0, 0.0, 5.0]])], lambda x: x.prod(1), dim=2)
    c("norm", [c.f(2, 3)], lambda x: torch.linalg.vector_norm(x))
    for p in 1, 3, 0.5:
        c("norm", [c.f(2, 3)], lambda x, p=p: torch.linalg.vector_norm(x, p, dim=1), p=p, dim=2)
    c("norm", [c.f(2, 3)], lambda x: torch.linalg.vector_norm(x, 2, dim=0, keepdim=True), dim=1, keepdim=True)
    for name, fn in ("any", torch.any), ("all", torch.all):
        c(name, [c.b([[True, False], [True, True]])], fn)
        c(name, [c.b([[True, False], [True, True], [False, False]])], lambda x, fn=fn: fn(x, 1), dim=2)
    c("count_nonzero", [c.v([[0.0, 1.0, NAN], [0.0, 0.0, 2.0]], grad=False)], torch.count_nonzero)
    c("count_nonzero", [c.v([[0.0, 1.0, 3.0], [0.0, 0.0, 2.0]], grad=False)], lambda x: torch.count_nonzero(x, 0),
      dim=1)
    for name in "max", "min", "median":
        fn = getattr(torch, name)
        c(name, [c.f(2, 3)], fn)

        def along(x, d, keep, fn=fn):
            y = fn(x, d, keepdim=keep)
            return y.values, c.positions(y.indices)

        c(name, [c.f(3, 4)], lambda x: along(x, 1, False), dim=2)
        c(name, [c.f(3, 4)], lambda x: along(x, 0, True), dim=1, keepdim=True)
    for name in "argmax", "argmin":
        fn = getattr(torch, name)
        c(name, [c.f(2, 3, grad=False)], lambda x, fn=fn: c.positions(fn(x)))
        c(name, [c.f(2, 3, grad=False)], lambda x, fn=fn: c.positions(fn(x, 1, keepdim=True)), dim=2, keepdim=True)
    for name in "cumsum", "cumprod":
        fn = getattr(torch, name)
        c(name, [c.f(2, 3), 2], lambda x, fn=fn: fn(x, 1))
        c(name, [c.f(3, 2)], lambda x, fn=fn: fn(x, 0), dim=1)
    for name in "softmax", "log_softmax":
        fn = getattr(F, name)
        c(name, [c.f(2, 3)], lambda x, fn=fn: fn(x, dim=-1))
        c(name, [c.f(2, 3)], lambda x, fn=fn: fn(x, dim=0), dim=1)


def norms(c):
    c("layer_norm", [c.f(2, 4), 4], lambda x: F.layer_norm(x, (4,)))
    c("layer_norm", [c.f(2, 3, 2), [3, 2]], lambda x, b, w: F.layer_norm(x, (3, 2), w, b, 0.25), weight=c.f(3, 2),
      bias=c.f(3, 2), eps=0.25)
    c("rms_norm", [c.f(2, 4), 4], lambda x: F.rms_norm(x, (4,), eps=1e-5), eps=1e-5)
    c("rms_norm", [c.f(2, 3), 3], lambda x, w: F.rms_norm(x, (3,), w, 0.25), weight=c.f(3), eps=0.25)
    c("normalize", [c.f(2, 3)], F.normalize)
    c("normalize", [c.f(2, 3)], lambda x: F.normalize(x, 1, 0), p=1, dim=1)
    c("local_response_norm", [c.f(1, 4, 2), 3], lambda x: F.local_response_norm(x, 3, 1e-4, 0.75, 1.0))
    c("local_response_norm", [c.f(1, 5, 2)], lambda x: F.local_response_norm(x, 2, 0.5, 0.5, 2.0), size=2, alpha=0.5,
      beta=0.5, k=2.0)
    c("group_norm", [c.f(2, 4, 2), 2], lambda x: F.group_norm(x, 2))
    c("group_norm", [c.f(2, 4, 2), 4], lambda x, b, w: F.group_norm(x, 4, w, b, 0.25), weight=c.f(4), bias=c.f(4),
      eps=0.25)

    def stats(n):
        return {"running_mean": c.f(n, grad=False, changed=True),
                "running_var": c.f(n, lo=0.5, grad=False, changed=True)}

    c("batch_norm", [c.f(3, 2)], lambda x, b, m, v, w: F.batch_norm(x, m, v, w, b), **stats(2), weight=c.f(2),
      bias=c.f(2))
    c("batch_norm", [c.f(4, 2, 3)], lambda x, b, m, v, w: F.batch_norm(x, m, v, w, b, True), **stats(2), weight=c.f(2),
      bias=c.f(2), training=True)
    c("batch_norm", [c.f(4, 2)], lambda x, m, v: F.batch_norm(x, m, v, None, None, True, 0.5, 0.25), **stats(2),
      training=True, momentum=0.5, eps=0.25)
    c("instance_norm", [c.f(2, 2, 4)], lambda x: F.instance_norm(x))
    c("instance_norm", [c.f(2, 2, 4)], lambda x, b, m, v, w: F.instance_norm(x, m, v, w, b, False), **stats(2),
      weight=c.f(2), bias=c.f(2), use_input_stats=False)
    c("instance_norm", [c.f(2, 2, 4)],
      lambda x, b, m, v, w: F.instance_norm(x, m, v, w, b, True, 0.5, 0.25), **stats(2), weight=c.f(2), bias=c.f(2),
      momentum=0.5, eps=0.25)


def losses(c):
    def each(name, make, fn, options=({},), tol=None):
        """The default reduction, the others, and each set of options."""
        c(name, make(), fn, tol=tol)
        for reduction in "none", "sum":
            c(name, make(), lambda *t, r=reduction: fn(*t, reduction=r), tol=tol, reduction=reduction)
        for o in options:
            if o:
                c(name, make(), lambda *t, o=o: fn(*t, **o), tol=tol, **o)

    pair = lambda: [c.f(2, 3), c.f(2, 3)]
    signs = lambda: c.v([[1.0, -1.0, 1.0], [-1.0, -1.0, 1.0]], grad=False)
    each("mse_loss", pair, F.mse_loss)
    each("l1_loss", pair, F.l1_loss)
    each("smooth_l1_loss", pair, F.smooth_l1_loss, [{"beta": 0.5}])
    each("huber_loss", pair, F.huber_loss, [{"delta": 0.5}])
    each("kl_div", lambda: [c.f(2, 3, hi=-0.25), c.f(2, 3, lo=0.25)], F.kl_div, [{"log_target": True}])
    each("soft_margin_loss", lambda: [c.f(2, 3), signs()], F.soft_margin_loss)
    each("hinge_embedding_loss", lambda: [c.f(2, 3), signs()], F.hinge_embedding_loss, [{"margin": 0.5}])
    each("poisson_nll_loss", lambda: [c.f(2, 3), c.f(2, 3, lo=1.25, hi=3.0, grad=False)], F.poisson_nll_loss,
         [{"full": True}])
    c("poisson_nll_loss", [c.f(4, lo=0.25), c.f(4, lo=0.25)],
      lambda x, y: F.poisson_nll_loss(x, y, log_input=False, eps=0.125), log_input=False, eps=0.125)
    prob = lambda: [c.f(2, 3, lo=0.1, hi=0.9), c.f(2, 3, lo=0.1, hi=0.9)]
    each("binary_cross_entropy", prob, F.binary_cross_entropy)
    c("binary_cross_entropy", prob(), lambda x, y, w: F.binary_cross_entropy(x, y, w),
      weight=c.f(3, lo=0.25, grad=False))
    logits = lambda: [c.f(2, 3), c.f(2, 3, lo=0.1, hi=0.9)]
    each("binary_cross_entropy_with_logits", logits, F.binary_cross_entropy_with_logits)
    c("binary_cross_entropy_with_logits", logits(),
      lambda x, y, p, w: F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p),
      pos_weight=c.f(3, lo=0.25, grad=False), weight=c.f(3, lo=0.25, grad=False))
    each("margin_ranking_loss", lambda: [c.f(2, 3), c.f(2, 3), signs()], F.margin_ranking_loss, [{"margin": 0.5}])
    each("gaussian_nll_loss", lambda: [c.f(2, 3), c.f(2, 3), c.f(2, 3, lo=0.25)], F.gaussian_nll_loss, [{"full": True}])
    labels = lambda: [c.f(3, 4), c.i([2, 0, 3])]
    each("cross_entropy", labels, F.cross_entropy, [{"label_smoothing": 0.25}])
    weight = lambda: c.f(4, lo=0.25, grad=False)
    c("cross_entropy", labels(), lambda x, y, w: F.cross_entropy(x, y, w), weight=weight())
    c("cross_entropy", labels(), lambda x, y: F.cross_entropy(x, y, ignore_index=3), ignore_index=4)
    c("cross_entropy", [c.f(3, 4), c.f(3, 4, lo=0.1, hi=0.9)], F.cross_entropy)
    each("nll_loss", labels, F.nll_loss)
    c("nll_loss", labels(), lambda x, y, w: F.nll_loss(x, y, w), weight=weight())
    c("nll_loss", labels(), lambda x, y: F.nll_loss(x, y, ignore_index=0), ignore_index=1)
    c("cosine_similarity", [c.f(2, 3), c.f(2, 3)], lambda a, b: F.cosine_similarity(a, b))
    c("cosine_similarity", [c.f(3, 2), c.f(3, 2)], lambda a, b: F.cosine_similarity(a, b, 0), dim=1)
    each("cosine_embedding_loss", lambda: [c.f(3, 4), c.f(3, 4), c.v([1.0, -1.0, 1.0], grad=False)],
         F.cosine_embedding_loss, [{"margin": -0.5}])
    each("triplet_margin_loss", lambda: [c.f(2, 3), c.f(2, 3), c.f(2, 3)], F.triplet_margin_loss,
         [{"margin": 3.0}, {"p": 1, "margin": 4.0}, {"swap": True, "margin": 3.0}])
    each("multi_margin_loss", labels, F.multi_margin_loss, [{"p": 2}, {"margin": 0.25}])
    c("multi_margin_loss", labels(), lambda x, y, w: F.multi_margin_loss(x, y, weight=w), weight=weight())


def creation(c):
    for name in "zeros", "ones":
        fn = getattr(torch, name)
        c(name, [2, 3], lambda fn=fn: fn(2, 3).float(), only=["f64"])
        c(name, [[2]], lambda fn=fn: fn(2, dtype=torch.int64), dtype="i64")
    c("full", [[2, 2], 1.5], lambda: torch.full((2, 2), 1.5))
    c("full", [[3], 7], lambda: torch.full((3,), 7))
    for name in "zeros_like", "ones_like":
        fn = getattr(torch, name)
        c(name, [c.f(2, 3, grad=False)], fn)
        c(name, [c.n([3, 4])], fn)
    c("full_like", [c.f(2, 2, grad=False), 2.5], lambda x: torch.full_like(x, 2.5))
    c("full_like", [c.n([3, 4]), 5], lambda x: torch.full_like(x, 5))
    c("arange", [5], lambda: torch.arange(5))
    c("arange", [2, 9, 3], lambda: torch.arange(2, 9, 3))
    c("arange", [1.0, -1.0, -0.5], lambda: torch.arange(1.0, -1.0, -0.5))
    c("linspace", [-1.0, 2.0, 7], lambda: torch.linspace(-1, 2, 7))
    c("linspace", [3.0, 0.0, 4], lambda: torch.linspace(3, 0, 4))
    c("eye", [3], lambda: torch.eye(3))
    c("eye", [2, 4], lambda: torch.eye(2, 4))
    c("clone", [c.f(2, 3)], torch.clone)
    c("clone", [c.n([1, 2])], torch.clone)
    c("copy", [c.f(2, 3), c.f(3)], lambda x, s: x.clone().copy_(s))
    c("copy", [c.f(2), c.n([3, -4])], lambda x, s: x.clone().copy_(s))
    c("fill", [c.f(2, 3), 2.5], lambda x: x.clone().fill_(2.5))
    c("fill", [c.n([1, 2]), 3], lambda x: x.clone().fill_(3))
    c("zero", [c.f(2, 3)], lambda x: x.clone().zero_())
    c("zero", [c.n([1, 2])], lambda x: x.clone().zero_())
    c("prelu", [c.f(2, 3), c.f(1)], F.prelu)
    c("prelu", [c.f(2, 3, 2), c.f(3)], F.prelu)
    c("glu", [c.f(2, 4)], F.glu)
    c("glu", [c.f(4, 2)], lambda x: F.glu(x, 0), dim=1)


def shapes(c):
    c("view", [c.f(2, 3), 3, 2], lambda x: x.view(3, 2))
    c("view", [c.f(2, 3), [-1]], lambda x: x.view(-1))
    c("reshape", [c.f(2, 3), 3, -1], lambda x: x.reshape(3, -1))
    c("reshape", [c.f(2, 3), [1, 6]], lambda x: x.reshape(1, 6))
    c("flatten", [c.f(2, 3, 2)], torch.flatten)
    c("flatten", [c.f(2, 3, 2)], lambda x: x.flatten(1), start_dim=2)
    c("unflatten", [c.f(2, 6), 2, [3, -1]], lambda x: x.unflatten(1, (3, -1)))
    c("unflatten", [c.f(4), 1, [2, 2]], lambda x: x.unflatten(0, (2, 2)))
    c("squeeze", [c.f(1, 3, 1)], torch.squeeze)
    c("squeeze", [c.f(1, 3, 1)], lambda x: x.squeeze(0), dim=1)
    c("unsqueeze", [c.f(2, 3), 2], lambda x: x.unsqueeze(1))
    c("unsqueeze", [c.f(2), -1], lambda x: x.unsqueeze(-1))
    c("transpose", [c.f(2, 3), 1, 2], lambda x: x.transpose(0, 1))
    c("transpose", [c.f(2, 3, 2), 1, -1], lambda x: x.transpose(0, -1))
    c("t", [c.f(2, 3)], torch.t)
    c("t", [c.f(3)], torch.t)
    c("permute", [c.f(2, 3, 2), 3, 1, 2], lambda x: x.permute(2, 0, 1))
    c("permute", [c.f(2, 3), [2, 1]], lambda x: x.permute(1, 0))
    c("movedim", [c.f(2, 3, 2), 1, 3], lambda x: x.movedim(0, 2))
    c("movedim", [c.f(2, 3, 4), [1, 2], [3, 1]], lambda x: x.movedim((0, 1), (2, 0)))
    c("expand", [c.f(2, 1), 2, 3], lambda x: x.expand(2, 3))
    c("expand", [c.f(3), [2, -1]], lambda x: x.expand(2, -1))
    c("select", [c.f(2, 3), 2, 3], lambda x: x.select(1, 2))
    c("select", [c.f(2, 3), 1, -1], lambda x: x.select(0, -1))
    c("narrow", [c.f(2, 5), 2, 2, 3], lambda x: x.narrow(1, 1, 3))
    c("narrow", [c.f(4, 2), 1, 3, 1], lambda x: x.narrow(0, 2, 1))
    c("slice", [c.f(5, 2), 1, 2, 4], lambda x: x[1:4])
    c("slice", [c.f(2, 6)], lambda x: x[:, 1::2], dim=2, start=2, step=2)
    c("unfold", [c.f(6), 1, 3, 2], lambda x: x.unfold(0, 3, 2))
    c("unfold", [c.f(2, 5), 2, 2, 1], lambda x: x.unfold(1, 2, 1))
    c("cat", [[c.f(2, 3), c.f(1, 3)]], lambda a, b: torch.cat((a, b)))
    c("cat", [[c.f(2, 3), c.f(2, 1), c.f(2, 2)]], lambda *t: torch.cat(t, 1), dim=2)
    c("stack", [[c.f(2, 3), c.f(2, 3)]], lambda a, b: torch.stack((a, b)))
    c("stack", [[c.f(3), c.f(3)]], lambda a, b: torch.stack((a, b), 1), dim=2)
    c("tile", [c.f(2, 3), 2], lambda x: x.tile(2))
    c("tile", [c.f(2, 2), [2, 1, 2]], lambda x: x.tile(2, 1, 2))
    c("repeat_interleave", [c.f(2, 3), 2], lambda x: x.repeat_interleave(2))
    c("repeat_interleave", [c.f(2, 3), c.n([1, 0, 2])], lambda x, n: x.repeat_interleave(n, 1), dim=2)
    c("flip", [c.f(2, 3), [1]], lambda x: x.flip(0))
    c("flip", [c.f(2, 3), [1, 2]], lambda x: x.flip(0, 1))
    c("roll", [c.f(2, 3), 1], lambda x: x.roll(1))
    c("roll", [c.f(3, 4), [1, -2]], lambda x: x.roll((1, -2), (0, 1)), dims=[1, 2])
    c("pad", [c.f(2, 3), [1, 2]], lambda x: F.pad(x, (1, 2)))
    c("pad", [c.f(2, 3), [1, -1, 0, 2]], lambda x: F.pad(x, (1, -1, 0, 2), value=1.5), value=1.5)
    for mode in "reflect", "replicate", "circular":
        c("pad", [c.f(1, 2, 4), [2, 1]], lambda x, m=mode: F.pad(x, (2, 1), m), mode=mode)
    for name in "tril", "triu":
        fn = getattr(torch, name)
        c(name, [c.f(3, 4)], fn)
        c(name, [c.f(3, 3)], lambda x, fn=fn: fn(x, 1), diagonal=1)
    c("diag", [c.f(3, 4)], torch.diag)
    c("diag", [c.f(3)], lambda x: torch.diag(x, -1), diagonal=-1)


def indices(c):
    c("index_select", [c.f(3, 2), 1, c.i([2, 0, 2])], lambda x, i: x.index_select(0, i))
    c("index_select", [c.f(2, 4), 2, c.i([3, 1])], lambda x, i: x.index_select(1, i))
    c("index_add", [c.f(3, 2), 1, c.i([2, 0, 2]), c.f(3, 2)], lambda x, i, s: x.index_add(0, i, s))
    c("index_add", [c.f(2, 3), 2, c.i([1, 1]), c.f(2, 2)], lambda x, i, s: x.index_add(1, i, s, alpha=-1.5), alpha=-1.5)
    c("gather", [c.f(3, 2), 1, c.i([[2, 0], [0, 1]])], lambda x, i: x.gather(0, i))
    c("gather", [c.f(2, 3), 2, c.i([[2, 2, 0, 1], [1, 0, 0, 1]])], lambda x, i: x.gather(1, i))
    c("scatter", [c.f(3, 2), 1, c.i([[2, 0], [0, 1]]), c.f(2, 2)], lambda x, i, s: x.scatter(0, i, s))
    c("scatter", [c.f(2, 3), 2, c.i([[2], [0]]), 2.5], lambda x, i: x.scatter(1, i, 2.5))
    c("scatter_add", [c.f(3, 2), 1, c.i([[2, 0], [2, 1]]), c.f(2, 2)], lambda x, i, s: x.scatter_add(0, i, s))
    c("scatter_add", [c.f(2, 3), 2, c.i([[0, 0, 0], [1, 2, 1]]), c.f(2, 3)], lambda x, i, s: x.scatter_add(1, i, s))
    c("take_along_dim", [c.f(2, 3), c.i([5, 0, 3])], lambda x, i: torch.take_along_dim(x, i))
    c("take_along_dim", [c.f(2, 3), c.i([[2], [0]])], lambda x, i: torch.take_along_dim(x, i, 1), dim=2)
    c("index", [c.f(3, 2), [c.i([2, 0, 2])]], lambda x, i: x[i])
    c("index", [c.f(3, 4), [c.i([2, 0]), c.i([1, 3])]], lambda x, i, j: x[i, j])
    c("index_put", [c.f(3, 2), [c.i([2, 0])], c.f(2, 2)], lambda x, i, v: x.index_put((i,), v))
    c("index_put", [c.f(3), [c.i([1, 1, 0])], c.f(3)], lambda x, i, v: x.index_put((i,), v, accumulate=True),
      accumulate=True)
    c("masked_select", [c.f(2, 3), c.b([[True, False, True], [False, True, False]])], torch.masked_select)
    c("masked_select", [c.f(2, 3), c.b([True, False, True])], torch.masked_select)
    c("nonzero", [c.v([[0.0, 1.5, 0.0], [2.0, 0.0, -1.0]], grad=False)], lambda x: c.positions(torch.nonzero(x)))
    c("nonzero", [c.b([True, False, True])], lambda x: c.positions(torch.nonzero(x)))
    c("embedding", [c.i([2, 0, 2]), c.f(3, 2)], lambda i, w: F.embedding(i, w))
    c("embedding", [c.i([[1, 0], [1, 2]]), c.f(3, 2)], lambda i, w: F.embedding(i, w, padding_idx=1), padding_idx=2)
    c("embedding", [c.i([2, 0, 2, 2]), c.f(3, 2)], lambda i, w: F.embedding(i, w, scale_grad_by_freq=True),
      scale_grad_by_freq=True)

    def sort(x, d, descending):
        y = torch.sort(x, d, descending)
        return y.values, c.positions(y.indices)

    c("sort", [c.f(2, 4)], lambda x: sort(x, -1, False))
    c("sort", [c.f(4, 2)], lambda x: sort(x, 0, True), dim=1, descending=True)
    c("argsort", [c.f(2, 4, grad=False)], lambda x: c.positions(torch.argsort(x)))
    c("argsort", [c.f(4, 2, grad=False)], lambda x: c.positions(torch.argsort(x, 0, True)), dim=1, descending=True)

    def topk(x, k, d, largest):
        y = torch.topk(x, k, d, largest)
        return y.values, c.positions(y.indices)

    c("topk", [c.f(2, 5), 3], lambda x: topk(x, 3, -1, True))
    c("topk", [c.f(5, 2), 2], lambda x: topk(x, 2, 0, False), dim=1, largest=False)

    def unique(x, **o):
        y = torch.unique(x, sorted=True, return_inverse=True, return_counts=True, **o)
        return y[0], c.positions(y[1]), y[2]

    c("unique", [c.n([3, 1, 3, 2, 1])], lambda x: torch.unique(x))
    c("unique", [c.v([2.5, -1.0, 2.5], grad=False)], unique, return_inverse=True, return_counts=True)
    c("unique", [c.n([[1, 2], [1, 2], [0, 3]])], lambda x: unique(x, dim=0), return_inverse=True,
      return_counts=True, dim=1)
    c("one_hot", [c.i([2, 0])], F.one_hot)
    c("one_hot", [c.i([[1, 0], [2, 2]]), 4], lambda i: F.one_hot(i, 4))
    c("bincount", [c.i([2, 0, 2, 4])], torch.bincount)
    c("bincount", [c.i([1, 1, 0])], lambda i, w: torch.bincount(i, w, 4), weights=c.f(3, grad=False), minlength=4)
    c("histc", [c.f(8, grad=False)], lambda x: torch.histc(x, 4, -2, 2), bins=4, min=-2, max=2)
    c("histc", [c.v([1.0, 2.0, 3.0, 4.0, 4.0], grad=False), 3], lambda x: torch.histc(x, 3))


def images(c):
    c("im2col", [c.f(1, 2, 3, 3), 2], lambda x: F.unfold(x, 2))
    c("im2col", [c.f(1, 1, 4, 3), [2, 1]], lambda x: F.unfold(x, (2, 1), (2, 1), (1, 0), (1, 2)), dilation=[2, 1],
      padding=[1, 0], stride=[1, 2])
    c("fold", [c.f(1, 8, 4), [3, 3], 2], lambda x: F.fold(x, (3, 3), 2))
    c("fold", [c.f(1, 4, 4), [4, 4], 2], lambda x: F.fold(x, (4, 4), 2, stride=2), stride=2)
    c("pixel_shuffle", [c.f(1, 4, 2, 1), 2], lambda x: F.pixel_shuffle(x, 2))
    c("pixel_shuffle", [c.f(2, 9, 1, 1), 3], lambda x: F.pixel_shuffle(x, 3))
    c("resample", [c.f(1, 1, 2, 3), [3, 4]], lambda x: F.interpolate(x, (3, 4)))
    for align in False, True:
        c("resample", [c.f(1, 1, 2, 3), [3, 5]], lambda x, a=align: F.interpolate(x, (3, 5), mode="bilinear",
          align_corners=a), mode="linear", align_corners=align)
        c("resample", [c.f(1, 1, 4, 4), [3, 5]], lambda x, a=align: F.interpolate(x, (3, 5), mode="bicubic",
          align_corners=a), mode="cubic", align_corners=align)
    grid = lambda: c.f(1, 2, 3, 2, lo=-1.25, hi=1.25)
    c("grid_sample", [c.f(1, 2, 3, 3), grid()], lambda x, g: F.grid_sample(x, g, align_corners=False))
    ways = ("bilinear", "border", True), ("nearest", "zeros", False), ("bilinear", "reflection", False)
    for mode, padding, align in ways:
        c("grid_sample", [c.f(1, 2, 3, 3), grid()],
          lambda x, g, m=mode, p=padding, a=align: F.grid_sample(x, g, m, p, a), tol=4, mode=mode,
      padding_mode=padding, align_corners=align, only=["f64", "f32"])

    def pool(fn, *args, **options):
        def run(x):
            y, i = fn(x, *args, return_indices=True, **options)
            return y, c.positions(i)

        return run

    c("max_pool1d", [c.f(1, 2, 5), 2], lambda x: F.max_pool1d(x, 2))
    c("max_pool1d", [c.f(1, 2, 7), 3], pool(F.max_pool1d, 3, 2, 1, ceil_mode=True), stride=2, padding=1, ceil_mode=True,
      return_indices=True)
    c("max_pool2d", [c.f(1, 2, 4, 4), 2], lambda x: F.max_pool2d(x, 2))
    c("max_pool2d", [c.f(1, 1, 5, 4), [3, 2]], pool(F.max_pool2d, (3, 2), (1, 2), (1, 0), (2, 1)), stride=[1, 2],
      padding=[1, 0], dilation=[2, 1], return_indices=True)
    c("adaptive_max_pool2d", [c.f(1, 2, 4, 3), 2], lambda x: F.adaptive_max_pool2d(x, 2))
    c("adaptive_max_pool2d", [c.f(1, 1, 5, 4), [2, 3]], pool(F.adaptive_max_pool2d, (2, 3)), return_indices=True)
    c("avg_pool1d", [c.f(1, 2, 5), 2], lambda x: F.avg_pool1d(x, 2))
    c("avg_pool1d", [c.f(1, 2, 6), 3], lambda x: F.avg_pool1d(x, 3, 2, 1, True, False), stride=2, padding=1,
      ceil_mode=True, count_include_pad=False)
    c("avg_pool2d", [c.f(1, 2, 4, 4), 2], lambda x: F.avg_pool2d(x, 2))
    c("avg_pool2d", [c.f(1, 1, 5, 4), 3], lambda x: F.avg_pool2d(x, 3, 2, 1, True), stride=2, padding=1, ceil_mode=True)
    c("avg_pool2d", [c.f(1, 1, 4, 4), 2], lambda x: F.avg_pool2d(x, 2, divisor_override=3), divisor_override=3)
    c("adaptive_avg_pool1d", [c.f(1, 2, 5), 3], lambda x: F.adaptive_avg_pool1d(x, 3))
    c("adaptive_avg_pool1d", [c.f(2, 1, 4), 2], lambda x: F.adaptive_avg_pool1d(x, 2))
    c("adaptive_avg_pool2d", [c.f(1, 2, 4, 3), 2], lambda x: F.adaptive_avg_pool2d(x, 2))
    c("adaptive_avg_pool2d", [c.f(1, 1, 5, 4), [2, 3]], lambda x: F.adaptive_avg_pool2d(x, (2, 3)))
    c("conv1d", [c.f(1, 2, 6), c.f(3, 2, 3)], F.conv1d)
    c("conv1d", [c.f(2, 2, 6), c.f(4, 1, 2)], lambda x, w, b: F.conv1d(x, w, b, 2, 1, 2, 2), bias=c.f(4), stride=2,
      padding=1, dilation=2, groups=2)
    c("conv1d", [c.f(1, 1, 5), c.f(2, 1, 3)], lambda x, w: F.conv1d(x, w, padding="same"), padding="same")
    c("conv2d", [c.f(1, 2, 4, 4), c.f(3, 2, 3, 3)], F.conv2d)
    c("conv2d", [c.f(1, 2, 5, 4), c.f(2, 1, 3, 2)], lambda x, w, b: F.conv2d(x, w, b, (2, 1), (1, 0), (1, 2), 2),
      bias=c.f(2), stride=[2, 1], padding=[1, 0], dilation=[1, 2], groups=2)
    c("conv3d", [c.f(1, 1, 3, 3, 3), c.f(2, 1, 2, 2, 2)], F.conv3d)
    c("conv3d", [c.f(1, 2, 3, 3, 2), c.f(2, 1, 2, 2, 2)], lambda x, w, b: F.conv3d(x, w, b, 2, 1, 1, 2), bias=c.f(2),
      stride=2, padding=1, groups=2)
    c("conv_transpose1d", [c.f(1, 2, 4), c.f(2, 3, 3)], F.conv_transpose1d)
    c("conv_transpose1d", [c.f(1, 2, 4), c.f(2, 2, 3)], lambda x, w, b: F.conv_transpose1d(x, w, b, 2, 1, 1, 2, 2),
      bias=c.f(4), stride=2, padding=1, output_padding=1, groups=2, dilation=2)
    c("conv_transpose2d", [c.f(1, 2, 3, 3), c.f(2, 2, 2, 2)], F.conv_transpose2d)
    c("conv_transpose2d", [c.f(1, 2, 3, 2), c.f(2, 1, 3, 2)],
      lambda x, w, b: F.conv_transpose2d(x, w, b, (2, 1), (1, 0), (1, 0), 2), bias=c.f(2), stride=[2, 1],
      padding=[1, 0], output_padding=[1, 0], groups=2)


def products(c):
    c("matmul", [c.f(2, 3), c.f(3, 4)], torch.matmul)
    c("matmul", [c.f(2, 1, 2, 3), c.f(3, 3, 2)], torch.matmul)
    c("matmul", [c.f(3), c.f(2, 3, 2)], torch.matmul)
    c("linear", [c.f(2, 3), c.f(4, 3)], F.linear)
    c("linear", [c.f(2, 2, 3), c.f(2, 3)], F.linear, bias=c.f(2))
    c("mm", [c.f(2, 3), c.f(3, 2)], torch.mm)
    c("mm", [c.f(1, 4), c.f(4, 3)], torch.mm)
    c("bmm", [c.f(2, 2, 3), c.f(2, 3, 2)], torch.bmm)
    c("bmm", [c.f(1, 3, 1), c.f(1, 1, 2)], torch.bmm)
    c("mv", [c.f(2, 3), c.f(3)], torch.mv)
    c("mv", [c.f(4, 2), c.f(2)], torch.mv)
    c("dot", [c.f(4), c.f(4)], torch.dot)
    c("dot", [c.f(7), c.f(7)], torch.dot)
    c("outer", [c.f(2), c.f(3)], torch.outer)
    c("outer", [c.f(4), c.f(1)], torch.outer)
    c("addmm", [c.f(2, 2), c.f(2, 3), c.f(3, 2)], torch.addmm)
    c("addmm", [c.f(2), c.f(3, 2), c.f(2, 2)], lambda x, a, b: torch.addmm(x, a, b, beta=0.5, alpha=-2),
      beta=0.5, alpha=-2)
    c("baddbmm", [c.f(2, 2, 2), c.f(2, 2, 3), c.f(2, 3, 2)], torch.baddbmm)
    c("baddbmm", [c.f(1, 2, 2), c.f(2, 2, 1), c.f(2, 1, 2)], lambda x, a, b: torch.baddbmm(x, a, b, beta=-1, alpha=0.5),
      beta=-1, alpha=0.5)
    sdpa = F.scaled_dot_product_attention
    name = "scaled_dot_product_attention"
    qkv = lambda h=2: [c.f(1, h, 3, 4), c.f(1, 2, 5, 4), c.f(1, 2, 5, 2)]
    c(name, qkv(), sdpa)
    c(name, qkv(), lambda q, k, v: sdpa(q, k, v, is_causal=True), is_causal=True)
    c(name, qkv(), lambda q, k, v, m: sdpa(q, k, v, m, scale=0.25), mask=c.f(3, 5), scale=0.25)
    c(name, qkv(), lambda q, k, v, m: sdpa(q, k, v, m), mask=c.b([[True, True, False, True, False]] * 3))
    c(name, qkv(4), lambda q, k, v: sdpa(q, k, v, enable_gqa=True), enable_gqa=True)


def write(c, positions):
    c.positions = positions
    for family in unary, binary, reductions, norms, losses, creation, shapes, indices, images, products:
        family(c)
