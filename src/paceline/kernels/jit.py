"""How kernels are compiled, cached and bound to a policy: with inner.py the only file that knows numba.

Every number-crunching function is written as plain Python. `kernel` marks a small building block; `bind` makes one
machine loop out of a template and the functions that the template names. With ``NUMBA_DISABLE_JIT=1`` both give back
plain Python that computes the same bits.

The disk cache of numba looks only at the file of the function that it compiles, so an edit in another file would keep
serving stale machine code. `bind` therefore writes a digest of every kernel source into the function's name.
"""

import hashlib
import inspect
import re
import types
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic

from paceline.kernels.stale import FILES_DIGITS, PACKAGE_DIGITS, POLICY_DIGITS
from paceline.objects import in_words
from paceline.sources import own_sources

try:
    from paceline.kernels import inner
except (ImportError, AttributeError):  # a numba that is made differently inside: the same code, later
    inner = None  # type: ignore[assignment]

Function = TypeVar("Function", bound=Callable[..., Any])

PACKAGE = Path(__file__).parents[1]
COMPILED = ("kernels", "policies", "worlds", "engine.py", "grafting.py")  # what compiled loops can contain

CompilerError = numba.core.errors.NumbaError
NOISE = ("Failed in nopython", "During:", "No implementation of function", "There are", "File ", "- Resolution")

# nogil: trials run in threads. error_model: division by zero gives inf or nan as in NumPy instead of a branch per
# division. _nrt: no reference counting; kernels work on arrays that the caller owns and allocate nothing, and counting
# every look at an array of a state took a third of a round. No fast-math: plain Python must give the same bits.
OPTIONS = {"nogil": True, "error_model": "numpy", "_nrt": False}


def is_on() -> bool:
    """Whether kernels are compiled; false under ``NUMBA_DISABLE_JIT=1``."""
    return not numba.config.DISABLE_JIT


def kernel(function: Function) -> Function:
    """Mark a small pure function for use inside compiled loops; it is always inlined there."""
    return cast(Function, make_kernel(plain(function), OPTIONS))


def make_kernel(function: Any, options: dict[str, Any]) -> Any:
    """A kernel with these options, made without waste where that is possible."""
    if inner is None or not is_on():
        return numba.njit(function, forceinline=True, **options)
    return inner.InnerDispatcher(function, **options)


def plain(function: Any) -> Any:
    """The Python function behind a kernel, for a single call that is not worth a compilation.

    >>> from paceline.kernels.hull import best_mix
    >>> plain(best_mix).__name__
    'best_mix'
    """
    return getattr(function, "in_python", getattr(function, "py_func", function))


def plain_throughout(function: Function) -> Function:
    """A copy of a kernel that is plain Python down to the last kernel it calls: one call is not worth a compilation."""
    body = plain(function)
    called = {name: body.__globals__.get(name) for name in body.__code__.co_names}
    inner = {name: plain_throughout(other) for name, other in called.items() if plain(other) is not other}
    named = {**body.__globals__, **inner}
    copy = types.FunctionType(body.__code__, named, body.__name__, body.__defaults__, body.__closure__)
    return cast(Function, copy)


def without_compiler(function: Function) -> Function:
    """A kernel as plain Python that computes the same bits."""
    return cast(Function, wrapping_integers(plain_throughout(function)))


@cache
def package_digest() -> str:
    """Digest of the sources that compiled loops can contain."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        part = path.relative_to(PACKAGE)
        if part.parts[0] in COMPILED:
            digest.update(str(part).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:PACKAGE_DIGITS]


def counted_kernel(function: Function) -> Function:
    """A kernel that may make new arrays: compiled with reference counting."""
    return cast(Function, make_kernel(plain(function), {**OPTIONS, "_nrt": True}))


def graft(template: Function, counted: bool, **functions: Callable[..., Any]) -> Function:
    """A copy of ``template`` in which the given names stand for the given functions, as a kernel.

    The functions become globals of the copy, hence constants for the compiler. With ``counted`` references to arrays
    are counted in it: a function that allocates must be called from functions that count.
    """
    template = plain(template)
    copy = types.FunctionType(template.__code__, {**template.__globals__, **functions}, template.__name__)
    copy.__module__ = template.__module__
    return cast(Function, (counted_kernel if counted else kernel)(copy))


def bind(template: Function, name: str, counted: bool, **functions: Callable[..., Any]) -> Function:
    """Compile a graft of ``template`` on its own: one specialised machine loop, to be called from Python.

    It is cached on disk under a name with digests of all sources involved (see stale.py). When no cache folder can be
    written the loop is compiled anew in each process.
    """
    bound = plain(graft(template, counted, **functions))
    sources = outside_sources(functions.values())
    digits = package_digest() + digest_of(POLICY_DIGITS, name) + digest_of(FILES_DIGITS, f"{counted}", *sources)
    bound.__qualname__ = f"{template.__name__}_{digits}"
    if not is_on():
        return cast(Function, wrapping_integers(bound))
    options = {**OPTIONS, "_nrt": counted}
    loop = numba.njit(bound, **options) if inner is None else inner.LoopDispatcher(bound, **options)
    with suppress(RuntimeError):  # numba found no folder that it may write to
        loop.enable_caching()
    return cast(Function, loop)


def digest_of(digits: int, *texts: str) -> str:
    """So many digits that stand for some texts, in whichever order."""
    return hashlib.sha256("\0".join(sorted(texts)).encode()).hexdigest()[:digits]


def folder_of(bound: Callable[..., Any]) -> Path | None:
    """Where the machine code of a function made by `bind` is kept, if anywhere."""
    folder = bound.stats.cache_path if is_on() else None  # type: ignore[attr-defined]
    return None if folder is None else Path(folder)


def is_kept(bound: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a call of a function made by `bind` would find its machine code; true where there is no telling."""
    if inner is None or folder_of(bound) is None:
        return True
    return bool(bound.is_kept(types_of(arguments)))  # type: ignore[attr-defined]


def compile_now(bound: Callable[..., Any], *arguments: Any) -> None:
    """Do what the first call with such arguments would do, but for the call."""
    if is_on():
        bound.compile(types_of(arguments))  # type: ignore[attr-defined]


def types_of(arguments: Iterable[Any]) -> tuple[Any, ...]:
    """The types under which numba files the machine code for some arguments."""
    return tuple(map(numba.typeof, arguments))


def direct(bound: Function, *arguments: Any) -> Function:
    """A way to call a function made by `bind` with arguments of these types; it is compiled now, not called.

    A normal call works out the types of all its arguments first: nine microseconds for a state of twenty arrays, three
    times what the call itself takes. For arguments of other types the answer is undefined.
    """
    if not is_on():
        return bound
    compile_now(bound, *arguments)
    return cast(Function, bound.overloads[types_of(arguments)].entry_point)  # type: ignore[attr-defined]


def compiled_result(function: Callable[..., Any], *arguments: Any) -> tuple[str, tuple[str, ...]]:
    """The type of what a function returns for such arguments, as the compiler sees it, and its fields if it has any."""
    dispatcher = numba.njit(function, **{**OPTIONS, "_nrt": True})
    dispatcher.compile(types_of(arguments))
    result = next(iter(dispatcher.overloads.values())).signature.return_type
    return str(result), tuple(getattr(result, "fields", ()))


def where_it_failed(error: Exception, function: Callable[..., Any]) -> tuple[int, str]:
    """The line in the file of a function that the compiler could not take, and why, in one line."""
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    file = re.escape(Path(inspect.getfile(function)).name)
    lines = [int(line) for line in re.findall(rf'File "[^"]*{file}", line (\d+)', text)]
    lines += [int(line) for line in re.findall(rf"{file} \((\d+)\)", text)]
    begin = function.__code__.co_firstlineno
    reasons = [part.strip(" >-.:") for part in text.splitlines() if part.strip()]
    telling = [part for part in reasons if not part.startswith(NOISE)] or reasons
    return max(lines, default=begin), without_details(telling[0])


def without_details(text: str) -> str:
    """A message without the contents of long types.

    >>> without_details("Unknown attribute 'nosuch' of type State(Record(t[type=int64;offset=0]), array(int64, 1d, C))")
    "Unknown attribute 'nosuch' of type State"
    """
    while len(text) > 50 and (shorter := re.sub(r"\([^()]*\)", "", text, count=1)) != text:
        text = shorter
    return text


def outside_sources(functions: Iterable[Callable[..., Any]]) -> set[str]:
    """What stands for the code outside this package that functions are made of.

    That is the code and the values of each of them and of the functions that they call, and every file of the user's
    that their modules import: any of it may end as a constant in machine code.
    """
    waiting, seen, texts = [plain(function) for function in functions], set[Any](), set[str]()
    modules = set[str]()
    while waiting:
        function = waiting.pop()
        if not isinstance(function, types.FunctionType) or function in seen:
            continue
        seen.add(function)
        used = {str(place): plain(cell.cell_contents) for place, cell in enumerate(function.__closure__ or ())}
        if function.__module__.partition(".")[0] != PACKAGE.name:
            modules.add(function.__module__)
            texts.add(source(function) + code_text(function.__code__))
            used |= {name: plain(function.__globals__.get(name)) for name in names_in(function.__code__)}
        texts |= {f"{name}={in_words(value)}" for name, value in used.items() if value is not None}
        waiting += used.values()
    return texts | own_sources(modules)


def names_in(code: types.CodeType) -> set[str]:
    """The names that a piece of code uses, those in comprehensions and inner functions among them."""
    inner = [names_in(value) for value in code.co_consts if isinstance(value, types.CodeType)]
    return set(code.co_names).union(*inner)


def code_text(code: types.CodeType) -> str:
    """The instructions, names and constants of a piece of code."""
    constants = [code_text(value) if isinstance(value, types.CodeType) else repr(value) for value in code.co_consts]
    return "\0".join([code.co_code.hex(), *code.co_names, *constants])


def source(function: Callable[..., Any]) -> str:
    """The text of the file that defines a function."""
    try:
        return Path(inspect.getfile(function)).read_text(encoding="utf-8")
    except (OSError, TypeError):  # typed at a prompt: its own code is all there is
        return ""


def wrapping_integers(function: Callable[..., Any]) -> Callable[..., Any]:
    """Let 64-bit words wrap around silently, as they do in machine code."""

    @wraps(function)
    def wrapped(*arguments: Any) -> Any:
        with np.errstate(over="ignore"):
            return function(*arguments)

    return wrapped


@intrinsic  # type: ignore[untyped-decorator]
def _high_product(typing_context: Any, a: Any, b: Any) -> Any:
    """Upper 64 bits of a 64 x 64 bit product: one machine instruction that Python has no name for."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(arguments[0], wide), builder.zext(arguments[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return numba.uint64(numba.uint64, numba.uint64), generate


def plain_high_product(a: Any, b: Any) -> Any:
    """Upper 64 bits of the 128-bit product of two 64-bit words."""
    return np.uint64((int(a) * int(b)) >> 64)


if is_on():

    @kernel
    def high_product(a: Any, b: Any) -> Any:
        """Upper 64 bits of the 128-bit product of two 64-bit words."""
        return _high_product(a, b)

    high_product.in_python = plain_high_product  # type: ignore[attr-defined]  # an intrinsic has no plain form
else:
    high_product = plain_high_product
