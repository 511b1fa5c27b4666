"""Books and state by reference: compiled functions hand a tuple of arrays on as one pointer.

To numba a tuple of arrays is all that its arrays consist of, seven numbers or more for each: some two hundred for a
state. Every function that takes it takes these one by one, whether it looks at them or not, and so does every call.
Written out, that was a third of the time of a cold start. Behind a reference a function asks for the fields that it
uses. The tuple lies on the stack of the loop; once all functions are inlined there, nothing of it is left at run time.
"""

from hashlib import sha256
from typing import Any, TypeVar

from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.core.types import BaseNamedTuple  # type: ignore[attr-defined]
from numba.core.typing.templates import AttributeTemplate
from numba.extending import infer_getattr, intrinsic, lower_getattr_generic, models, register_model

from paceline.kernels.jit import is_on

Whole = TypeVar("Whole")


class Reference(types.Type):
    """To numba, the type of a reference to a NamedTuple. Its name ends up in those of functions, so it is short."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole
        digits = sha256(whole.name.encode()).hexdigest()[:12]
        super().__init__(name=f"{whole.instance_class.__name__}({digits})")

    @property
    def key(self) -> Any:
        """What makes two references of the same type."""
        return self.whole

    def place(self, name: str) -> int:
        """The number of a field."""
        return int(self.whole.fields.index(name))

    def field(self, name: str) -> Any:
        """The type of a field: by reference again where it is a tuple of this package, such as the estimates.

        A policy's own tuple is handed out as it is: its author may unpack it.
        """
        found = self.whole.types[self.place(name)]
        is_ours = isinstance(found, BaseNamedTuple) and found.instance_class.__module__.startswith(__package__)
        return Reference(found) if is_ours else found


@register_model(Reference)
class Pointer(models.PrimitiveModel):  # type: ignore[misc]
    """In machine code a reference is a pointer to the tuple."""

    def __init__(self, manager: Any, kind: Reference) -> None:
        super().__init__(manager, kind, manager.lookup(kind.whole).get_value_type().as_pointer())


@infer_getattr
class Fields(AttributeTemplate):  # type: ignore[misc]
    """Which fields there are, and of what type."""

    key = Reference

    def generic_resolve(self, kind: Reference, name: str) -> Any:
        """None if there is no such field, as numba wants it."""
        return kind.field(name) if name in kind.whole.fields else None


@lower_getattr_generic(Reference)  # type: ignore[untyped-decorator]
def field_of(context: Any, builder: Any, kind: Reference, pointer: Any, name: str) -> Any:
    """Code that looks a field up."""
    place, found = cgutils.gep_inbounds(builder, pointer, 0, kind.place(name)), kind.field(name)
    return place if isinstance(found, Reference) else impl_ret_borrowed(context, builder, found, builder.load(place))


@intrinsic  # type: ignore[untyped-decorator]
def refer_compiled(typing_context: Any, whole: Any) -> Any:
    """`refer` in compiled code. It must not leave the function that calls it, on whose stack the tuple lies."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return cgutils.alloca_once_value(builder, arguments[0])

    return Reference(whole)(whole), generate


def refer_in_python(whole: Whole) -> Whole:
    """The tuple: in Python everything is a reference."""
    return whole


refer_compiled.in_python = refer_in_python
refer = refer_compiled if is_on() else refer_in_python
