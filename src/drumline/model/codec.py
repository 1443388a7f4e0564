"""How arguments are written: as JSON, one codec for each signature.

Arguments are an object keyed by parameter name, checked where they are sent: what arrives equals what was sent, or
`encode` says why not. Defaults are not stored; the function applies its own when it runs. Without an annotation a
value must be plain JSON (a tuple arrives as a list). JSON has neither NaN nor infinity: they are refused.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, NotRequired, TypedDict, cast

import msgspec

from drumline.errors import BadArgument, BadOption
from drumline.model.explain import explain, lower
from drumline.model.fidelity import Fault, find_change, find_change_from_json, type_name
from drumline.model.foreign import UNENCODABLE, decode_foreign, encoder, field_names
from drumline.model.result import DEPTH_LIMIT, measure_depth
from drumline.model.signature import Parameter, Signature, describe, is_unresolved, read_signature

__all__ = ["ARGS_LIMIT", "ArgsCodec", "Arguments"]

ARGS_LIMIT = 256 * 1024

# What a function is called with, behind its context.
Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_FindChange = Callable[[Any, Any], Fault | None]


class _Shape:
    """A signature, made ready for many calls."""

    def __init__(self, signature: Signature) -> None:
        kinds = inspect.Parameter
        self.signature = signature
        self.named = {p.name: p for p in signature.parameters if p.kind != kinds.VAR_KEYWORD}
        self.annotations = {name: p.annotation for name, p in self.named.items()}
        self.names = frozenset(self.named)
        self.required = frozenset(p.name for p in self.named.values() if p.is_required)
        by_position = (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
        self.by_position = tuple(p.name for p in self.named.values() if p.kind in by_position)
        self.only_by_position = tuple(p.name for p in self.named.values() if p.kind == kinds.POSITIONAL_ONLY)
        self.star = next((p.name for p in self.named.values() if p.kind == kinds.VAR_POSITIONAL), None)
        rest = next((p for p in signature.parameters if p.kind == kinds.VAR_KEYWORD), None)
        self.rest = None if rest is None else msgspec.json.Decoder(rest.annotation, dec_hook=decode_foreign)
        self.read = self._reader()
        self.model, self.is_ambiguous = self._find_model()

    def split(self, values: dict[str, Any]) -> Arguments:
        """The values as the function takes them."""
        rest = values.pop(self.star, ()) if self.star else ()
        first = self.by_position if rest else self.only_by_position
        return (*(values.pop(name, self.named[name].default) for name in first), *rest), values

    def _reader(self) -> Callable[[bytes], dict[str, Any]]:
        fields = {name: _field(parameter) for name, parameter in self.named.items()}
        # A TypedDict is read straight into the dict that the function is called with; unknown keys fall out.
        make: Any = TypedDict
        read: Callable[[bytes], dict[str, Any]]
        read = msgspec.json.Decoder(make("Arguments", fields), dec_hook=decode_foreign).decode
        return read if self.rest is None else lambda data: {**read(data), **self._read_rest(data)}

    def _read_rest(self, data: bytes) -> dict[str, Any]:
        decoder = cast("msgspec.json.Decoder[Any]", self.rest)
        values = {}
        for name, raw in msgspec.json.decode(data, type=dict[str, msgspec.Raw]).items():
            if name not in self.names:
                try:
                    values[name] = decoder.decode(raw)
                except msgspec.ValidationError as error:
                    raise msgspec.ValidationError(f"{error} - at `$.{name}`") from error
        return values

    def _find_model(self) -> tuple[str | None, bool]:
        """The only parameter, if it is a model: then its fields may be sent as if they were parameters.

        And whether one of them has the parameter's own name, so that both readings must be tried.
        """
        if len(self.named) != 1 or self.rest is not None or self.star is not None:
            return None, False
        (only,) = self.named.values()
        fields = field_names(only.annotation)
        return (None, False) if fields is None else (only.name, only.name in fields)


class ArgsCodec:
    """Writes and reads the arguments of one task."""

    __slots__ = ("_function", "_scope", "_shape", "where")

    def __init__(self, function: Callable[..., Any], task: str, scope: Mapping[str, Any] | None = None) -> None:
        """BadOption if the signature cannot be sent. `scope`: names for annotations besides those of the module.

        An annotation whose name is not defined yet is looked at again when the codec is first used.
        """
        self.where = f"task {task}"
        self._function = function
        self._scope = scope
        self._shape: _Shape | None = None
        try:
            self._prepare()
        except BadOption as error:
            if not is_unresolved(error):
                raise

    @property
    def signature(self) -> Signature:
        return (self._shape or self._prepare()).signature

    def encode(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
        """The arguments as they are stored; BadArgument, with its path, for what does not fit."""
        shape = self._shape or self._prepare()
        if args:
            kwargs = self._name_positions(shape, args, kwargs)
        return self._write(shape, kwargs, find_change)

    def accept(self, payload: bytes | str) -> bytes:
        """The same for arguments that come as JSON, from a command line or a request."""
        shape = self._shape or self._prepare()
        data = payload.encode("utf-8", "surrogatepass") if isinstance(payload, str) else payload
        self._check_size(data)
        try:
            values = msgspec.json.decode(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadArgument(f"{self.where}: the arguments are not JSON: {lower(str(error))}") from error
        if not isinstance(values, dict):
            raise BadArgument(f"{self.where}: expected a JSON object of arguments, got {type_name(values)}")
        return self._write(shape, values, find_change_from_json)

    def decode(self, data: bytes) -> Arguments:
        """What to call the function with, behind its context. Unknown keys are dropped: a newer release wrote them.

        BadArgument if the stored shape is not this function's.
        """
        shape = self._shape or self._prepare()
        try:
            values = shape.read(data)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadArgument(f"{self.where}: {explain(shape.annotations, {}, error)}") from error
        if shape.star or shape.only_by_position:
            return shape.split(values)
        return (), values

    def _prepare(self) -> _Shape:
        self._shape = _Shape(read_signature(self._function, self.where, self._scope))
        # Often the variables of a whole module or frame: they shall not live as long as the task.
        self._scope = None
        return self._shape

    def _name_positions(self, shape: _Shape, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        names = shape.by_position
        values: dict[str, Any] = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            if shape.star is None:
                raise BadArgument(f"{self.where}: takes at most {len(names)} by position, got {len(args)}")
            values[shape.star] = list(args[len(names) :])
        for name, value in kwargs.items():
            if name in values:
                raise BadArgument(f"{self.where}: {name}: given twice")
            values[name] = value
        return values

    def _write(self, shape: _Shape, values: dict[str, Any], find: _FindChange) -> bytes:
        given = values.keys()
        if given <= shape.names and given >= shape.required:
            if not shape.is_ambiguous:
                return self._write_checked(shape, values, find)
            return self._write_either(shape, values, find)
        if shape.model is not None and shape.model not in given:
            return self._write_checked(shape, {shape.model: values}, find)
        self._check_names(shape, values)
        return self._write_checked(shape, values, find)

    def _write_either(self, shape: _Shape, values: dict[str, Any], find: _FindChange) -> bytes:
        try:
            return self._write_checked(shape, values, find)
        except BadArgument:
            with suppress(BadArgument):
                return self._write_checked(shape, {str(shape.model): values}, find)
            raise

    def _write_checked(self, shape: _Shape, values: dict[str, Any], find: _FindChange) -> bytes:
        try:
            data = encoder.encode(values)
            arrived = shape.read(data)
            # Nearly always equal; only a difference is worth a look at its cause.
            fault = find(values, arrived) if arrived != values else None
        except (*UNENCODABLE, RecursionError) as error:
            raise BadArgument(f"{self.where}: {explain(shape.annotations, values, error)}") from error
        if fault:
            raise BadArgument(f"{self.where}: {fault[0]}: {fault[1]}")
        if len(data) > 2 * DEPTH_LIMIT:
            self._check_size(data)
            self._check_depth(data)
        return data

    def _check_names(self, shape: _Shape, values: Mapping[str, Any]) -> None:
        unknown = next((name for name in values if name not in shape.names), None)
        if unknown is not None and shape.rest is None:
            takes = ", ".join(shape.named) or "none"
            raise BadArgument(f"{self.where}: {unknown}: unknown argument; it takes {takes}")
        missing = next((name for name in shape.named if name in shape.required and name not in values), None)
        if missing is not None:
            annotation = describe(shape.annotations[missing])
            raise BadArgument(f"{self.where}: {missing}: expected {annotation}, got nothing")

    def _check_size(self, data: bytes) -> None:
        if len(data) > ARGS_LIMIT:
            raise BadArgument(
                f"{self.where}: the arguments take {len(data):,} bytes, the limit is {ARGS_LIMIT:,}: "
                "keep large data elsewhere and send where it is"
            )

    def _check_depth(self, data: bytes) -> None:
        if data.count(b"[") + data.count(b"{") > DEPTH_LIMIT and measure_depth(data) > DEPTH_LIMIT:
            raise BadArgument(f"{self.where}: the arguments are nested more than {DEPTH_LIMIT} deep")


def _field(parameter: Parameter) -> Any:
    if parameter.kind == inspect.Parameter.VAR_POSITIONAL:
        return NotRequired[list[parameter.annotation]]  # type: ignore[name-defined]
    return parameter.annotation if parameter.is_required else NotRequired[parameter.annotation]
