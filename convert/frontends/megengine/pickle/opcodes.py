"""The opcodes of pickle protocols 2 to 5: a table with one small function each.

What a protocol-2 writer can no longer produce (text opcodes, old-style classes), what calls back into the
reader's program (persistent ids, the extension registry) and what lies outside the file (buffers) is refused
by name. No function is recursive, so that nesting depth does not matter.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import TypeVar

from tmconvert.frontends.megengine.pickle.allow_list import is_users_own
from tmconvert.frontends.megengine.pickle.arrays import (
    UnfinishedArray,
    UnfinishedDtype,
    finish_array,
    finish_dtype,
)
from tmconvert.frontends.megengine.pickle.builders import (
    add_element,
    call,
    check_key,
    new_object,
    put_item,
    set_state,
)
from tmconvert.frontends.megengine.pickle.fault import PickleFault, damaged, over_limit, refused
from tmconvert.frontends.megengine.pickle.pickle_machine import Machine
from tmconvert.frontends.megengine.pickle.stand_ins import Instance
from tmconvert.frontends.megengine.recognize import PROTOCOLS

Handler = Callable[[Machine], None]
Kind = TypeVar("Kind")

INTEGER_BYTES_LIMIT = 1024
# An eighth of what an object takes in memory at least, in bytes.
CONTAINER_COST = 8  # a list, a dict or a tuple
BYTES_COST = 24  # a view of the file
SET_COST = 27
OBJECT_COST = 16  # what a call makes, or an object of a class
MOST_MARKS = 100_000  # open at a time: values of a sound file are not nested so deep

FLOAT64 = struct.Struct(">d")
INT32 = struct.Struct("<i")


def run(machine: Machine) -> object:
    """Runs the pickle, returns the root object. Raises PickleFault, ``machine.start`` at the opcode."""
    data, size = machine.data, machine.size
    while not machine.stopped:
        machine.start = start = machine.position
        if start >= size:
            raise damaged("the file ends in the middle of the pickle")
        handler = OPCODES.get(data[start])
        if handler is None:
            raise _unusable_opcode(data[start])
        machine.position = start + 1
        handler(machine)
    return machine.root()


def _proto(machine: Machine) -> None:
    version = machine.take_integer(1)
    if version not in PROTOCOLS:
        raise damaged(f"pickle protocol {version} is not one of 2 to 5")


def _frame(machine: Machine) -> None:
    length = machine.take_integer(8)
    if length > machine.size - machine.position:
        raise damaged(
            f"a frame of {length} bytes starts where only {machine.size - machine.position} are left"
        )


def _stop(machine: Machine) -> None:
    # Bytes after the end are left alone, as pickle.load does.
    if machine.marks or len(machine.stack) != 1:
        raise damaged("the pickle stops with values left over")
    machine.stopped = True


def _constant(value: object) -> Handler:
    return lambda machine: machine.stack.append(value)


def _unsigned(width: int) -> Handler:
    return lambda machine: machine.stack.append(machine.take_integer(width))


def _binint(machine: Machine) -> None:
    machine.stack.append(INT32.unpack(machine.take(4))[0])


def _binfloat(machine: Machine) -> None:
    machine.stack.append(FLOAT64.unpack(machine.take(8))[0])


def _long(width: int) -> Handler:
    def read(machine: Machine) -> None:
        length = machine.take_integer(width)
        if length > INTEGER_BYTES_LIMIT:
            raise over_limit(f"an integer of {length} bytes")
        machine.stack.append(int.from_bytes(machine.take(length), "little", signed=True))

    return read


def _text(width: int) -> Handler:
    return lambda machine: machine.stack.append(machine.take_text(machine.take_integer(width)))


def _bytes(width: int) -> Handler:
    def read(machine: Machine) -> None:
        machine.pay_for(BYTES_COST)
        machine.stack.append(machine.take(machine.take_integer(width)))

    return read


def _mark(machine: Machine) -> None:
    if len(machine.marks) >= MOST_MARKS:
        raise over_limit(f"values are nested more than {MOST_MARKS} deep")
    machine.marks.append(len(machine.stack))


def _pop(machine: Machine) -> None:
    if machine.marks and machine.marks[-1] == len(machine.stack):
        machine.marks.pop()
    else:
        machine.pop()


def _pop_mark(machine: Machine) -> None:
    machine.pop_to_mark()


def _dup(machine: Machine) -> None:
    machine.require(1)
    machine.push_finished(machine.stack[-1])


def _tuple(machine: Machine) -> None:
    machine.pay_for(CONTAINER_COST)
    machine.push(tuple(machine.pop_to_mark()))


def _small_tuple(count: int) -> Handler:
    def read(machine: Machine) -> None:
        machine.pay_for(CONTAINER_COST)
        machine.require(count)
        values = tuple(machine.stack[-count:])
        del machine.stack[-count:]
        machine.push(values)

    return read


def _empty_list(machine: Machine) -> None:
    machine.pay_for(CONTAINER_COST)
    machine.push([])


def _empty_dict(machine: Machine) -> None:
    machine.pay_for(CONTAINER_COST)
    machine.push({})


def _empty_set(machine: Machine) -> None:
    machine.pay_for(SET_COST)
    machine.push(set())


def _list(machine: Machine) -> None:
    machine.pay_for(CONTAINER_COST)
    machine.push(machine.pop_to_mark())


def _dict(machine: Machine) -> None:
    machine.pay_for(CONTAINER_COST)
    items = machine.pop_to_mark()
    target: dict[object, object] = {}
    _put_items(target, items)
    machine.push(target)


def _frozenset(machine: Machine) -> None:
    machine.pay_for(SET_COST)
    values = machine.pop_to_mark()
    for position, value in enumerate(values):
        check_key(value, position)
    machine.push(frozenset(values))


def _append(machine: Machine) -> None:
    value = machine.pop()
    _top(machine, list).append(value)


def _appends(machine: Machine) -> None:
    values = machine.pop_to_mark()
    _top(machine, list).extend(values)


def _setitem(machine: Machine) -> None:
    value = machine.pop()
    key = machine.pop()
    put_item(_top(machine, dict), key, value)


def _setitems(machine: Machine) -> None:
    items = machine.pop_to_mark()
    _put_items(_top(machine, dict), items)


def _additems(machine: Machine) -> None:
    values = machine.pop_to_mark()
    target = _top(machine, set)
    for value in values:
        add_element(target, value)


def _binput(width: int) -> Handler:
    return lambda machine: machine.memoize(machine.take_integer(width))


def _memoize(machine: Machine) -> None:
    machine.memoize(len(machine.memo))


def _binget(width: int) -> Handler:
    return lambda machine: machine.recall(machine.take_integer(width))


def _global(machine: Machine) -> None:
    module = machine.take_line()
    machine.push_global(module, machine.take_line())


def _stack_global(machine: Machine) -> None:
    name = machine.pop()
    module = machine.pop()
    if not isinstance(module, str) or not isinstance(name, str):
        raise damaged("the name of a global is not text")
    machine.push_global(module, name)


def _reduce(machine: Machine) -> None:
    machine.pay_for(OBJECT_COST)
    arguments = machine.pop()
    function = machine.pop()
    machine.push_new(call(function, arguments, machine.copies))


def _newobj(machine: Machine) -> None:
    machine.pay_for(OBJECT_COST)
    arguments = machine.pop()
    cls = machine.pop()
    machine.push_new(new_object(cls, arguments))


def _newobj_ex(machine: Machine) -> None:
    keywords = machine.pop()
    if not isinstance(keywords, dict) or keywords:
        raise refused("refused object with keyword arguments of its constructor")
    _newobj(machine)


def _build(machine: Machine) -> None:
    state = machine.pop()
    machine.require(1)
    target = machine.stack[-1]
    if isinstance(target, UnfinishedArray):
        machine.finish(target, finish_array(state))
    elif isinstance(target, UnfinishedDtype):
        machine.finish(target, finish_dtype(target, state))
    else:
        set_state(target, state)


def _put_items(target: dict[object, object], items: list[object]) -> None:
    if len(items) % 2:
        raise damaged("a dict key has no value")
    for index in range(0, len(items), 2):
        put_item(target, items[index], items[index + 1])


def _top(machine: Machine, kind: type[Kind]) -> Kind:
    machine.require(1)
    value = machine.stack[-1]
    if isinstance(value, Instance) and is_users_own(value.reference):
        return kind()  # a list or dict of the user's class, of which nothing is kept
    if type(value) is not kind:
        raise damaged(f"items are added to a {type(value).__name__} as if it were a {kind.__name__}")
    return value


def _unusable_opcode(code: int) -> PickleFault:
    name = REFUSED_OPCODES.get(code)
    if name is not None:
        return refused(f"refused pickle opcode {name}")
    name = OLD_OPCODES.get(code)
    if name is not None:
        return damaged(f"pickle opcode {name} belongs to protocols 0 and 1, which MegEngine never wrote")
    return damaged(f"byte 0x{code:02x} is not a pickle opcode")


REFUSED_OPCODES = {
    ord("P"): "PERSID",
    ord("Q"): "BINPERSID",
    ord("i"): "INST",
    ord("o"): "OBJ",
    0x82: "EXT1",
    0x83: "EXT2",
    0x84: "EXT4",
    0x97: "NEXT_BUFFER",
    0x98: "READONLY_BUFFER",
}

OLD_OPCODES = {
    ord("F"): "FLOAT",
    ord("I"): "INT",
    ord("L"): "LONG",
    ord("S"): "STRING",
    ord("T"): "BINSTRING",
    ord("U"): "SHORT_BINSTRING",
    ord("V"): "UNICODE",
    ord("g"): "GET",
    ord("p"): "PUT",
}

OPCODES: dict[int, Handler] = {
    ord("("): _mark,
    ord(")"): _constant(()),
    ord("."): _stop,
    ord("0"): _pop,
    ord("1"): _pop_mark,
    ord("2"): _dup,
    ord("B"): _bytes(4),
    ord("C"): _bytes(1),
    ord("G"): _binfloat,
    ord("J"): _binint,
    ord("K"): _unsigned(1),
    ord("M"): _unsigned(2),
    ord("N"): _constant(None),
    ord("R"): _reduce,
    ord("X"): _text(4),
    ord("]"): _empty_list,
    ord("a"): _append,
    ord("b"): _build,
    ord("c"): _global,
    ord("d"): _dict,
    ord("e"): _appends,
    ord("h"): _binget(1),
    ord("j"): _binget(4),
    ord("l"): _list,
    ord("q"): _binput(1),
    ord("r"): _binput(4),
    ord("s"): _setitem,
    ord("t"): _tuple,
    ord("u"): _setitems,
    ord("}"): _empty_dict,
    0x80: _proto,
    0x81: _newobj,
    0x85: _small_tuple(1),
    0x86: _small_tuple(2),
    0x87: _small_tuple(3),
    0x88: _constant(True),
    0x89: _constant(False),
    0x8A: _long(1),
    0x8B: _long(4),
    0x8C: _text(1),
    0x8D: _text(8),
    0x8E: _bytes(8),
    0x8F: _empty_set,
    0x90: _additems,
    0x91: _frozenset,
    0x92: _newobj_ex,
    0x93: _stack_global,
    0x94: _memoize,
    0x95: _frame,
    0x96: _bytes(8),
}
