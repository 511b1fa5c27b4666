"""What paceline knows of numba's insides: kernels are compiled without waste, loops by one process at a time.

Left alone, numba makes of every function a finished piece of machine code that Python could call: optimised, emitted,
with two wrappers that unpack each array of its arguments. A kernel is never called that way. It is inlined into another
kernel, that one into the next, and each would optimise and emit once more all that it has taken in: more than half of
the time of a cold start. Here a kernel ends as LLVM code; the loop that contains it links the code of all its kernels,
and optimises it once.

This file leans on parts of numba that are not promised to stay; jit.py does without it where they have gone.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.registry import CPUDispatcher
from numba.core.types import unliteral  # type: ignore[attr-defined]

from paceline.kernels.stale import remove_stale
from paceline.machine import alone


class LoopLibrary(JITCodeLibrary):  # type: ignore[misc]  # numba has no types
    """The code of a loop. It links each kernel once, those that its kernels call among them."""

    _linking_libraries: list[Any]

    def add_linking_library(self, library: Any) -> None:
        """Link a library; of a kernel its own code, and then the code of those that it calls."""
        library._ensure_finalized()
        parts = [OwnCode(library), *library._linking_libraries] if isinstance(library, InnerLibrary) else [library]
        self._linking_libraries = list(dict.fromkeys([*self._linking_libraries, *parts]))


class InnerLibrary(LoopLibrary):
    """The LLVM code of a kernel, to be linked into loops.

    Linking copies code. A kernel that took in the kernels it calls would be copied once for every level above it.
    """

    def finalize(self) -> None:
        """Nothing is linked, optimised or made into machine code: the loop will do it."""
        self._finalize_dynamic_globals()
        self._finalized = True

    def own_module(self) -> Any:
        """Without what it calls."""
        return super()._get_module_for_linking()

    @cached_property
    def whole_module(self) -> Any:
        """With all that it calls."""
        module = self.own_module().clone()
        for library in self._linking_libraries:
            module.link_in(library._get_module_for_linking(), preserve=True)
        return module

    def _get_module_for_linking(self) -> Any:
        """For a function that is no loop of ours, such as a user's own that calls a kernel."""
        return self.whole_module


@dataclass(frozen=True)
class OwnCode:
    """A library of which only the code of its own is linked."""

    library: InnerLibrary

    @property
    def _reload_init(self) -> Any:
        return self.library._reload_init

    def _get_module_for_linking(self) -> Any:
        return self.library.own_module()


class QuickFlags(Flags):  # type: ignore[misc]
    """The options of a compilation, compared without a look at each of them.

    Numba asks thousands of times for what it has kept for the same options; working out the values of all of them each
    time took one part in fifteen of a cold start.
    """

    __slots__ = ()
    _hash = hash(Flags())  # the same for all flags, as numba has it

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if isinstance(other, QuickFlags) and self._values == other._values:
            return True
        return bool(super().__eq__(other))


class LoopCompiler(Compiler):  # type: ignore[misc]
    """The usual passes into a `LoopLibrary`."""

    library: type[JITCodeLibrary] = LoopLibrary

    def __init__(self, *settings: Any) -> None:
        *first, flags, last = settings
        super().__init__(*first, QuickFlags(flags), last)

    def _compile_core(self) -> Any:
        state = self.state
        state.library = self.library(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()  # so that the disk can have it
        return super()._compile_core()


class InnerCompiler(LoopCompiler):
    """The usual passes into an `InnerLibrary`."""

    library = InnerLibrary

    def _compile_core(self) -> Any:
        state = self.state
        state.flags.no_compile = True
        made = super()._compile_core()
        made = made._replace(entry_point=object())  # that by which those who call the kernel find it
        state.targetctx.insert_user_function(made.entry_point, made.fndesc, [made.library])
        return made


class InnerDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A kernel: compiled for each set of types that a loop calls it with."""

    def __init__(self, function: Any, **options: Any) -> None:
        inlined = {"nopython": True, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions={**options, **inlined}, pipeline_class=InnerCompiler)
        self.options = options

    def get_call_template(self, types: Any, named_types: Any) -> Any:
        """A constant argument is a number like any other: numba would compile the kernel anew for each constant."""
        return super().get_call_template(tuple(map(unliteral, types)), named_types)

    def add_overload(self, made: Any) -> None:
        """Known to the compiler alone; there is nothing that Python could call."""
        self.overloads[tuple(made.signature.args)] = made

    def __call__(self, *arguments: Any) -> Any:
        """Called from Python, as tests do: compiled once more, as a function of its own."""
        return self.on_its_own(*arguments)

    @cached_property
    def on_its_own(self) -> Any:
        """The kernel as Python can call it."""
        return njit(self.py_func, **self.options)


class LoopDispatcher(CPUDispatcher):  # type: ignore[misc]
    """A loop that Python calls: compiled once on a machine, then loaded from the disk."""

    def __init__(self, function: Any, **options: Any) -> None:
        as_loop = {"nopython": True, "no_cfunc_wrapper": True}
        super().__init__(function, targetoptions={**options, **as_loop}, pipeline_class=LoopCompiler)

    def compile(self, types: Any) -> Any:
        """Load or compile. Another process that is about to do the same waits, and then finds it on the disk.

        It has to wait: numba writes the two files of a function one after the other, and two writers can leave an index
        that points to the code of the other.
        """
        folder = self.stats.cache_path
        if folder is None or types in self.overloads:
            return super().compile(types)
        name, known = self.py_func.__qualname__, self.stats.cache_misses.total()
        place = int.from_bytes(sha256(name.encode()).digest()[:5])
        with alone(Path(folder), place), collector_resting():
            made = super().compile(types)
        if self.stats.cache_misses.total() > known:
            remove_stale(Path(folder), name)
        return made

    def is_kept(self, types: Any) -> bool:
        """Whether the machine code for these types is in this process or on its disk."""
        if types in self.overloads:
            return True
        kept = self._cache._cache_file
        key = self._cache._index_key(types, self.targetctx.codegen())
        name = kept._load_index().get(key)
        return name is not None and Path(self.stats.cache_path, name).exists()


@contextmanager
def collector_resting() -> Iterator[None]:
    """Without collecting garbage: a compiler makes millions of objects that live, and looking at them takes time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
