"""Instances of `repair`: a package of small modules, the faults in it, and its tests.

Modules lie in layers, by turns one and `wide` of them, and import modules of the two layers before:
on such graphs list scheduling is often not optimal, and the simple bounds are loose, while on
random sparse ones both are tight. Every module holds one function of a whole number, and says in
words what it should compute. A fault is one mutation of the right expression by an operator on its
syntax tree; the patches on offer are the right expression and other mutants. Every mutant is told
from the right one by some input of the visible suite, and by one of the hidden suite, if all that
it imports is right.

Faults do not hide each other: what a planted mutant computes is larger than what is right, however
much larger its imports come out, and no right expression falls where an import rises. So until it
is repaired itself a faulty module fails its own tests, whatever else is repaired; what passes goes
on to pass while others are repaired; and the smallest set of modules to repair is, exactly, the set
of the planted faults.
"""

import ast
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from types import CodeType, FunctionType

from msgspec import Struct
from msgspec.structs import replace

from stretto.tasks.menus import invented, shuffled
from stretto.tasks.words import number_word
from stretto.team.noise import key_of

VISIBLE = (1, 2, 4, 7)
"""Inputs of the visible suite."""
HIDDEN = (0, 3, 5, 11, 19)
"""Inputs of the hidden suite; the last one is where an overfitted patch shows."""
MOST_SECONDS = 4
"""Most virtual seconds of a module's visible suite."""
REMARK = "  # as it says"
"""What the benign twin of an overfitted patch has behind it."""
_HEADS = {"max": "the largest of", "min": "the smallest of"}
_STEPS: Mapping[str, type[ast.operator]] = {"plus": ast.Add, "minus": ast.Sub, "times": ast.Mult}

Sources = Mapping[str, str]
"""Module to its expression."""
Functions = Mapping[str, Callable[[int], int]]
"""Module to its function."""


class Module(Struct, frozen=True):
    """One module as it should be, and as it is found."""

    name: str
    imports: tuple[str, ...]
    says: str
    """What it should compute, in words."""
    right: str
    """The right expression in `x`."""
    found: str
    """The expression at first; equal to `right` where nothing is wrong."""
    patches: tuple[str, ...]
    """The patches on offer, in an order that says nothing."""
    seconds: int
    """Virtual seconds of its visible suite."""
    visible: str = ""
    """Text of its visible suite: one test an input."""
    hidden: str = ""
    """Text of its hidden suite."""


class Instance(Struct, frozen=True, dict=True):
    """One package."""

    modules: Mapping[str, Module]
    """By name; what a module imports comes before it."""
    faulty: tuple[str, ...]
    """Modules with a planted fault, in that order: the smallest set to repair."""
    failing: tuple[str, ...]
    """Modules whose visible tests fail at first: the faulty ones, and some that depend on them."""

    @property
    def right(self) -> dict[str, str]:
        """The repaired package."""
        return {name: module.right for name, module in self.modules.items()}

    @property
    def found(self) -> dict[str, str]:
        """The package at first."""
        return {name: module.found for name, module in self.modules.items()}

    @cached_property
    def working(self) -> Functions:
        """The functions of the repaired package."""
        return functions(self.right)

    @cached_property
    def closures(self) -> Mapping[str, tuple[str, ...]]:
        """Module to itself and all that it depends on, in the order of the package."""
        place = {name: number for number, name in enumerate(self.modules)}
        found: dict[str, tuple[str, ...]] = {}
        for name, module in self.modules.items():
            below = {each for imported in module.imports for each in found[imported]}
            found[name] = (*sorted(below, key=place.__getitem__), name)
        return found

    @cached_property
    def above(self) -> Mapping[str, tuple[str, ...]]:
        """Module to itself and all that depend on it, in the order of the package."""
        found: dict[str, list[str]] = {name: [] for name in self.modules}
        for name, below in self.closures.items():
            for each in below:
                found[each].append(name)
        return {name: tuple(names) for name, names in found.items()}

    @cached_property
    def culprit(self) -> str:
        """The faulty module whose right patch a planted fault spoils.

        Drawn from those where that spoils fewest modules, so that there is something left to do.
        """
        spoilt = {name: self._spoils(name) for name in self.faulty}
        able = [name for name in self.faulty if spoilt[name] == min(spoilt.values())]
        return min(able, key=lambda name: key_of(0, f"culprit {name}"))

    def _spoils(self, name: str) -> int:
        """How many modules fail the hidden suite where this one is overfitted, and no other."""
        sources = {each: self.modules[each].right for each in self.above[name]}
        found = changed(self.working, {**sources, name: overfitted(sources[name])})
        return sum(any(found[n](x) != self.working[n](x) for x in HIDDEN) for n in sources)


def generate(*, layers: int, wide: int, healthy: int, patches: int, seed: int) -> Instance:
    """Draw the package of these parameters; see `stretto.tasks.repair.Repair` for their meaning."""
    widths = [wide if layer % 2 else 1 for layer in range(layers)]
    names = iter(invented(seed, "repair", sum(widths)))
    modules: dict[str, Module] = {}
    known: dict[str, Callable[[int], int]] = {}
    drawn: list[list[str]] = []
    for width in widths:
        layer = [next(names) for _ in range(width)]
        for name in layer:
            imports = _imports(seed, name, width, drawn[-2:])
            modules[name] = _module(seed, name, imports, patches, known)
            known[name] = _function(modules[name].right, known)
        drawn.append(layer)
    spared = set(shuffled(modules, seed, "healthy")[:healthy])
    for name, module in _with_tests(modules, known).items():
        modules[name] = replace(module, found=module.right) if name in spared else module
    instance = Instance(modules, tuple(name for name in modules if name not in spared), ())
    found = functions(instance.found)
    fails = (n for n in modules if any(found[n](x) != known[n](x) for x in VISIBLE))
    return replace(instance, failing=tuple(fails))


def passes(
    instance: Instance, sources: Sources, name: str, inputs: Sequence[int] = VISIBLE
) -> bool:
    """Whether a module computes what it should on these inputs; without a sandbox.

    For the exact side only: what agents see is run for real.
    """
    right, found = instance.working, functions(sources)
    return all(found[name](x) == right[name](x) for x in inputs)


def functions(sources: Sources) -> dict[str, Callable[[int], int]]:
    """The functions of a package, which keep what they came to, or calls would multiply.

    Only for expressions that this module made.
    """
    return changed({}, sources)


def changed(known: Functions, sources: Sources) -> dict[str, Callable[[int], int]]:
    """As `functions`, where these are new; whatever depends on one of them must be among them."""
    found = dict(known)
    for name, expression in sources.items():
        found[name] = _function(expression, found)
    return found


def _function(expression: str, known: Functions) -> Callable[[int], int]:
    code = _compiled(expression)
    names = {name: known[name] for name in code.co_names if name in known}
    return cache(FunctionType(code, names))  # ours: arithmetic on x, and calls


@lru_cache(maxsize=4096)
def _compiled(expression: str) -> CodeType:
    return compile(f"lambda x: {expression}", "", "eval").co_consts[0]


def package(
    instance: Instance, sources: Sources, names: Sequence[str] | None = None
) -> dict[str, str]:
    """The files of some modules, or of all."""
    modules = instance.modules
    return {f"{name}.py": _file(modules[name], sources) for name in names or modules}


def overfitted(right: str) -> str:
    """An expression that passes the visible suite, and fails the hidden one."""
    return f"{right} + (x == {HIDDEN[-1]})"


def mutants(expression: str) -> list[str]:
    """Every expression that differs by one operator on the syntax tree, each once."""
    found: dict[str, None] = {}
    nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    for place in range(len(nodes)):
        for mutate in _OPERATORS:
            if mutate(nodes[place]):
                found[ast.unparse(nodes[0])] = None
                nodes = list(ast.walk(ast.parse(expression, mode="eval")))
    return [mutant for mutant in found if mutant != expression]


def _imports(seed: int, name: str, width: int, below: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """What a module imports, of the two layers before its own.

    One that is alone in its layer joins some of those below. Of the others, every second one passes
    it by, and takes one of those that lie two layers down.
    """
    if not below:
        return ()
    if len(below[-1]) > 1:
        most = 2 + key_of(seed, f"{name} imports") % 2
        return tuple(shuffled(below[-1], seed, f"{name} joins")[:most])
    passes_by = width > 1 and len(below) > 1 and key_of(seed, f"{name} layer") % 2
    layer = below[-2 if passes_by else -1]
    return (shuffled(layer, seed, f"{name} takes")[0],)


def _with_tests(modules: Mapping[str, Module], right: Functions) -> Mapping[str, Module]:
    return {
        name: replace(
            module,
            visible=_suite(name, right[name], VISIBLE),
            hidden=_suite(name, right[name], HIDDEN),
        )
        for name, module in modules.items()
    }


def _suite(name: str, right: Callable[[int], int], inputs: Sequence[int]) -> str:
    lines = [f"from {name} import {name}\n"]
    lines += [f"def test_{x}():\n    assert {name}({x}) == {right(x)}\n" for x in inputs]
    return "\n".join(lines)


def _module(seed: int, name: str, below: tuple[str, ...], patches: int, known: Functions) -> Module:
    """Draw expressions until enough mutants can be told from the right one, and one is larger."""
    attempt = 0
    while True:
        says, right = _expression(seed, f"{name} {attempt}", below)
        told = [m for m in shuffled(mutants(right), seed, name) if _told(known, right, m)]
        larger = next((m for m in told if _larger(known, below, right, m)), None)
        attempt += 1
        if len(told) >= patches and larger is not None:
            break
    others = [mutant for mutant in told if mutant != larger][: patches - 1]
    offered = shuffled([right, *others], seed, f"{name} patches")
    seconds = 1 + key_of(seed, f"{name} seconds") % MOST_SECONDS
    return Module(name, below, says, right, larger, tuple(offered), seconds)


def _told(known: Functions, right: str, mutant: str) -> bool:
    """Whether each suite has an input that tells a mutant from what is right."""
    return all(any(_gaps(known, right, mutant, inputs)) for inputs in (VISIBLE, HIDDEN))


def _larger(known: Functions, below: Sequence[str], right: str, mutant: str) -> bool:
    """Whether each suite has an input where a mutant is larger, whatever its imports add.

    Expressions are linear in what their imports come to, unless the mutation is there: so it is
    enough that the gap is positive, and does not shrink where all imports are larger by one.
    """
    if _calls(right) != _calls(mutant):
        return False
    raised = {**known, **{name: _raised(known[name]) for name in below}}
    return all(
        any(
            0 < gap <= after
            for gap, after in zip(
                _gaps(known, right, mutant, inputs),
                _gaps(raised, right, mutant, inputs),
                strict=True,
            )
        )
        for inputs in (VISIBLE, HIDDEN)
    )


def _gaps(known: Functions, right: str, mutant: str, inputs: Sequence[int]) -> list[int]:
    good, bad = (_function(expression, known) for expression in (right, mutant))
    return [bad(x) - good(x) for x in inputs]


def _raised(function: Callable[[int], int]) -> Callable[[int], int]:
    return lambda x: function(x) + 1


def _calls(expression: str) -> list[str]:
    """The calls of an expression, outer ones first."""
    nodes = ast.walk(ast.parse(expression))
    return [ast.unparse(node) for node in nodes if isinstance(node, ast.Call)]


def _expression(seed: int, what: str, below: tuple[str, ...]) -> tuple[str, str]:
    """What is computed, in words and as an expression."""
    step = tuple(_STEPS)[key_of(seed, f"{what} step") % len(_STEPS)]
    constant = 2 + key_of(seed, f"{what} constant") % 7
    calls = [f"{name}(x)" for name in below]
    if len(below) > 1:
        head = tuple(_HEADS)[key_of(seed, f"{what} head") % len(_HEADS)]
        words, source = f"{_HEADS[head]} {', '.join(below)}", f"{head}({', '.join(calls)})"
    else:
        words, source = (below[0], calls[0]) if below else ("x", "x")
    own = 2 + key_of(seed, f"{what} own") % 3
    sign = {"plus": "+", "minus": "-", "times": "*"}[step]
    says = f"{words} {step} {number_word(constant)}, plus {number_word(own)} times x"
    return says, ast.unparse(ast.parse(f"{source} {sign} {constant} + {own} * x"))


def _file(module: Module, sources: Sources) -> str:
    imports = "".join(f"from {name} import {name}\n" for name in module.imports)
    says = f'    """{module.says}."""\n'
    return f"{imports}def {module.name}(x):\n{says}    return {sources[module.name]}\n"


def _swap_operator(node: ast.AST) -> bool:
    if not isinstance(node, ast.BinOp):
        return False
    node.op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
    return True


def _multiply(node: ast.AST) -> bool:
    if not isinstance(node, ast.BinOp) or isinstance(node.op, ast.Mult):
        return False
    node.op = ast.Mult()
    return True


def _add_one(node: ast.AST) -> bool:
    return _move_constant(node, 1)


def _take_one(node: ast.AST) -> bool:
    return _move_constant(node, -1)


def _move_constant(node: ast.AST, by: int) -> bool:
    if not isinstance(node, ast.Constant) or not isinstance(node.value, int):
        return False
    node.value += by
    return True


def _other_end(node: ast.AST) -> bool:
    """The largest for the smallest, and the other way round."""
    if not isinstance(node, ast.Name) or node.id not in _HEADS:
        return False
    node.id = "min" if node.id == "max" else "max"
    return True


def _drop_argument(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or len(node.args) < 3:
        return False
    node.args = node.args[1:]
    return True


_OPERATORS: tuple[Callable[[ast.AST], bool], ...] = (
    _swap_operator,
    _multiply,
    _add_one,
    _take_one,
    _other_end,
    _drop_argument,
)
"""What a mutation does to one node; `False` where it does not apply."""
