"""The pickle machine: a bounds-checked view of the file, with stack, marks and memo.

Every length is compared with the remaining bytes of the file before it is used. Stack and memo grow by at
most one entry per byte.
"""

from __future__ import annotations

from tmconvert.frontends.megengine.pickle.allow_list import look_up
from tmconvert.frontends.megengine.pickle.arrays import UnfinishedArray, UnfinishedDtype
from tmconvert.frontends.megengine.pickle.builders import CopyBudget, ObjectBudget
from tmconvert.frontends.megengine.pickle.fault import damaged
from tmconvert.frontends.megengine.pickle.stand_ins import Instance

LINE_LIMIT = 1024
FREE_OBJECTS = 100_000  # even a small file may have so many

UNFINISHED = frozenset({UnfinishedArray, UnfinishedDtype})


class Machine:
    """The state of reading one pickle.

    ``start`` is the offset of the current opcode, for messages; ``unfinished`` has the memo entries of each
    array and dtype that still waits for its content.
    """

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.size = len(data)
        self.position = 0
        self.start = 0
        self.stopped = False
        self.stack: list[object] = []
        self.marks: list[int] = []
        self.memo: list[object] = []
        self.unfinished: dict[object, list[int]] = {}
        self.globals: dict[tuple[str, str], object] = {}
        self.instances: list[Instance] = []
        self.objects = 0  # so far
        self.copies = CopyBudget(self.size)
        self.memory = ObjectBudget(self.size)

    def take(self, count: int) -> memoryview:
        """The next ``count`` bytes, without copying them."""
        if count > self.size - self.position:
            left = self.size - self.position
            raise damaged(f"a value of {count} bytes starts where only {left} bytes are left")
        begin = self.position
        self.position = begin + count
        return self.data[begin : self.position]

    def take_integer(self, width: int) -> int:
        begin = self.position
        if width == 1 and begin < self.size:  # most are
            self.position = begin + 1
            return self.data[begin]
        return int.from_bytes(self.take(width), "little")

    def take_text(self, count: int) -> str:
        try:
            return str(self.take(count), "utf-8")
        except UnicodeDecodeError as error:
            raise damaged("a text is not valid UTF-8") from error

    def take_line(self) -> str:
        ahead = bytes(self.data[self.position : self.position + LINE_LIMIT])
        length = ahead.find(b"\n")
        if length < 0:
            raise damaged("a global's name does not end")
        line = self.take_text(length)
        self.position += 1
        return line

    def push(self, value: object) -> None:
        self.stack.append(value)

    def pop(self) -> object:
        self.require(1)
        return self.stack.pop()

    def require(self, count: int) -> None:
        """Rejects access below the last mark or the bottom of the stack."""
        bottom = self.marks[-1] if self.marks else 0
        if len(self.stack) - bottom < count:
            raise damaged("an opcode takes more values than the stack holds")

    def pop_to_mark(self) -> list[object]:
        if not self.marks:
            raise damaged("an opcode looks for a mark that was never set")
        bottom = self.marks.pop()
        values = self.stack[bottom:]
        del self.stack[bottom:]
        return values

    def memoize(self, index: int) -> None:
        self.require(1)
        value = self.stack[-1]
        if index > len(self.memo):
            # Writers number from zero without gaps.
            raise damaged(f"memo entry {index} is written after {len(self.memo)} others")
        if index == len(self.memo):
            self.memo.append(value)
        else:
            self.memo[index] = value
        if type(value) in UNFINISHED:
            self.unfinished[value].append(index)

    def recall(self, index: int) -> None:
        try:
            value = self.memo[index]
        except IndexError:
            raise damaged(f"memo entry {index} is read before it is written") from None
        self.push_finished(value)

    def push_finished(self, value: object) -> None:
        if type(value) in UNFINISHED:
            raise damaged("an array or dtype is used before it has its content")
        self.stack.append(value)

    def push_new(self, value: object) -> None:
        """Pushes a builder's result, and checks later that it was completed."""
        if isinstance(value, Instance):
            self.instances.append(value)
        elif type(value) in UNFINISHED:
            self.unfinished[value] = []
        self.stack.append(value)

    def pay_for(self, cost: int) -> None:
        """Counts a new object against the memory limit: its size is ``cost``."""
        self.objects += 1
        if self.objects > FREE_OBJECTS:
            self.memory.spend(cost)

    def push_global(self, module: str, name: str) -> None:
        key = (module, name)
        if key not in self.globals:
            self.globals[key] = look_up(module, name)
        self.stack.append(self.globals[key])

    def finish(self, target: object, value: object) -> None:
        """Replaces all references to a placeholder, on the stack and in the memo, by the finished value."""
        self.stack[-1] = value
        for index in self.unfinished.pop(target):
            if self.memo[index] is target:
                self.memo[index] = value

    def root(self) -> object:
        """Returns the only value left. Raises PickleFault if a value inside was never completed."""
        if self.unfinished:
            raise damaged("an array or dtype never gets its content")
        self._check_states()
        return self.stack[0]

    def _check_states(self) -> None:
        """Rejects attribute names that are not text; each dict is checked once."""
        seen: set[int] = set()
        for instance in self.instances:
            state = instance.state
            if id(state) not in seen:
                seen.add(id(state))
                if any(type(name) is not str for name in state):
                    raise damaged(f"an attribute of a {instance.short_name} has no name")
